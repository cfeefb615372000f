//! A call in each format, for the model to imitate.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::TextFormat;
use crate::json::invisible::is_invisible;
use crate::text::escape::{element_name, spaced_json, word};

/// Writes a call.
#[must_use]
pub fn write_call(format: TextFormat, name: &str, arguments: &Map<String, Value>) -> String {
    match format {
        TextFormat::Xml => xml(name, arguments),
        TextFormat::Hermes => format!("<tool_call>\n{}\n</tool_call>", object(name, arguments)),
        TextFormat::Function => {
            format!("<function={}>{}</function>", escaped(name), spaced_json(&Value::Object(arguments.clone())))
        }
        TextFormat::Invoke => invoke(name, arguments),
        TextFormat::Fenced => format!("```tool_call\n{}\n```", object(name, arguments)),
        TextFormat::React => {
            format!("Action: {}\nAction Input: {}", word(name), spaced_json(&Value::Object(arguments.clone())))
        }
    }
}

/// True if an argument is written as JSON in the formats that write others as plain text.
pub(super) fn has_nested(arguments: &Map<String, Value>) -> bool {
    arguments.values().any(|value| value.is_object() || value.as_array().is_some_and(|_| items(value).is_none()))
}

/// The call as one JSON object.
fn object(name: &str, arguments: &Map<String, Value>) -> String {
    format!(
        "{{\"name\": {}, \"arguments\": {}}}",
        spaced_json(&name.into()),
        spaced_json(&Value::Object(arguments.clone()))
    )
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

/// The tags around an argument: its key, or an attribute with the key if that is not a valid element name.
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
        // A value with such tags in it cannot be written between them.
        text.push_str(&spaced_json(&Value::Object(arguments.clone())));
        text.push('\n');
    }
    text + "</invoke>"
}

/// The items of a flat list.
fn items(value: &Value) -> Option<&[Value]> {
    let items = value.as_array()?;
    let is_flat = !items.is_empty() && !items.iter().any(|item| item.is_array() || item.is_object());
    is_flat.then_some(items)
}

/// A value as text: strings unchanged, everything else as JSON.
fn plain(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        _ => Cow::Owned(spaced_json(value)),
    }
}

/// A CDATA section; a `]]>` in it is split in two.
fn cdata(text: &str) -> String {
    format!("<![CDATA[{}]]>", text.replace("]]>", "]]]]><![CDATA[>"))
}

/// A name inside a tag, with the characters escaped that would end it.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ if is_invisible(character) => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "&#{};", u32::from(character));
            }
            _ => escaped.push(character),
        }
    }
    escaped
}
