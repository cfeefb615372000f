//! A strict JSON parser that reports duplicate keys, which `serde_json` accepts without notice.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The key under which `serde_json` passes a number of arbitrary precision.
pub(crate) const NUMBER: &str = "$serde_json::private::Number";

/// Parses one JSON value of at most 128 levels. The flag is true if an object in it has a key twice: the last value
/// counts then.
pub(crate) fn parse(text: &str) -> serde_json::Result<(Value, bool)> {
    let has_duplicates = Cell::new(false);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = StrictVisitor(&has_duplicates).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok((value, has_duplicates.get()))
}

/// True if parsing failed because the text is nested too deep.
pub(crate) fn is_too_deep(error: &serde_json::Error) -> bool {
    // `serde_json` offers no other way to find out.
    error.to_string().starts_with("recursion limit exceeded")
}

#[derive(Clone, Copy)]
struct StrictVisitor<'a>(&'a Cell<bool>);

impl<'de> DeserializeSeed<'de> for StrictVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for StrictVisitor<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::String(text))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if object.is_empty() && key == NUMBER {
                let digits = entries.next_value::<String>()?;
                return digits.parse::<Number>().map(Value::Number).map_err(A::Error::custom);
            }
            if object.insert(key, entries.next_value_seed(self)?).is_some() {
                self.0.set(true);
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn strict_json_is_what_serde_reads() {
        let text = r#"{"a": [1, -2.50, 1e400, 123456789012345678901234567890, true, null, "\u00fc"], "b": {"c": {}}}"#;

        let (value, has_duplicates) = parse(text).expect("JSON");

        assert_eq!(value, serde_json::from_str::<Value>(text).expect("JSON"));
        assert!(!has_duplicates);
    }

    #[test]
    fn a_key_that_comes_twice_is_seen_at_any_depth() {
        let (value, has_duplicates) = parse(r#"{"a": [{"b": 1, "c": 2, "b": 3}]}"#).expect("JSON");

        assert!(has_duplicates);
        assert_eq!(value, json!({"a": [{"b": 3, "c": 2}]}));
    }

    #[test]
    fn what_is_too_deep_is_refused_and_known_as_such() {
        let error = parse(&"[".repeat(100_000)).expect_err("too deep");

        assert!(is_too_deep(&error));
        assert!(!is_too_deep(&parse("[").expect_err("no JSON")));
    }
}
