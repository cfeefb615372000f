//! Equality of values: `uniqueItems` in linear time, whatever the items are, and `const` and `enum`.
//!
//! Every value is written in one canonical form, so that items are equal exactly if their forms are: numbers by value (`1`, `1.0` and `1e0` are
//! one number, `-0.0` is `0`, and integers of any length keep all their digits), objects without regard to the order of their keys. Sets
//! of these forms need no comparison of items with one another. `jsonschema` hashes numbers by their `f64`, which integers beyond 64 bits share.

use std::collections::HashSet;

use jsonschema::{
    JsonType, Keyword, ValidationError,
    json::{Array as _, Json, JsonNumber as _, Node, Object as _, SerdeJson},
};
use serde_json::{Map, Value};

use super::value::{JsonLike, ValueKind};
use crate::json::number::Digits;

/// The depth beyond which values are not compared; arguments that are deeper are refused before.
const DEPTH: usize = 256;

/// True if all items of an array are scalars and no two of them are equal. Only scalars, because the depth of the arguments is not known yet.
pub(super) fn are_unique_scalars<S: JsonLike>(value: &S) -> bool {
    let mut seen = HashSet::with_capacity(value.length());
    value.every_item(|item| {
        let is_scalar = !matches!(item.kind(), ValueKind::Array | ValueKind::Object | ValueKind::Other);
        is_scalar && form::<S::Form>(&item.node()).is_some_and(|form| seen.insert(form))
    })
}

/// The keyword for one schema.
pub(super) struct UniqueItems {
    is_asked: bool,
}

impl UniqueItems {
    /// Creates the keyword; called by `jsonschema` for a schema that has it.
    #[allow(clippy::unnecessary_wraps, reason = "the signature is that of a factory, which may fail")]
    pub(super) fn make<'a, F: Json>(
        _: &'a Map<String, Value>,
        value: &'a Value,
        _: jsonschema::paths::Location,
    ) -> Result<Box<dyn for<'i> Keyword<'i, F>>, ValidationError<'a>> {
        Ok(Box::new(Self { is_asked: *value == Value::Bool(true) }))
    }
}

impl<'i, F: Json> Keyword<'i, F> for UniqueItems {
    fn validate(&self, instance: F::Node<'i>) -> Result<(), ValidationError<'i>> {
        let is_valid = Keyword::<F>::is_valid(self, instance);
        if is_valid { Ok(()) } else { Err(ValidationError::custom("the items are not unique")) }
    }

    fn is_valid(&self, instance: F::Node<'i>) -> bool {
        let Some(items) = instance.as_array().filter(|_| self.is_asked) else { return true };
        let mut seen = HashSet::with_capacity(items.len());
        items.elements().all(|item| form::<F>(&item).is_some_and(|form| seen.insert(form)))
    }
}

/// The keywords `const` and `enum` for one schema.
pub(super) struct ListedValues {
    forms: HashSet<Box<[u8]>>,
}

impl ListedValues {
    /// Creates the keyword `const`.
    #[allow(clippy::unnecessary_wraps, reason = "the signature is that of a factory, which may fail")]
    pub(super) fn make_const<'a, F: Json>(
        _: &'a Map<String, Value>,
        value: &'a Value,
        _: jsonschema::paths::Location,
    ) -> Result<Box<dyn for<'i> Keyword<'i, F>>, ValidationError<'a>> {
        Ok(Box::new(Self { forms: form::<SerdeJson>(&value).into_iter().collect() }))
    }

    /// Creates the keyword `enum`.
    #[allow(clippy::unnecessary_wraps, reason = "the signature is that of a factory, which may fail")]
    pub(super) fn make_enum<'a, F: Json>(
        _: &'a Map<String, Value>,
        values: &'a Value,
        _: jsonschema::paths::Location,
    ) -> Result<Box<dyn for<'i> Keyword<'i, F>>, ValidationError<'a>> {
        let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Box::new(Self { forms: values.iter().filter_map(|value| form::<SerdeJson>(&value)).collect() }))
    }
}

