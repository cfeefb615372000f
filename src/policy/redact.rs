//! Redaction: arguments, and problems with them, without their secrets.
//!
//! A secret is named by its parameter, or by a path with dots: `token` or `login.password`. The
//! path leads through arrays, to each of their items, and a name may contain dots. A value whose shape is not the declared one, such
//! as the JSON text of an object, is hidden as a whole if it could contain a secret, and so is each undeclared value beside one.

use std::iter;

use serde_json::{Map, Value};

use crate::near::is_near;
use crate::schema::check::{HIDDEN, Problem, ValuePath};
use crate::schema::shape::{Entry, Shape};

/// The most lists in lists that are looked through for the declaration of an object.
const MAX_LISTS: usize = 8;

/// The secrets of a tool, and the parameters that may be shown.
///
/// ```
/// use serde_json::json;
/// use toolcrib::policy::Redaction;
///
/// let parameters = json!({"properties": {"user": {}, "password": {}}});
/// let secrets = ["password".into()];
/// let redaction = Redaction::new(&secrets, &parameters);
///
/// let shown = redaction.arguments(&json!({"user": "ann", "Password": "x"}));
/// assert_eq!(shown, json!({"user": "ann", "Password": "***"}));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Redaction<'a> {
    secrets: &'a [Box<str>],
    /// The schema of the parameters, and those that the model was shown.
    schema: &'a Value,
    parameters: Option<&'a Map<String, Value>>,
    /// True if the tool accepts other names, too.
    is_open: bool,
}

