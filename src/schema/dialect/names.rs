//! Names that a provider accepts, made of names that it does not.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::Loss;

/// How much of a name is kept beside the digits that tell it from others.
const KEPT: usize = 50;

/// The name if it is accepted, else one that is: letters that are not accepted become underscores, and eight digits of the name's hash
/// keep two names apart that would look the same. It depends on nothing else, so that it stays the same whatever is registered.
pub(super) fn safe(name: &str, is_name: fn(&str) -> bool) -> Cow<'_, str> {
    if is_name(name) {
        return Cow::Borrowed(name);
    }
    let mut safe = String::with_capacity(KEPT + 10);
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        safe.push('_');
    }
    safe.extend(name.chars().take(KEPT).map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }));
    safe.push('_');
    for byte in &Sha256::digest(name.as_bytes())[..4] {
        let _ = write!(safe, "{byte:02x}");
    }
    Cow::Owned(safe)
}

/// What the model is told of a name that was changed.
pub(super) fn in_full(name: &str) -> String {
    format!("Its full name is `{}`.", super::words::short(name, 200))
}

/// What the report says of a tool's name that was changed.
pub(super) fn renamed(name: &str, safe: &str) -> Loss {
    Loss {
        path: String::new(),
        what: format!("name `{}`", super::words::short(name, 200)),
        instead: format!("it is called `{safe}`, and its full name is in the description"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::dialect::{gemini, openai};

    #[test]
    fn a_good_name_stays_and_a_bad_one_becomes_good() {
        for name in ["", "a.b", "größe", "1 2", "-", &"x".repeat(65), "\u{1f600}".repeat(100).as_str()] {
            for is_name in [openai::is_name as fn(&str) -> bool, gemini::is_tool_name] {
                let safe = safe(name, is_name);

                assert!(is_name(&safe), "{safe}");
            }
        }
        assert_eq!(safe("a-b_1", openai::is_name), "a-b_1");
    }

    #[test]
    fn names_that_look_alike_stay_apart() {
        assert_ne!(safe("a.b", openai::is_name), safe("a b", openai::is_name));
    }
}
