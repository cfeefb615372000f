//! Arguments as models write them, read as JSON: strictly where that is possible, mended where it is not, and every change
//! is listed.
//!
//! `strict` comes first, so that what is JSON is never changed. Then `cut` takes away what stands around the object,
//! `prepare` and `commas` mend what the crate for the rest would spoil, and `compare` finds out what that did. What a tool's schema
//! says about names and types is looked at afterwards, in `names` and `types`.

mod commas;
mod compare;
mod cursor;
mod cut;
mod delta;
mod doubt;
mod list;
mod names;
mod prepare;
mod types;

use serde_json::{Map, Value};

pub use super::modes::RepairMode;
pub use delta::ArgumentStream;
pub use doubt::{doubt, explanation};
pub use names::{Names, mend_names};
pub use types::coerced;

use super::{CallError, Place, Repair, RepairKind};
use crate::json::parse;
use list::List;

/// The most bytes that the arguments of one call may have as text.
pub const MOST_BYTES: usize = 1 << 20;

/// How often JSON text may be in a JSON string.
const MOST_ENCODINGS: usize = 4;

/// How to write it, for whoever did not.
const HOW: &str = "Send the arguments as one JSON object, with keys and strings in double quotes.";

/// Arguments that were read from text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// What was mended.
    pub repairs: Vec<Repair>,
    /// Whether a bracket, a closing quote or a value is missing: the arguments may be only a part of what was meant.
    pub is_truncated: bool,
    /// Whether an object had a key twice.
    pub has_duplicate_keys: bool,
}

/// Reads the arguments of a call. Nothing but space is no arguments.
///
/// ```
/// use toolcrib::call::repair::read;
///
/// let reading = read("```json\n{'city': 'Bern', \"days\": 3,}\n```").expect("it can be mended");
///
/// assert_eq!(reading.arguments["city"], "Bern");
/// assert_eq!(reading.repairs.len(), 3);
/// ```
///
/// # Errors
/// What is wrong with the text, where, and how to write it.
pub fn read(text: &str) -> Result<Reading, CallError> {
    read_to(text, MOST_ENCODINGS).map(Reading::with_duplicates_listed)
}

/// Reads arguments that must be JSON as it is.
///
/// # Errors
/// What is wrong with the text, where, and how to write it.
pub fn read_strictly(text: &str) -> Result<Reading, CallError> {
    if is_nothing(text) {
        return Ok(Reading::default());
    }
    within_limits(text)?;
    match parse::parse(text) {
        Ok((Value::Object(arguments), has_duplicate_keys)) => {
            Ok(Reading { arguments, has_duplicate_keys, ..Reading::default() }.with_duplicates_listed())
        }
        Ok((other, _)) => Err(no_object(&other)),
        Err(error) => Err(unreadable(text, &error)),
    }
}

impl Reading {
    fn with_duplicates_listed(mut self) -> Self {
        if self.has_duplicate_keys {
            self.repairs.push(Repair::of_duplicates());
        }
        self
    }
}

fn is_nothing(text: &str) -> bool {
    text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}').is_empty()
}

fn within_limits(text: &str) -> Result<(), CallError> {
    if text.len() <= MOST_BYTES {
        return Ok(());
    }
    Err(too_large(text.len()))
}

fn too_large(bytes: usize) -> CallError {
    let what = format!("the arguments have {bytes} bytes, and {MOST_BYTES} are the most that a call may have");
    CallError::new(what, "Send less, in several calls if need be.")
}

fn read_to(text: &str, encodings: usize) -> Result<Reading, CallError> {
    if is_nothing(text) {
        return Ok(Reading::default());
    }
    within_limits(text)?;
    let error = match parse::parse(text) {
        Ok((Value::Object(arguments), has_duplicate_keys)) => {
            return Ok(Reading { arguments, has_duplicate_keys, ..Reading::default() });
        }
        Ok((Value::String(inner), _)) if encodings > 0 && inner.contains('{') => {
            let mut reading = read_to(&inner, encodings - 1)?;
            let repair = Repair::new(RepairKind::Encoding, "JSON text in a JSON string was read as what it says");
            reading.repairs.insert(0, repair);
            return Ok(reading);
        }
        Ok((other, _)) => return Err(no_object(&other)),
        Err(error) if parse::is_too_deep(&error) => return Err(unreadable(text, &error)),
        Err(error) => error,
    };
    mend(text).unwrap_or_else(|| Err(unreadable(text, &error)))
}

/// Mends a text that is no JSON; `None` if that cannot be done.
fn mend(text: &str) -> Option<Result<Reading, CallError>> {
    let mut list = List::default();
    let cut = cut::cut(text)?;
    if cut.has_another {
        let what = "there is more than one object in the arguments";
        return Some(Err(CallError::new(what, "Send one JSON object; make a call of its own for each.")));
    }
    if cut.had_fence {
        list.add(RepairKind::Fence, "", "the code fence around the object was left out");
    }
    if cut.had_prose {
        list.add(RepairKind::Prose, "", "the words around the object were left out");
    }
    if cut.was_quoted {
        list.add(RepairKind::Encoding, "", "JSON text in quotes was read as what it says");
    }
    let mut is_truncated = false;
    let parsed = parse::parse(cut.object).or_else(|_| {
        let prepared = commas::without_doubled(prepare::prepare(cut.object, &mut list), &mut list);
        parse::parse(&prepared).or_else(|error| {
            let Ok(mended) = jsonrepair_rs::jsonrepair(&prepared) else { return Err(error) };
            is_truncated = compare::compare(&prepared, &mended, &mut list);
            parse::parse(&mended)
        })
    });
    let Ok((Value::Object(arguments), has_duplicate_keys)) = parsed else { return None };
    if list.is_empty() {
        list.add(RepairKind::Syntax, "", "the text was read as the JSON that it is close to");
    }
    Some(Ok(Reading { arguments, repairs: list.into_repairs(), is_truncated, has_duplicate_keys }))
}

fn no_object(value: &Value) -> CallError {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    CallError::new(format!("the arguments must be a JSON object, not {kind}"), HOW)
}

fn unreadable(text: &str, error: &serde_json::Error) -> CallError {
    if parse::is_too_deep(error) {
        return CallError::new("the arguments are nested more than 128 levels deep", "Send a flatter object.");
    }
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    let place = (error.line() > 0).then(|| Place { line: error.line(), column: column(text, error) });
    CallError { what: format!("the arguments are not valid JSON: {reason}"), at: place, how: HOW.to_owned() }
}

/// The column in characters, where `serde_json` counts bytes.
fn column(text: &str, error: &serde_json::Error) -> usize {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = line.as_bytes().get(..error.column().saturating_sub(1)).unwrap_or(line.as_bytes());
    before.iter().filter(|byte| **byte & 0xC0 != 0x80).count() + 1
}
