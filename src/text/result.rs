//! Results of calls as text for the model.
//!
//! A result is untrusted content: nothing in it can end the element around it, or pass for a call or for an instruction.

use serde_json::{Value, json};

use super::TextFormat;
use super::escape::{harmless_name, push_text, spaced_json, word};

/// The result of a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CallResult<'a> {
    /// True if the call succeeded.
    pub success: bool,
    /// The value that the tool returned.
    pub data: Option<&'a Value>,
    /// The error message.
    pub error: Option<&'a str>,
}

/// Writes the result of a call in the form that belongs to the format of calls.
#[must_use]
pub fn format_tool_result(format: TextFormat, name: &str, result: &CallResult<'_>) -> String {
    match format {
        TextFormat::Xml => tool_result(name, result),
        TextFormat::Hermes | TextFormat::Function => {
            let content = json!({"name": name, "content": content(result)});
            format!("<tool_response>\n{}\n</tool_response>", spaced_json(&content))
        }
        TextFormat::Invoke => function_results(name, result),
        TextFormat::Fenced => {
            let mut entries = json!({"name": name, "success": result.success});
            if let Some(data) = result.data {
                entries["data"] = data.clone();
            }
            if let Some(error) = result.error {
                entries["error"] = error.into();
            }
            format!("```tool_result\n{}\n```", spaced_json(&entries))
        }
        TextFormat::React => match content(result) {
            Value::String(text) => format!("Observation: {}", word(&text)),
            content => format!("Observation: {}", spaced_json(&content)),
        },
    }
}

/// The data and the error in one value.
fn content(result: &CallResult<'_>) -> Value {
    match (result.error, result.data) {
        (Some(error), None) => json!({"error": error}),
        (Some(error), Some(data)) => json!({"error": error, "data": data}),
        (None, None) => Value::Null,
        (None, Some(data)) => data.clone(),
    }
}

/// The element `tool_result`, with an element for each entry and `item` for each item of a list.
fn tool_result(name: &str, result: &CallResult<'_>) -> String {
    let mut text = String::from("<tool_result>\n");
    push_line(&mut text, "name", name);
    push_line(&mut text, "success", if result.success { "true" } else { "false" });
    if let Some(data) = result.data {
        push_element(&mut text, "data", data, 1);
    }
    if let Some(error) = result.error {
        push_line(&mut text, "error", error);
    }
    text + "</tool_result>"
}

/// The element `function_results`, as models know it that are trained on `invoke`.
fn function_results(name: &str, result: &CallResult<'_>) -> String {
    let mut text = String::from("<function_results>\n");
    if let Some(error) = result.error {
        push_line(&mut text, "error", error);
    } else {
        text.push_str("  <result>\n  ");
        push_line(&mut text, "tool_name", name);
        push_element(&mut text, "stdout", result.data.unwrap_or(&Value::Null), 2);
        text.push_str("  </result>\n");
    }
    text + "</function_results>"
}

fn push_line(out: &mut String, tag: &str, text: &str) {
    out.push_str("  <");
    out.push_str(tag);
    out.push('>');
    push_text(out, text);
    out.push_str("</");
    out.push_str(tag);
    out.push_str(">\n");
}

/// Adds an element on lines of its own. The lines of a text are not indented, so that it is unchanged.
fn push_element(out: &mut String, key: &str, value: &Value, depth: usize) {
    let indent = |out: &mut String| out.extend(std::iter::repeat_n("  ", depth));
    let name = harmless_name(key);
    indent(out);
    out.push('<');
    out.push_str(&name);
    if name != key {
        out.push_str(" key=\"");
        push_attribute(out, key);
        out.push('"');
    }
    out.push('>');
    match value {
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            for item in items {
                push_element(out, "item", item, depth + 1);
            }
            indent(out);
        }
        Value::Object(entries) if !entries.is_empty() => {
            out.push('\n');
            for (key, entry) in entries {
                push_element(out, key, entry, depth + 1);
            }
            indent(out);
        }
        Value::Array(_) | Value::Object(_) => {}
        Value::String(text) => push_text(out, text),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
    out.push_str("</");
    out.push_str(&name);
    out.push_str(">\n");
}

/// Adds the value of an attribute, in which an XML parser reads a bare line break or tab as a blank.
fn push_attribute(out: &mut String, text: &str) {
    for part in text.split_inclusive(['\n', '\t']) {
        push_text(out, part.trim_end_matches(['\n', '\t']));
        match part.chars().next_back() {
            Some('\n') => out.push_str("&#10;"),
            Some('\t') => out.push_str("&#9;"),
            _ => {}
        }
    }
}
