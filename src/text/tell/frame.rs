//! What stands around the documentation of the tools.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::call::write_call;
use super::words::words;
use super::{Form, TAG};

/// Puts the documentation of each tool between what a model must know about calls as such.
///
/// `has_nested` says whether some tool asks for more than plain values and lists of them.
#[must_use]
pub fn frame(form: Form, documents: &[String], has_nested: bool) -> String {
    if documents.is_empty() {
        return format!("<{TAG}>\nNo tools available.\n</{TAG}>");
    }
    let words = words(form);
    let nested = words.nested.filter(|_| has_nested);
    let mut text = format!("<{TAG}>\n{}\n\n{}\n\n{}\n", words.introduction, sample(form), words.warning);
    for line in nested.into_iter().chain(["", "## Available tools"]) {
        text.push_str(line);
        text.push('\n');
    }
    for document in documents {
        text.push('\n');
        text.push_str(document);
    }
    text.push_str("\n## Guidelines\n");
    for (number, guideline) in (1..).zip(words.guidelines) {
        // A string takes all that is written to it.
        let _ = writeln!(text, "{number}. {guideline}");
    }
    text + "</" + TAG + ">"
}

fn sample(form: Form) -> String {
    let arguments: Map<String, Value> = [
        ("parameter_name".to_owned(), json!("value")),
        ("list_parameter".to_owned(), json!(["first item", "second item"])),
    ]
    .into_iter()
    .collect();
    write_call(form, "tool_name", &arguments)
}
