//! `<function=name>` with a JSON object or with `<parameter=key>`, as Llama 3 and Qwen3-Coder write it.

use super::opening::{Tag, tag_with, wrapper};
use super::parameters::{ParametersEnd, Spelling, name_in, read};
use super::{At, Block, Ending, Find, Opening, Reading, Spot, TextFormat};

const SPELLING: Spelling = Spelling { name: "function", call: "<function=", wrapper: "tool_call" };

/// The name in the tag, the arguments in JSON or in tags.
#[derive(Debug)]
pub(super) struct Function;

impl TextFormat for Function {
    fn word(&self) -> &'static str {
        "function"
    }

    fn how(&self) -> &'static str {
        "Write a call as <function=TOOL><parameter=KEY>VALUE</parameter></function>, with every tag closed."
    }

    fn opens(&self, at: At<'_>) -> Opening {
        if at.spot != Spot::Tag {
            return Opening::No;
        }
        match tag_with(at.rest, SPELLING.call) {
            Tag::Yes(_) => Opening::Yes("a tag <function=…>"),
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
