//! What a model is told about arguments that are not used as they came.

use std::fmt::Write as _;

use serde_json::Value;

use crate::call::Repair;

/// The longest arguments that are shown.
const SHOWN: usize = 4000;

/// Why arguments that were read do not certainly say what was meant; `None` if they do.
#[must_use]
pub const fn doubt(is_truncated: bool, has_duplicate_keys: bool) -> Option<&'static str> {
    match (is_truncated, has_duplicate_keys) {
        (true, _) => Some(
            "the call is incomplete: the answer was cut off, or a value, a quote or a bracket is missing in the JSON of \
             the arguments, or an ellipsis stands for a part of them. Send the whole call again, in smaller parts if it is long.",
        ),
        (false, true) => Some(
            "an object in the JSON of the arguments has the same key twice, so that it is not clear which value is meant. \
             Send the call again with every key once.",
        ),
        (false, false) => None,
    }
}

/// What would have to be mended, and the arguments as they should be sent.
#[must_use]
pub fn explanation(tool: &str, repairs: &[Repair], arguments: Option<&Value>) -> String {
    let mut text = format!("Error: The arguments for tool '{tool}' have to be mended, and the tool has not run:");
    for repair in repairs {
        let (at, what) = (&repair.at, repair.text());
        let _ = if at.is_root() { write!(text, "\n- {what}") } else { write!(text, "\n- {at}: {what}") };
    }
    if let Some(arguments) = arguments.map(Value::to_string).filter(|arguments| arguments.len() <= SHOWN) {
        let _ = write!(text, "\nIf this is what you mean, send it: {arguments}");
    }
    text
}
