//! Instructions for models without native tool calling: the tools, and how to write a call.
//!
//! This file has the frame: the sentences about each format. `document` describes one tool, `example` makes arguments that its
//! schema accepts, and `call` writes them as a call.

mod call;
mod document;
mod example;

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

pub use call::write_call;

use super::TextFormat;
use crate::schema::Document;

/// The element around the instructions.
const TAG: &str = "tool_instructions";

/// The description of one tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolDescription<'a> {
    /// The name that the model calls.
    pub name: &'a str,
    /// The purpose of the tool; may be empty.
    pub description: &'a str,
    /// The JSON Schema of its arguments.
    pub parameters: &'a Document,
}

/// Writes the instructions for these tools: the same text, byte for byte, for the same tools.
///
/// The description of a tool cannot break the structure: markup in it is escaped, and it cannot begin a line like a heading.
#[must_use]
pub fn instructions(format: TextFormat, tools: &[ToolDescription<'_>]) -> String {
    let (documents, nested): (Vec<String>, Vec<bool>) =
        tools.iter().map(|tool| document::document(format, tool)).unzip();
    frame(format, &documents, nested.contains(&true))
}

/// Writes the instructions around the documentation of each tool.
///
/// `has_nested` is true if a tool takes more than plain values and lists of them.
#[must_use]
pub fn frame(format: TextFormat, documents: &[String], has_nested: bool) -> String {
    if documents.is_empty() {
        return format!("<{TAG}>\nNo tools available.\n</{TAG}>");
    }
    let texts = texts(format);
    let nested = texts.nested.filter(|_| has_nested);
    let mut text = format!("<{TAG}>\n{}\n\n{}\n\n{}\n", texts.introduction, sample(format), texts.warning);
    for line in nested.into_iter().chain(["", "## Available tools"]) {
        text.push_str(line);
        text.push('\n');
    }
    for document in documents {
        text.push('\n');
        text.push_str(document);
    }
    text.push_str("\n## Guidelines\n");
    for (number, guideline) in (1..).zip(texts.guidelines) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{number}. {guideline}");
    }
    text + "</" + TAG + ">"
}

fn sample(format: TextFormat) -> String {
    let arguments: Map<String, Value> = [
        ("parameter_name".to_owned(), json!("value")),
        ("list_parameter".to_owned(), json!(["first item", "second item"])),
    ]
    .into_iter()
    .collect();
    write_call(format, "tool_name", &arguments)
}

/// The sentences about a format.
struct FormatTexts {
    /// The text before the sample of a call.
    introduction: &'static str,
    /// The most frequent mistake.
    warning: &'static str,
    /// The form of objects and nested lists, where the rest does not show it.
    nested: Option<&'static str>,
    /// The rules to follow.
    guidelines: [&'static str; 4],
}

const EXACT_NAME: &str = "Use the exact name of a tool that is listed above.";
const ALL_REQUIRED: &str = "Give every required parameter; leave out optional ones that you do not need.";
const ONE_CALL: &str = "Make one single call per turn, then stop and wait for its result.";
const STRICT_JSON: &str = "The JSON must be valid: double quotes around names and text, `\\n` for a line break in a text, \
                           no comments, no comma at the end.";

fn texts(format: TextFormat) -> FormatTexts {
    match format {
        TextFormat::Xml => FormatTexts {
            introduction: "You can use tools. To call one, write XML in exactly this form:",
            warning: "IMPORTANT: wrap every value in CDATA, as in <![CDATA[value]]>. Inside of it the characters <, > and & \
                      and line breaks are taken as they are; outside they break the call.",
            nested: Some("Write an object, or a list of objects or lists, as JSON inside of CDATA."),
            guidelines: [EXACT_NAME, ALL_REQUIRED, "Wrap every value in CDATA, always.", ONE_CALL],
        },
        TextFormat::Hermes => FormatTexts {
            introduction: "You can use tools. To call one, write its name and its arguments as a JSON object between these \
                           tags:",
            warning: STRICT_JSON,
            nested: None,
            guidelines: [
                EXACT_NAME,
                ALL_REQUIRED,
                "Write one JSON object between the tags, and nothing else.",
                ONE_CALL,
            ],
        },
        TextFormat::Function => FormatTexts {
            introduction: "You can use tools. To call one, write its name in the first tag, and its arguments as a JSON \
                           object before the second:",
            warning: STRICT_JSON,
            nested: None,
            guidelines: [
                EXACT_NAME,
                ALL_REQUIRED,
                "Write one JSON object between the tags, and nothing else.",
                ONE_CALL,
            ],
        },
        TextFormat::Invoke => FormatTexts {
            introduction: "You can use tools. To call one, write its name and one element for each argument in exactly this \
                           form:",
            warning: "Write a text as it is, without quotes around it, and every list as JSON.",
            nested: Some("Write an object as JSON too."),
            guidelines: [EXACT_NAME, ALL_REQUIRED, "Close every element that you open.", ONE_CALL],
        },
        TextFormat::Fenced => FormatTexts {
            introduction: "You can use tools. To call one, write its name and its arguments as a JSON object in a code fence `tool_call`:",
            warning: STRICT_JSON,
            nested: None,
            guidelines: [EXACT_NAME, ALL_REQUIRED, "Write one JSON object in the fence, and nothing else.", ONE_CALL],
        },
        TextFormat::React => FormatTexts {
            introduction: "You can use tools. To call one, write these two lines, with its arguments as a JSON object:",
            warning: STRICT_JSON,
            nested: None,
            guidelines: [
                EXACT_NAME,
                ALL_REQUIRED,
                "Begin a line with `Action:` only to call a tool, and write nothing after the JSON object.",
                "Make one single call per turn, then stop: what follows `Observation:` comes from the tool, not from you.",
            ],
        },
    }
}
