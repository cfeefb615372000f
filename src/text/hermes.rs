//! `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, as Hermes and Qwen write it.

use super::json::{JsonEnd, calls, closed, first_name};
use super::opening::{After, Tag, after, tag};
use super::{At, Block, Ending, Find, Opening, Reading, Spot, TextFormat};

const NAME: &str = "tool_call";

/// JSON between tags.
#[derive(Debug)]
pub(super) struct Hermes;

impl TextFormat for Hermes {
    fn word(&self) -> &'static str {
        "hermes"
    }

    fn how(&self) -> &'static str {
        "Write a call as <tool_call>{\"name\": \"TOOL\", \"arguments\": {\"KEY\": VALUE}}</tool_call>, in valid JSON."
    }

    fn opens(&self, at: At<'_>) -> Opening {
        const WHY: &str = "a <tool_call> with JSON in it";
        if at.spot != Spot::Tag {
            return Opening::No;
        }
        match tag(at.rest, NAME) {
            Tag::No => Opening::No,
            Tag::Unsure => Opening::Unsure,
            Tag::Yes(length) => match after(&at.rest[length..]) {
                After::Nothing => Opening::Unsure,
                After::Text(rest) if rest.starts_with(['{', '[', '`']) => Opening::Yes(WHY),
                // Tags are a call in the wrong format; words only speak of one.
                After::Text(rest) if at.is_certain && rest.starts_with('<') => Opening::Yes(WHY),
                After::Text(_) => Opening::No,
            },
        }
    }

    fn ending(&self, block: &str) -> Box<dyn Ending> {
        Box::new(JsonEnd::new(outer_tag(block), NAME))
    }

    fn read(&self, block: &Block<'_>, _: Option<&Find<'_>>) -> Reading {
        let start = outer_tag(block.text);
        let end = if block.is_closed { block.text.rfind("</").unwrap_or(start) } else { block.text.len() };
        let inner = &block.text[start..end];
        if !inner.contains(char::is_alphanumeric) {
            return Reading::Prose;
        }
        Reading::Calls(closed(calls(self, block, start, inner), block, NAME))
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        first_name(&block[outer_tag(block)..])
    }

    fn as_dyn(&self) -> &dyn TextFormat {
        self
    }
}

fn outer_tag(block: &str) -> usize {
    if let Tag::Yes(length) = tag(block, NAME) { length } else { 0 }
}