impl<'a> Redaction<'a> {
    /// Makes the redaction of a tool with these secrets and this schema of its parameters.
    #[must_use]
    pub fn new(secrets: &'a [Box<str>], parameters: &'a Value) -> Self {
        let is_open = parameters.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false))
            || parameters.get("patternProperties").is_some();
        let (schema, parameters) = (parameters, parameters.get("properties").and_then(Value::as_object));
        Self { secrets, schema, parameters, is_open: is_open || parameters.is_none() }
    }

    /// True if the tool has no secrets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Hides every secret in arguments that the tool may run with.
    ///
    /// A name that is almost that of a secret counts as the secret, and so does a name that the tool does not have: a model that
    /// misspells a name has sent the secret all the same.
    #[must_use]
    pub fn arguments(&self, arguments: &Value) -> Value {
        let mut shown = arguments.clone();
        if self.is_empty() {
            return shown;
        }
        if let Value::Object(entries) = &mut shown {
            for (name, value) in entries {
                if !self.is_open && !self.is_parameter(name) {
                    *value = HIDDEN.into();
                }
            }
        }
        let shape = Shape::of(self.schema);
        for secret in self.secrets {
            self.hide(&mut shown, secret, Some(&shape), true);
        }
        shown
    }

    /// Hides everything but parameters without a secret, in arguments that were not validated.
    #[must_use]
    pub fn unchecked(&self, sent: Value) -> Value {
        if self.is_empty() {
            return sent;
        }
        let Value::Object(mut entries) = sent else { return HIDDEN.into() };
        for (name, value) in &mut entries {
            let is_secret = self.secrets.iter().any(|secret| self.touches(secret, iter::once(name.as_str())));
            if is_secret || !self.is_parameter(name) {
                *value = HIDDEN.into();
            }
        }
        Value::Object(entries)
    }

    /// Hides the values of secrets in problems with arguments.
    #[must_use]
    pub fn problems(&self, problems: Vec<Problem>) -> Vec<Problem> {
        if self.is_empty() {
            return problems;
        }
        let redact = |mut problem: Problem| {
            if !self.is_public(&problem.path) {
                problem.found = problem.found.hidden();
            }
            problem
        };
        problems.into_iter().map(redact).collect()
    }

    /// True if the value at a path may be shown; false for a path that is not known exactly.
    #[must_use]
    pub fn is_public(&self, path: &ValuePath) -> bool {
        if self.is_empty() {
            return true;
        }
        let first = path.keys().and_then(|mut keys| keys.next());
        first.is_some_and(|first| self.is_parameter(first))
            && !self.secrets.iter().any(|secret| path.keys().is_none_or(|keys| self.touches(secret, keys)))
    }

    /// The texts of the secrets in arguments that the tool ran with: those that [`mask`] hides.
    #[must_use]
    pub fn secret_texts(&self, arguments: &Value) -> Vec<String> {
        let mut texts = Vec::new();
        collect_hidden(arguments, &self.arguments(arguments), &mut texts);
        texts
    }

    fn is_parameter(&self, name: &str) -> bool {
        self.parameters.is_some_and(|parameters| parameters.contains_key(name))
    }

    /// True if the path of a secret leads to the value at the keys, into it, or through it, or if the value lies undeclared beside the
    /// secret. Keys do not show the lists that they lead through.
    fn touches<'k>(&self, path: &str, keys: impl Iterator<Item = &'k str>) -> bool {
        let mut rest = path;
        let mut object = Some(Shape::of(self.schema));
        for (place, key) in keys.enumerate() {
            if rest == key {
                return true;
            }
            let Some(inside) = rest.strip_prefix(key).and_then(|rest| rest.strip_prefix('.')) else {
                return place > 0 && !object.is_some_and(|object| object.names().contains(&key));
            };
            rest = inside;
            object = object.and_then(|object| match object.entry(key) {
                Entry::Declared(entry) => {
                    iter::successors(Some(entry), Shape::items).take(MAX_LISTS).find(|shape| !shape.names().is_empty())
                }
                Entry::Undeclared | Entry::Unknown => None,
            });
        }
        true
    }

    /// Hides the value at a path, also under a name that is almost the right one, or in a value that is not of its declared shape.
    fn hide(&self, value: &mut Value, path: &str, shape: Option<&Shape<'_>>, is_top: bool) {
        match value {
            Value::Object(entries) => {
                let wanted = path.split('.').next().unwrap_or_default();
                let has_wanted = entries.contains_key(path) || entries.contains_key(wanted);
                let declared = shape.map(Shape::names).unwrap_or_default();
                for (name, entry) in entries {
                    // A name may contain dots.
                    if name == path {
                        *entry = HIDDEN.into();
                        continue;
                    }
                    if let Some(rest) = path.strip_prefix(name.as_str()).and_then(|rest| rest.strip_prefix('.')) {
                        match shape.map(|shape| shape.entry(name)) {
                            Some(Entry::Declared(inner)) => self.hide(entry, rest, Some(&inner), false),
                            Some(Entry::Undeclared | Entry::Unknown) | None => self.hide(entry, rest, None, false),
                        }
                    } else if is_top {
                        if is_near(name, wanted) && !self.is_parameter(name) {
                            *entry = HIDDEN.into();
                        }
                    } else if !declared.contains(&name.as_str()) || (is_near(name, wanted) && !has_wanted) {
                        // A value that is not declared may be the secret, or contain it, under any name.
                        *entry = HIDDEN.into();
                    }
                }
            }
            Value::Array(items) if is_top || shape.is_none_or(|shape| shape.allows("array")) => {
                let inner = shape.and_then(Shape::items);
                for item in items {
                    self.hide(item, path, inner.as_ref(), is_top);
                }
            }
            // The secret is somewhere inside, such as in JSON text.
            Value::Array(_) | Value::String(_) | Value::Number(_) if !is_top => *value = HIDDEN.into(),
            _ => {}
        }
    }
}

/// Collects the texts of the values that are hidden in the redacted form.
fn collect_hidden(value: &Value, shown: &Value, texts: &mut Vec<String>) {
    match (value, shown) {
        (value, shown) if value == shown => {}
        (Value::Object(entries), Value::Object(shown)) => {
            for (name, entry) in entries {
                collect_hidden(entry, shown.get(name).unwrap_or(&Value::Null), texts);
            }
        }
        (Value::Array(items), Value::Array(shown)) => {
            items.iter().zip(shown).for_each(|(item, shown)| collect_hidden(item, shown, texts));
        }
        (value, _) => collect_texts(value, texts),
    }
}

