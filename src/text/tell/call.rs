//! A call as a model is to write it, in each form.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::Form;
use super::json::spaced;
use super::safe::word;
use crate::json::invisible::is_invisible;
use crate::text::name::element_name;

/// Writes a call the way that its reader expects it.
#[must_use]
pub fn write_call(form: Form, name: &str, arguments: &Map<String, Value>) -> String {
    match form {
        Form::Xml => xml(name, arguments),
        Form::Hermes => format!("<tool_call>\n{}\n</tool_call>", object(name, arguments)),
        Form::Function => {
            format!("<function={}>{}</function>", escaped(name), spaced(&Value::Object(arguments.clone())))
        }
        Form::Invoke => invoke(name, arguments),
        Form::Fenced => format!("```tool_call\n{}\n```", object(name, arguments)),
        Form::React => format!("Action: {}\nAction Input: {}", word(name), spaced(&Value::Object(arguments.clone()))),
    }
}

/// Whether an argument is written as JSON in the forms that write others as they are.
pub(super) fn has_nested(arguments: &Map<String, Value>) -> bool {
    arguments.values().any(|value| value.is_object() || value.as_array().is_some_and(|_| items(value).is_none()))
}

/// The call as one JSON object.
fn object(name: &str, arguments: &Map<String, Value>) -> String {
    format!("{{\"name\": {}, \"arguments\": {}}}", spaced(&name.into()), spaced(&Value::Object(arguments.clone())))
}

fn xml(name: &str, arguments: &Map<String, Value>) -> String {
    let name = if matches!(word(name), Cow::Borrowed(_)) { Cow::Borrowed(name) } else { Cow::Owned(cdata(name)) };
    let mut lines = vec!["<tool_call>".to_owned(), format!("  <name>{name}</name>"), "  <params>".to_owned()];
    for (key, value) in arguments {
        let (open, close) = tags(key);
        match items(value) {
            None => lines.push(format!("    {open}{}{close}", cdata(&plain(value)))),
            Some(items) => {
                lines.push(format!("    {open}"));
                lines.extend(items.iter().map(|item| format!("      <item>{}</item>", cdata(&plain(item)))));
                lines.push(format!("    {close}"));
            }
        }
    }
    if arguments.is_empty() {
        lines.push(String::new());
    }
    lines.extend(["  </params>".to_owned(), "</tool_call>".to_owned()]);
    lines.join("\n")
}

/// The tags around an argument: its key, or one that has the key as an attribute where it cannot be the name of an element.
fn tags(key: &str) -> (String, String) {
    let name = element_name(key);
    let is_attribute = !key.contains(['<', '>', '&', '"']) && !key.chars().any(is_invisible);
    if name != key && is_attribute {
        return (format!("<param name=\"{key}\">"), "</param>".to_owned());
    }
    (format!("<{name}>"), format!("</{name}>"))
}

fn invoke(name: &str, arguments: &Map<String, Value>) -> String {
    let is_raw = |text: &str| {
        let is_marked =
            ["parameter", "invoke"].iter().any(|tag| text.to_ascii_lowercase().contains(tag)) && text.contains('<');
        !is_marked && !text.starts_with(['\r', '\n']) && !text.ends_with(['\r', '\n'])
    };
    let mut text = format!("<invoke name=\"{}\">\n", escaped(name));
    if arguments.iter().all(|(key, value)| escaped(key) == *key && is_raw(&plain(value))) {
        for (key, value) in arguments {
            let _ = writeln!(text, "<parameter name=\"{key}\">{}</parameter>", plain(value));
        }
    } else {
        // Values stand between the tags as they are: one that has such tags in it cannot.
        text.push_str(&spaced(&Value::Object(arguments.clone())));
        text.push('\n');
    }
    text + "</invoke>"
}

/// The items of a list that can be written one by one.
fn items(value: &Value) -> Option<&[Value]> {
    let items = value.as_array()?;
    let is_flat = !items.is_empty() && !items.iter().any(|item| item.is_array() || item.is_object());
    is_flat.then_some(items)
}

/// A value as text: strings as they are, everything else as JSON.
fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        _ => Cow::Owned(spaced(value)),
    }
}

/// A section whose content is read as it is; what would end it is cut in two.
fn cdata(text: &str) -> String {
    format!("<![CDATA[{}]]>", text.replace("]]>", "]]]]><![CDATA[>"))
}

/// A name inside of a tag, where it stands as it is unless it would end the tag.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ if is_invisible(character) => {
                // A string takes all that is written to it.
                let _ = write!(escaped, "&#{};", u32::from(character));
            }
            _ => escaped.push(character),
        }
    }
    escaped
}