impl<'i, F: Json> Keyword<'i, F> for ListedValues {
    fn validate(&self, instance: F::Node<'i>) -> Result<(), ValidationError<'i>> {
        let is_valid = Keyword::<F>::is_valid(self, instance);
        if is_valid { Ok(()) } else { Err(ValidationError::custom("the value is not listed")) }
    }

    fn is_valid(&self, instance: F::Node<'i>) -> bool {
        form::<F>(&instance).is_some_and(|form| self.forms.contains(&form))
    }
}

/// The canonical form of a value; `None` if it is too deep.
fn form<F: Json>(value: &F::Node<'_>) -> Option<Box<[u8]>> {
    let mut form = Vec::new();
    write::<F>(value, DEPTH, &mut form)?;
    Some(form.into_boxed_slice())
}

fn write<F: Json>(value: &F::Node<'_>, depth: usize, form: &mut Vec<u8>) -> Option<()> {
    match value.json_type() {
        JsonType::Null => form.push(b'n'),
        JsonType::Boolean => form.push(if value.as_boolean()? { b't' } else { b'f' }),
        JsonType::Integer | JsonType::Number => write_number(&value.as_number()?.as_str(), form),
        JsonType::String => write_text(&value.as_string()?, form),
        JsonType::Array => {
            let depth = depth.checked_sub(1)?;
            let items = value.as_array()?;
            form.push(b'[');
            for item in items.elements() {
                write::<F>(&item, depth, form)?;
            }
            form.push(b']');
        }
        JsonType::Object => {
            let depth = depth.checked_sub(1)?;
            let members = value.as_object()?.members();
            let mut members: Vec<_> = members.map(|(name, value)| (name.as_ref().to_owned(), value)).collect();
            members.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            form.push(b'{');
            for (name, value) in &members {
                write_text(name, form);
                write::<F>(value, depth, form)?;
            }
            form.push(b'}');
        }
    }
    Some(())
}

/// Writes a string after its length, so that no string can continue into what follows.
fn write_text(text: &str, form: &mut Vec<u8>) {
    form.push(b'"');
    form.extend_from_slice(&text.len().to_le_bytes());
    form.extend_from_slice(text.as_bytes());
}

/// Writes a number as its sign, its significant digits, and the power of ten of the first of them.
fn write_number(text: &str, form: &mut Vec<u8>) {
    let digits = Digits::read(text);
    if digits.is_zero() {
        form.extend_from_slice(b"0;");
        return;
    }
    form.push(if digits.is_negative { b'-' } else { b'+' });
    form.extend(digits.iter());
    form.push(b'e');
    if digits.is_exact {
        form.extend_from_slice(digits.power.to_string().as_bytes());
    } else {
        // Such numbers cannot be computed with: they are equal only if they are written the same.
        form.extend_from_slice(text.as_bytes());
    }
    form.push(b';');
}

#[cfg(test)]
mod tests {
    use jsonschema::json::SerdeJson;
    use serde_json::Value;

    use super::form;

    fn of(text: &str) -> Box<[u8]> {
        let value: Value = serde_json::from_str(text).unwrap();
        form::<SerdeJson>(&&value).unwrap()
    }

    #[test]
    fn equal_numbers_have_one_form() {
        for (one, other) in [
            ("1", "1.0"),
            ("1", "10e-1"),
            ("100", "1e2"),
            ("100", "1E+2"),
            ("0", "-0.0"),
            ("0", "0e99999999999999999999999999"),
            ("0.5", "5e-1"),
            ("1000000000000000000000000000000", "1e30"),
            ("-120", "-1.2e2"),
            (r#"{"a": [1, "x"], "b": 2}"#, r#"{"b": 2.0, "a": [1e0, "x"]}"#),
        ] {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn different_values_have_different_forms() {
        let values = [
            "0",
            "1",
            "-1",
            "10",
            "0.1",
            "11",
            "1e1000",
            "1e99999999999999999999999999",
            "null",
            "true",
            "false",
            "\"\"",
            "\"1\"",
            "\"null\"",
            "[]",
            "[1]",
            "[[]]",
            "[1, 2]",
            "[12]",
            "{}",
            "[{}]",
            r#"{"a": 1}"#,
            r#"{"a": "1"}"#,
            r#"{"a": 1, "b": 1}"#,
            r#"["a", "b"]"#,
            r#"["ab", ""]"#,
            r#"["a\"b"]"#,
            "1000000000000000000000000000001",
            "1000000000000000000000000000002",
            "9007199254740993",
            "9007199254740992",
            "0.1000000000000000055511151231257827",
        ];
        for (index, one) in values.iter().enumerate() {
            for other in &values[index + 1..] {
                assert_ne!(of(one), of(other), "{one} {other}");
            }
        }
    }
}