/// Collects the texts and numbers in a value.
fn collect_texts(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            texts.push(text.clone());
            // The parts of JSON text are secrets, too: the tool may read and repeat them.
            if text.starts_with(['{', '['])
                && let Ok(inner @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str(text)
            {
                collect_texts(&inner, texts);
            }
        }
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(entries) => entries.values().for_each(|entry| collect_texts(entry, texts)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// The shortest secret, in characters, that is hidden inside of words too.
const DISTINCTIVE: usize = 4;

/// Hides secrets in a text, also where it quotes them with escapes or cuts them off. A short secret is hidden only as a word of
/// its own: the digit of a preset `1` is part of many numbers.
///
/// ```
/// use toolcrib::policy::mask;
///
/// let secrets = ["hunter2".to_owned(), "7".to_owned()];
/// assert_eq!(mask("no user with 'hunter2' in room 7 of 77", &secrets), "no user with '***' in room *** of 77");
/// assert_eq!(mask("login with hunte...", &secrets), "login with ***...");
/// ```
#[must_use]
pub fn mask(text: &str, secrets: &[String]) -> String {
    let mut forms: Vec<String> = secrets.iter().flat_map(|secret| quoted_forms(secret)).collect();
    // A secret may be part of another one.
    forms.sort_by(|one, other| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
    forms.dedup();
    forms.iter().filter(|form| !form.is_empty()).fold(text.to_owned(), |text, form| {
        if form.chars().count() < DISTINCTIVE {
            return mask_words(&text, form);
        }
        mask_cut(&text.replace(form.as_str(), HIDDEN), form)
    })
}

/// Hides the beginning of a secret where the text ends in it, or goes on with dots.
fn mask_cut(text: &str, secret: &str) -> String {
    let shortest: String = secret.chars().take(DISTINCTIVE).collect();
    let mut masked = String::with_capacity(text.len());
    let mut rest = 0;
    for (at, _) in text.match_indices(&shortest) {
        let same = text[at..].chars().zip(secret.chars()).take_while(|(shown, secret)| shown == secret);
        let end = at + same.map(|(shown, _)| shown.len_utf8()).sum::<usize>();
        let after = &text[end..];
        if at >= rest && (after.is_empty() || after.starts_with("...") || after.starts_with('…')) {
            masked.push_str(&text[rest..at]);
            masked.push_str(HIDDEN);
            rest = end;
        }
    }
    masked.push_str(&text[rest..]);
    masked
}

/// A secret as it is, as a JSON string has it, and as Python's `repr` has it.
fn quoted_forms(secret: &str) -> [String; 3] {
    let json = Value::from(secret).to_string();
    let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned();
    let python = secret.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
    [secret.to_owned(), json, python]
}

/// Hides a secret where no letter or digit is next to it.
fn mask_words(text: &str, secret: &str) -> String {
    let is_word = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
    let mut masked = String::with_capacity(text.len());
    let mut rest = 0;
    for (at, found) in text.match_indices(secret) {
        if is_word(text[..at].chars().next_back()) || is_word(text[at + found.len()..].chars().next()) {
            continue;
        }
        masked.push_str(&text[rest..at]);
        masked.push_str(HIDDEN);
        rest = at + found.len();
    }
    masked.push_str(&text[rest..]);
    masked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::check::Found;

    fn names(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| Box::from(*name)).collect()
    }

    fn shown(arguments: &Value, secrets: &[&str]) -> Value {
        Redaction::new(&names(secrets), &json!({})).arguments(arguments)
    }

    #[test]
    fn secrets_are_hidden_by_name_and_by_path() {
        let arguments = json!({
            "token": {"a": 1}, "to": "ann", "login": {"password": "x", "name": "bob"},
            "hosts": [{"key": 1, "at": "h"}, [{"key": null}], "key"], "dotted.name": "x",
        });
        let parameters = json!({"properties": {
            "login": {"properties": {"name": {}}}, "hosts": {"items": {"$ref": "#/$defs/Host"}},
        }, "additionalProperties": true, "$defs": {"Host": {"properties": {"at": {}}, "items": {}}}});
        let secrets = names(&["token", "login.password", "hosts.key", "dotted.name", "missing", "to.x", ""]);

        let shown = Redaction::new(&secrets, &parameters).arguments(&arguments);

        assert_eq!(
            shown,
            json!({
                "token": "***", "to": "***", "login": {"password": "***", "name": "bob"},
                "hosts": [{"key": "***", "at": "h"}, [{"key": "***"}], "***"], "dotted.name": "***",
            })
        );
    }

    #[test]
    fn a_name_is_that_of_a_parameter_and_of_nothing_inside() {
        let shown = shown(&json!({"key": 1, "inner": {"key": 2}}), &["key"]);

        assert_eq!(shown, json!({"key": "***", "inner": {"key": 2}}));
    }

    #[test]
    fn a_misspelt_secret_is_a_secret() {
        let login = json!({"properties": {"host": {}}});
        let parameters = json!({"properties": {"user": {}, "password": {}, "login": login, "pass_word": {}}});
        let secrets = names(&["password", "login.api_key"]);
        let redaction = Redaction::new(&secrets, &parameters);

        let shown = redaction.arguments(&json!({
            "user": "ann", "Password": "x", "pw": "x", "pass_word": "declared", "login": {"apiKey": "x", "host": "h"},
        }));

        assert_eq!(
            shown,
            json!({"user": "ann", "Password": "***", "pw": "***", "pass_word": "declared",
                   "login": {"apiKey": "***", "host": "h"}})
        );
    }

    #[test]
    fn a_value_that_is_not_of_its_declared_shape_is_a_secret() {
        let parameters = json!({
            "properties": {"opts": {"$ref": "#/$defs/Opts"}, "many": {"type": "array", "items": {"$ref": "#/$defs/Opts"}}},
            "$defs": {"Opts": {"type": "object", "properties": {"password": {}, "name": {}, "inner": {"type": "object"}}}},
        });
        let secrets = names(&["opts.password", "opts.inner.key", "many.password"]);
        let redaction = Redaction::new(&secrets, &parameters);

        for (sent, shown) in [
            (json!({"name": "bob", "password": "x"}), json!({"name": "bob", "password": "***"})),
            (json!({"name": "bob", "data": "{\"password\": 1}"}), json!({"name": "bob", "data": "***"})),
            (json!({"inner": "{\"key\": 1}"}), json!({"inner": "***"})),
            (json!({"opts": {"password": "x"}}), json!({"opts": "***"})),
            (json!({"opts.password": "x"}), json!({"opts.password": "***"})),
            (json!({"inner": {"key": 1, "other": 2}}), json!({"inner": {"key": "***", "other": "***"}})),
            (json!("{\"password\": \"x\"}"), json!("***")),
            (json!([{"password": "x"}]), json!("***")),
            (json!([{"key": "password", "value": "x"}]), json!("***")),
            (json!([["password", "x"]]), json!("***")),
            (json!(1234), json!("***")),
            (json!(null), json!(null)),
        ] {
            assert_eq!(redaction.arguments(&json!({"opts": sent}))["opts"], shown, "{sent}");
        }
        let shown =
            redaction.arguments(&json!({"many": [{"password": "x", "name": "bob"}, "{\"password\": 1}", ["x"]]}));
        assert_eq!(shown, json!({"many": [{"password": "***", "name": "bob"}, "***", "***"]}));
        assert_eq!(redaction.secret_texts(&json!({"opts": "{\"password\": \"x\"}"})), ["{\"password\": \"x\"}", "x"]);
    }

    #[test]
    fn other_names_of_an_open_tool_are_shown_unless_they_are_almost_a_secret() {
        let parameters = json!({"properties": {"token": {}}, "additionalProperties": true});
        let secrets = names(&["token"]);

        let shown = Redaction::new(&secrets, &parameters).arguments(&json!({"tokn": 1, "query": 2}));

        assert_eq!(shown, json!({"tokn": "***", "query": 2}));
    }

    #[test]
    fn arguments_that_do_not_fit_show_plain_parameters_only() {
        let parameters = json!({"properties": {"user": {}, "login": {}}, "additionalProperties": true});
        let secrets = names(&["login.password"]);
        let redaction = Redaction::new(&secrets, &parameters);

        assert_eq!(
            redaction.unchecked(json!({"user": 1, "login": {"name": 2}, "more": 3})),
            json!({"user": 1, "login": "***", "more": "***"})
        );
        assert_eq!(redaction.unchecked(json!("text")), json!("***"));
    }

    #[test]
    fn a_text_is_masked_in_every_form_of_a_secret() {
        let secrets =
            ["hunter2".to_owned(), "hunter".to_owned(), "it's\n\"x\"".to_owned(), "7".to_owned(), String::new()];

        assert_eq!(mask("hunter2 hunters", &secrets), "*** ***s");
        assert_eq!(mask(r#"KeyError: 'it\'s\n"x"'"#, &secrets), "KeyError: '***'");
        assert_eq!(mask(r#"{"a": "it's\n\"x\""}"#, &secrets), r#"{"a": "***"}"#);
        assert_eq!(mask("7 of 77: x7", &secrets), "*** of 77: x7");
        assert_eq!(mask("nothing here", &secrets), "nothing here");
    }

    #[test]
    fn the_secrets_of_arguments_are_all_texts_that_are_hidden() {
        let secrets = names(&["token", "login.password"]);
        let arguments =
            json!({"token": ["a", {"b": 12}, true, null], "to": "ann", "login": {"password": "x", "name": "bob"}});
        let parameters = json!({"additionalProperties": true, "properties": {"login": {"properties": {"name": {}}}}});

        let texts = Redaction::new(&secrets, &parameters).secret_texts(&arguments);

        assert_eq!(texts, ["a", "12", "x"]);
    }

    #[test]
    fn a_problem_at_a_secret_does_not_show_it() {
        let login = json!({"properties": {"name": {}}});
        let many = json!({"items": {"items": login}});
        let parameters = json!({"properties": {"user": {}, "login": login, "hosts": {}, "many": many}});
        let secrets = names(&["login.password", "hosts", "many.password"]);
        let redaction = Redaction::new(&secrets, &parameters);
        let problem = |path: &str, found: Found| Problem { path: path.into(), expected: "x".into(), found };
        let text = || Found::of(&json!("hunter2"));

        let said: Vec<String> = redaction
            .problems(vec![
                problem("user", text()),
                problem("login.name", text()),
                problem("many[0][1].name", text()),
                problem("login.password", text()),
                problem("login.other", text()),
                problem("login.other.password", text()),
                problem("many[0][1].other", text()),
                problem("login", text()),
                problem("hosts[3].key", text()),
                problem("other", text()),
                problem("user", Found::Other("an object of type X".to_owned())),
                problem("hosts", Found::Other("an object of type X".to_owned())),
                problem("hosts", Found::NOTHING),
                problem("", text()),
                problem("user[\"a b\"]", text()),
            ])
            .into_iter()
            .map(|problem| problem.found.to_string())
            .collect();

        let (open, hidden) = ("\"hunter2\" (a string)", "*** (a string)");
        assert_eq!(
            said,
            [
                open,
                open,
                open,
                hidden,
                hidden,
                hidden,
                hidden,
                hidden,
                hidden,
                hidden,
                "an object of type X",
                "***",
                "nothing",
                hidden,
                hidden
            ]
        );
    }
}
