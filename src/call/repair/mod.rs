//! Repair of arguments: parsed strictly where possible, repaired where not, with every change listed.
//!
//! Read this file first: [`read`] parses JSON, and valid JSON is never changed. Otherwise `extract` takes the object out of the
//! text around it, `slips` corrects quotes and brackets that have one reading, `prepare` repairs what else the crate `jsonrepair_rs` would
//! get wrong, that crate repairs the rest, and `diff` finds out what it changed. `arguments` has the repairs that need the tool's schema, and `stream` reads arguments that arrive in pieces.

mod arguments;
mod diff;
mod extract;
mod prepare;
mod slips;
mod stream;

use std::fmt::Write as _;

use serde_json::{Map, Value};

pub use super::modes::RepairMode;
pub use arguments::{ParameterNames, coercion, coercions, repair_names};
pub(crate) use extract::is_prose;
pub use stream::ArgumentStream;

use self::slips::Slips;
use super::{CallError, Change, Place, Repair, RepairKind};
use crate::json::parse;
use crate::schema::check::ValuePath;

/// The maximum size of the arguments of one call as text, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The maximum depth of JSON text in JSON strings.
const MAX_ENCODINGS: usize = 4;

/// Instructions for a model that sent invalid arguments.
const USAGE: &str = "Send the arguments as one JSON object, with keys and strings in double quotes.";

/// Arguments that were parsed from text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParsedArguments {
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The repairs that were made.
    pub repairs: Vec<Repair>,
    /// True if a bracket, a closing quote or a value is missing, so that the arguments may be truncated.
    pub is_truncated: bool,
    /// True if an object had a key twice.
    pub has_duplicate_keys: bool,
}

/// Parses the arguments of a call and repairs them if needed. A blank text is an empty object.
///
/// ```
/// use toolcrib::call::repair::read;
///
/// let parsed = read("```json\n{'city': 'Bern', \"days\": 3,}\n```").expect("it can be repaired");
///
/// assert_eq!(parsed.arguments["city"], "Bern");
/// assert_eq!(parsed.repairs.len(), 3);
/// ```
///
/// # Errors
/// If the text cannot be repaired.
pub fn read(text: &str) -> Result<ParsedArguments, CallError> {
    read_nested(text, MAX_ENCODINGS).map(ParsedArguments::with_duplicates_listed)
}

/// Parses arguments without repairs.
///
/// # Errors
/// If the text is not a valid JSON object.
pub fn read_strictly(text: &str) -> Result<ParsedArguments, CallError> {
    if is_blank(text) {
        return Ok(ParsedArguments::default());
    }
    within_limits(text)?;
    match parse::parse(text) {
        Ok((Value::Object(arguments), has_duplicate_keys)) => {
            Ok(ParsedArguments { arguments, has_duplicate_keys, ..ParsedArguments::default() }.with_duplicates_listed())
        }
        Ok((other, _)) => Err(not_an_object(&other)),
        Err(error) => Err(unreadable(text, &error)),
    }
}

impl ParsedArguments {
    fn with_duplicates_listed(mut self) -> Self {
        if self.has_duplicate_keys {
            self.repairs.push(Repair::of_duplicates());
        }
        self
    }
}

fn is_blank(text: &str) -> bool {
    text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\u{feff}').is_empty()
}

fn within_limits(text: &str) -> Result<(), CallError> {
    if text.len() <= MAX_BYTES {
        return Ok(());
    }
    Err(too_large(text.len()))
}

fn too_large(bytes: usize) -> CallError {
    let what = format!("the arguments have {bytes} bytes, and {MAX_BYTES} are the most that a call may have");
    CallError::new(what, "Send less, in several calls if need be.")
}

fn read_nested(text: &str, encodings: usize) -> Result<ParsedArguments, CallError> {
    if is_blank(text) {
        return Ok(ParsedArguments::default());
    }
    within_limits(text)?;
    let error = match parse::parse(text) {
        Ok((Value::Object(arguments), has_duplicate_keys)) => {
            return Ok(ParsedArguments { arguments, has_duplicate_keys, ..ParsedArguments::default() });
        }
        Ok((Value::String(inner), _)) if encodings > 0 && inner.contains('{') => {
            let mut parsed = read_nested(&inner, encodings - 1)?;
            let repair = Repair::new(RepairKind::Encoding, "JSON text in a JSON string was read as what it says");
            parsed.repairs.insert(0, repair);
            return Ok(parsed);
        }
        Ok((other, _)) => return Err(not_an_object(&other)),
        Err(error) if parse::is_too_deep(&error) => return Err(unreadable(text, &error)),
        Err(error) => error,
    };
    repair(text).unwrap_or_else(|| Err(unreadable(text, &error)))
}

