//! `<invoke name="…">` with `<parameter name="…">`, inside of `<function_calls>` or without it.

use super::opening::{Tag, tag_with, wrapper};
use super::parameters::{ParametersEnd, Spelling, name_in, read};
use super::{At, Block, Ending, Find, Opening, Reading, Spot, TextFormat};

const SPELLING: Spelling = Spelling { name: "invoke", call: "<invoke ", wrapper: "function_calls" };

/// Names in attributes, values as they are.
#[derive(Debug)]
pub(super) struct Invoke;

impl TextFormat for Invoke {
    fn word(&self) -> &'static str {
        "invoke"
    }

    fn how(&self) -> &'static str {
        "Write a call as <invoke name=\"TOOL\"><parameter name=\"KEY\">VALUE</parameter></invoke>, with every tag closed."
    }

    fn opens(&self, at: At<'_>) -> Opening {
        if at.spot != Spot::Tag {
            return Opening::No;
        }
        match tag_with(at.rest, SPELLING.call) {
            Tag::Yes(_) => Opening::Yes("a tag <invoke name=…>"),
            Tag::Unsure => Opening::Unsure,
            Tag::No => wrapper(at.rest, SPELLING.wrapper, SPELLING.call, at.is_certain),
        }
    }

    fn ending(&self, block: &str) -> Box<dyn Ending> {
        Box::new(ParametersEnd::new(SPELLING, block))
    }

    fn read(&self, block: &Block<'_>, find: Option<&Find<'_>>) -> Reading {
        Reading::Calls(read(self, SPELLING, block, find))
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        name_in(SPELLING, block)
    }

    fn as_dyn(&self) -> &dyn TextFormat {
        self
    }
}
