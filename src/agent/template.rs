//! Prompts with placeholders: `${name}` stands for the input of that name.

use std::borrow::Cow;
use std::fmt::Write as _;

use indexmap::IndexSet;
use serde_json::{Map, Number, Value};

use crate::json::number::is_integer_text;
use crate::{Error, Result};

/// A text with placeholders. Only `${word}` is one: with blanks, dots or without braces it is plain text.
///
/// ```
/// use serde_json::json;
/// use toolcrib::agent::Template;
///
/// let template = Template::parse("Find ${count} of ${names}.");
///
/// let text = template.render(json!({"count": 2, "names": ["a", "b"]}).as_object().expect("an object"))?;
/// assert_eq!(text, "Find 2 of a,b.");
/// # Ok::<(), toolcrib::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    source: String,
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Input(String),
}

impl Template {
    /// Parses a text; every text is a template.
    #[must_use]
    pub fn parse(source: &str) -> Self {
        let mut parts = Vec::new();
        let (mut text, mut rest) = (String::new(), source);
        while let Some(at) = rest.find("${") {
            let (before, inside) = (&rest[..at], &rest[at + 2..]);
            let end = inside.find(|letter: char| !is_word(letter)).unwrap_or(inside.len());
            if end > 0 && inside[end..].starts_with('}') {
                text.push_str(before);
                parts.push(TemplatePart::Text(std::mem::take(&mut text)));
                parts.push(TemplatePart::Input(inside[..end].to_owned()));
                rest = &inside[end + 1..];
            } else {
                text.push_str(&rest[..at + 2]);
                rest = inside;
            }
        }
        text.push_str(rest);
        parts.push(TemplatePart::Text(text));
        Self { source: source.to_owned(), parts }
    }

    /// The text as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names of its inputs, each once, in the order in which they appear.
    #[must_use]
    pub fn names(&self) -> IndexSet<&str> {
        let names = self.parts.iter().filter_map(|part| match part {
            TemplatePart::Input(name) => Some(name.as_str()),
            TemplatePart::Text(_) => None,
        });
        names.collect()
    }

    /// The text with every placeholder replaced.
    ///
    /// # Errors
    ///
    /// [`Error::MissingInputs`] with all inputs that are missing.
    pub fn render(&self, inputs: &Map<String, Value>) -> Result<String> {
        refuse_missing([self], inputs)?;
        Ok(self.fill(inputs))
    }

    /// The same where every input is known to be there.
    pub(super) fn fill(&self, inputs: &Map<String, Value>) -> String {
        let parts = self.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => Cow::Borrowed(text.as_str()),
            TemplatePart::Input(name) => inputs.get(name).map_or(Cow::Borrowed(""), text_of),
        });
        parts.collect()
    }
}

/// Refuses inputs that lack a name of one of the templates.
pub(super) fn refuse_missing<'a>(
    templates: impl IntoIterator<Item = &'a Template>,
    inputs: &Map<String, Value>,
) -> Result<()> {
    let names: IndexSet<&str> = templates.into_iter().flat_map(Template::names).collect();
    let missing: Vec<&str> = names.into_iter().filter(|name| !inputs.contains_key(*name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let available: Vec<&str> = inputs.keys().map(String::as_str).collect();
    Err(Error::MissingInputs { missing: missing.join(", "), available: available.join(", ") })
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// A value as text, as JavaScript writes it: a list is joined by commas, and null in a list is empty. Only an object differs: it
/// is written as JSON, where JavaScript says nothing about its content.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => "null".into(),
        Value::Bool(flag) => if *flag { "true" } else { "false" }.into(),
        Value::Number(number) => number_text(number),
        Value::String(text) => text.into(),
        Value::Array(items) => {
            let item = |item| if matches!(item, &Value::Null) { Cow::Borrowed("") } else { text_of(item) };
            items.iter().map(item).collect::<Vec<_>>().join(",").into()
        }
        Value::Object(_) => value.to_string().into(),
    }
}

/// A number as text: integers with all digits, fractions as JavaScript writes them.
fn number_text(number: &Number) -> Cow<'_, str> {
    let text = number.as_str();
    match text.parse::<f64>() {
        Ok(float) if !is_integer_text(text) && float.is_finite() => float_text(float).into(),
        _ => text.into(),
    }
}

/// The shortest digits of a float, with an exponent from 1e21 upwards and below 1e-6.
fn float_text(float: f64) -> String {
    if float == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{float:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    match exponent.parse::<i32>().unwrap_or_default() {
        -7.. if float.abs() < 1e21 && float.abs() >= 1e-6 => format!("{float}"),
        exponent => {
            let mut text = mantissa.to_owned();
            let _ = write!(text, "e{exponent:+}");
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendered(template: &str, inputs: &Value) -> Result<String> {
        Template::parse(template).render(inputs.as_object().unwrap())
    }

    #[test]
    fn only_a_word_in_braces_is_a_placeholder() {
        let inputs = json!({"a": 1});

        for text in ["${}", "${", "$", "${a", "${ a}", "${a.b}", "$a", "{a}", "${a-b}", "$ {a}"] {
            assert_eq!(rendered(text, &inputs).as_deref(), Ok(text));
        }
        assert_eq!(rendered("$${a}}${${a}", &inputs).as_deref(), Ok("$1}${1"));
    }

    #[test]
    fn a_value_is_never_read_as_a_template() {
        assert_eq!(rendered("${a} ${b}", &json!({"a": "${b}", "b": "x"})).as_deref(), Ok("${b} x"));
    }

    #[test]
    fn values_are_written_as_in_javascript() {
        let cases = [
            (json!(1.0), "1"),
            (json!(-0.5), "-0.5"),
            (json!(1e21), "1e+21"),
            (json!(123_456_789.125), "123456789.125"),
            (json!(1e-7), "1e-7"),
            (json!(0.000_001), "0.000001"),
            (json!(true), "true"),
            (json!(null), "null"),
            (json!([1, null, [2, "x"], []]), "1,,2,x,"),
            (json!([]), ""),
            (json!({"b": [1], "a": null}), "{\"b\":[1],\"a\":null}"),
        ];
        for (value, text) in cases {
            assert_eq!(rendered("${v}", &json!({"v": value})).as_deref(), Ok(text));
        }
        let digits = "1".repeat(40);
        let value: Value = serde_json::from_str(&digits).unwrap();
        assert_eq!(rendered("${v}", &json!({"v": value})), Ok(digits));
    }

    #[test]
    fn every_missing_input_is_named_once() {
        let error = rendered("${b} ${a} ${b}", &json!({"x": 1, "y": 2})).unwrap_err();

        let text = "Template validation failed: Missing required input parameters: b, a. Available inputs: x, y";
        assert_eq!(error.to_string(), text);
    }
}