/// Repairs a text that is not valid JSON; `None` if that fails.
fn repair(text: &str) -> Option<Result<ParsedArguments, CallError>> {
    let found = extract::extract(text)?;
    let mut list = RepairList::default();
    if found.had_fence {
        list.add(RepairKind::Fence, "", "the code fence around the object was left out");
    }
    if found.was_quoted {
        list.add(RepairKind::Encoding, "", "JSON text in quotes was read as what it says");
    }
    if found.lacks_start {
        return Some(Err(found.ambiguity()));
    }
    let is_whole = !found.has_more && !found.has_surplus && parse::parse(found.object).is_ok();
    let slips = if is_whole { Slips::None } else { slips::correct(found.whole, found.has_more, &mut list) };
    let (object, had_tail) = match &slips {
        Slips::Corrected { object, had_prose } => (object.as_str(), *had_prose),
        Slips::None if !found.has_more && !found.has_another && !found.has_surplus => (found.object, found.had_tail),
        Slips::None | Slips::Ambiguous => return Some(Err(found.ambiguity())),
    };
    if found.had_words || had_tail {
        list.add(RepairKind::Prose, "", "the words around the object were left out");
    }
    let (arguments, has_duplicate_keys, is_truncated) = parse_repaired(object, &mut list)?;
    if list.is_empty() {
        list.add(RepairKind::Syntax, "", "the text was read as the JSON that it is close to");
    }
    Some(Ok(ParsedArguments { arguments, repairs: list.into_repairs(), is_truncated, has_duplicate_keys }))
}

/// Parses an object and repairs its syntax; also true if it has a duplicate key, and if it may be truncated. `None` if there is a
/// change that cannot be listed, so that something may have been lost or made up.
fn parse_repaired(object: &str, list: &mut RepairList) -> Option<(Map<String, Value>, bool, bool)> {
    let mut is_truncated = false;
    let parsed = parse::parse(object).ok().or_else(|| {
        let prepared = prepare::prepare(object, list);
        parse::parse(&prepared).ok().or_else(|| {
            let repaired = jsonrepair_rs::jsonrepair(&prepared).ok()?;
            is_truncated = diff::compare(&prepared, &repaired, list)?;
            parse::parse(&repaired).ok()
        })
    });
    let Some((Value::Object(arguments), has_duplicate_keys)) = parsed else { return None };
    Some((arguments, has_duplicate_keys, is_truncated))
}

fn not_an_object(value: &Value) -> CallError {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    CallError::new(format!("the arguments must be a JSON object, not {kind}"), USAGE)
}

fn unreadable(text: &str, error: &serde_json::Error) -> CallError {
    if parse::is_too_deep(error) {
        return CallError::new("the arguments are nested more than 128 levels deep", "Send a flatter object.");
    }
    let message = error.to_string();
    let reason = message.split(" at line ").next().unwrap_or_default();
    let place = (error.line() > 0).then(|| Place { line: error.line(), column: column(text, error) });
    CallError { what: format!("the arguments are not valid JSON: {reason}"), at: place, how: USAGE.to_owned() }
}

/// The column in characters, where `serde_json` counts bytes.
fn column(text: &str, error: &serde_json::Error) -> usize {
    let line = text.split('\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let before = line.as_bytes().get(..error.column().saturating_sub(1)).unwrap_or(line.as_bytes());
    before.iter().filter(|byte| **byte & 0xC0 != 0x80).count() + 1
}

/// The repairs of one call. The same repair at many places is one entry with a count, so that the list stays short.
#[derive(Debug, Default)]
struct RepairList {
    entries: Vec<Repair>,
    left_out: usize,
}

impl RepairList {
    /// The maximum number of different repairs that are listed.
    const MAX_ENTRIES: usize = 50;

    /// Adds a repair whose text shows no value.
    fn add(&mut self, what: RepairKind, at: impl Into<ValuePath>, text: &'static str) {
        self.push(what, at, Change::Said(text.into()));
    }

    fn push(&mut self, what: RepairKind, at: impl Into<ValuePath>, change: Change) {
        if self.count_again(what, &change) {
            return;
        }
        if self.entries.len() < Self::MAX_ENTRIES {
            self.entries.push(Repair::of(what, change).at(at));
        } else {
            self.left_out += 1;
        }
    }

    /// Counts one more of a repair that is listed; `false` if it is not.
    fn count_again(&mut self, what: RepairKind, change: &Change) -> bool {
        let known = self.entries.iter_mut().find(|repair| repair.what == what && repair.change == *change);
        known.map(|repair| repair.times += 1).is_some()
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn into_repairs(self) -> Vec<Repair> {
        let mut repairs = self.entries;
        if self.left_out > 0 {
            repairs.push(Repair::new(RepairKind::Syntax, format!("and {} more", self.left_out)));
        }
        repairs
    }
}

/// The reason why parsed arguments may not be what the model meant; `None` if they are certain.
#[must_use]
pub const fn uncertainty(is_truncated: bool, has_duplicate_keys: bool) -> Option<&'static str> {
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

/// The response to arguments that need repairs, with the repairs and the repaired arguments.
#[must_use]
pub fn explanation(tool: &str, repairs: &[Repair], arguments: Option<&Value>) -> String {
    /// The maximum length of arguments that are shown.
    const MAX_SHOWN: usize = 4000;
    let mut text = format!("Error: The arguments for tool '{tool}' need to be repaired, and the tool has not run:");
    for repair in repairs {
        let (at, what) = (&repair.at, repair.text());
        let _ = if at.is_root() { write!(text, "\n- {what}") } else { write!(text, "\n- {at}: {what}") };
    }
    if let Some(arguments) = arguments.map(Value::to_string).filter(|arguments| arguments.len() <= MAX_SHOWN) {
        let _ = write!(text, "\nIf this is what you mean, send it: {arguments}");
    }
    text
}
