//! ArtifactFlow's own reading, for programs that count on it: the first closing tag ends a block, values are guessed, and what
//! cannot be read is dropped or searched for what looks like a call.

use memchr::memchr;
use serde_json::{Map, Value};

use super::number::{guess, strip};
use super::opening::{Tag, tag};
use super::{At, Block, Ending, Find, Format, Found, Opening, Reading, TextFormat, loose, strict};
use crate::call::ToolCall;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

/// `<tool_call>` as ArtifactFlow reads it.
#[derive(Debug)]
pub(super) struct ArtifactFlow {
    pub(super) fallback: bool,
}

/// Finds the calls in a whole text as ArtifactFlow does.
#[must_use]
pub fn parse(text: &str, fallback: bool) -> Vec<ToolCall> {
    super::parse(text, Format::ArtifactFlow { fallback }, None)
}

impl TextFormat for ArtifactFlow {
    fn word(&self) -> &'static str {
        "xml"
    }

    fn how(&self) -> &'static str {
        super::xml::HOW
    }

    fn reads_code(&self) -> bool {
        true
    }

    fn is_bounded(&self) -> bool {
        false
    }

    fn opens(&self, at: At<'_>) -> Opening {
        match tag(at.rest, "tool_call") {
            Tag::Yes(length) if length == OPEN.len() => Opening::Yes("it was asked for"),
            Tag::Unsure if at.rest.len() < OPEN.len() => Opening::Unsure,
            _ => Opening::No,
        }
    }

    fn ending(&self, _: &str) -> Box<dyn Ending> {
        Box::new(FirstClose { at: OPEN.len() })
    }

    fn read(&self, block: &Block<'_>, _: Option<&Find<'_>>) -> Reading {
        let inner = &block.text[OPEN.len()..block.text.len() - CLOSE.len()];
        let read = match strict::read(inner) {
            Ok(plain) => plain.name.map(|name| strip(&name).to_owned()).filter(|name| !name.is_empty()).map(|name| {
                let arguments = plain.params.into_iter().map(|param| (param.tag, value(&param.text, &param.items)));
                (name, arguments.collect::<Map<_, _>>())
            }),
            Err(_) if self.fallback => loose::read(inner),
            Err(_) => None,
        };
        let calls = read.map(|(name, arguments)| ToolCall {
            raw: Some([OPEN, inner, CLOSE].concat()),
            format: self.word().into(),
            ..ToolCall::new(name, arguments)
        });
        Reading::Calls(calls.into_iter().collect())
    }

    fn cut_off(&self, _: &Block<'_>) -> Reading {
        // Where no closing tag follows the first opening one, none follows the others.
        Reading::Rest
    }

    fn as_dyn(&self) -> &dyn TextFormat {
        self
    }
}

fn value(text: &str, items: &[String]) -> Value {
    if items.is_empty() { guess(strip(text)) } else { items.iter().map(|item| guess(strip(item))).collect() }
}

/// Looks for the first `</tool_call>`, wherever it stands.
#[derive(Debug)]
struct FirstClose {
    at: usize,
}

impl Ending for FirstClose {
    fn advance(&mut self, block: &str, _: bool) -> Found {
        let bytes = block.as_bytes();
        while let Some(length) = memchr(b'<', &bytes[self.at..]) {
            self.at += length;
            let Some(written) = bytes.get(self.at..self.at + CLOSE.len()) else { return Found::More };
            if written.eq_ignore_ascii_case(CLOSE.as_bytes()) {
                return Found::End { length: self.at + CLOSE.len(), is_closed: true };
            }
            self.at += 1;
        }
        self.at = bytes.len();
        Found::More
    }

    fn done(&self) -> usize {
        self.at
    }

    fn forget(&mut self, bytes: usize) {
        self.at -= bytes;
    }
}
