//! Arguments without their secrets, for whoever may see that a tool is called, but not with what.

use serde_json::Value;

/// What is shown in place of a secret, whatever it is.
const HIDDEN: &str = "***";

/// The arguments with every secret hidden.
///
/// A secret is named by its parameter, or by the way to it inside of one with dots between: `token` or `login.password`.
/// The way leads through arrays, to each of their items.
#[must_use]
pub fn mask(arguments: &Value, secrets: &[impl AsRef<str>]) -> Value {
    let mut shown = arguments.clone();
    for secret in secrets {
        hide(&mut shown, secret.as_ref());
    }
    shown
}

fn hide(value: &mut Value, way: &str) {
    match value {
        Value::Object(entries) => {
            for (name, entry) in entries {
                // A name may have dots of its own.
                if name == way {
                    *entry = HIDDEN.into();
                } else if let Some(rest) = way.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('.')) {
                    hide(entry, rest);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, way)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_hidden_by_name_and_by_way() {
        let arguments = json!({
            "token": {"a": 1}, "to": "ann", "login": {"password": "x", "name": "bob"},
            "hosts": [{"key": 1, "at": "h"}, [{"key": null}], "key"], "dotted.name": "x",
        });

        let shown = mask(&arguments, &["token", "login.password", "hosts.key", "dotted.name", "missing", "to.x", ""]);

        assert_eq!(
            shown,
            json!({
                "token": "***", "to": "ann", "login": {"password": "***", "name": "bob"},
                "hosts": [{"key": "***", "at": "h"}, [{"key": "***"}], "key"], "dotted.name": "***",
            })
        );
    }

    #[test]
    fn a_name_is_that_of_a_parameter_and_of_nothing_inside() {
        let shown = mask(&json!({"key": 1, "inner": {"key": 2}, "Key": 3}), &["key"]);

        assert_eq!(shown, json!({"key": "***", "inner": {"key": 2}, "Key": 3}));
    }
}
