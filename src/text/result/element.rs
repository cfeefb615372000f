//! Results as elements: entries by their keys, lists as items, at any depth.

use serde_json::Value;

use super::Outcome;
use super::escape::{harmless_name, push_text};

/// The element `tool_result`, which the description of the format tells models about.
pub(super) fn tool_result(name: &str, outcome: &Outcome<'_>) -> String {
    let mut text = String::from("<tool_result>\n");
    push_line(&mut text, "name", name);
    push_line(&mut text, "success", if outcome.success { "true" } else { "false" });
    if let Some(data) = outcome.data {
        push_element(&mut text, "data", data, 1);
    }
    if let Some(error) = outcome.error {
        push_line(&mut text, "error", error);
    }
    text + "</tool_result>"
}

/// The element `function_results`, as models know it that were trained on `invoke`.
pub(super) fn function_results(name: &str, outcome: &Outcome<'_>) -> String {
    let mut text = String::from("<function_results>\n");
    if let Some(error) = outcome.error {
        push_line(&mut text, "error", error);
    } else {
        text.push_str("  <result>\n  ");
        push_line(&mut text, "tool_name", name);
        push_element(&mut text, "stdout", outcome.data.unwrap_or(&Value::Null), 2);
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

/// Adds an element on lines of its own. Text stays as it is: its lines are not indented.
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

/// Adds text between quotes, where a reader takes every line break and tab for a blank unless it is spelt out.
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
