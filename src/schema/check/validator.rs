//! The validator that decides what fits a schema: `jsonschema`, compiled on first use, and limits on its work.
//!
//! Only its yes or no is used. It remembers what it has seen of a recursive schema, so that a decision takes linear time; its error
//! values hold the failures of every branch of every union, which can double at every level.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::json::Json;
use jsonschema::{Draft, PatternOptions, Registry, ValidationOptions, Validator};
use serde_json::{Value, json};

use super::coerce::DIGITS;
use super::compile::Compiler;
use super::fast::FastCheck;
use super::format::{FormatRules, with_formats};
use super::path::{At, ValuePath};
use super::problem::{Expected, Found, Problem};
use super::unique::{ListedValues, UniqueItems};
use super::value::{Integer, JsonLike, ValueKind};
use crate::json::{Document, Node};
use crate::schema::view;
use crate::{Error, Result};

/// The URI of the document for references from outside of it. Never fetched.
pub(in crate::schema) const DOCUMENT: &str = "toolcrib:parameters";

/// Validates values of one representation against a schema and its parts.
pub(crate) struct SchemaValidator<F: Json> {
    document: Arc<Document>,
    /// The schema in the form that parts are compiled from.
    tree: OnceLock<Node>,
    whole: OnceLock<Option<Validator<F>>>,
    parts: Mutex<HashMap<String, Arc<Part<F>>>>,
    has_ids: OnceLock<bool>,
    formats: FormatRules,
}

struct Part<F: Json> {
    fast: FastCheck,
    _shared: Vec<Arc<FastCheck>>,
    validator: OnceLock<Option<Validator<F>>>,
}

impl<F: Json> SchemaValidator<F> {
    /// A validator that is compiled on first use.
    pub(crate) fn new(document: Arc<Document>, formats: FormatRules) -> Self {
        SchemaValidator {
            document,
            tree: OnceLock::new(),
            whole: OnceLock::new(),
            parts: Mutex::default(),
            has_ids: OnceLock::new(),
            formats,
        }
    }

    pub(super) fn root(&self) -> &Value {
        self.document.value()
    }

    /// Compiles the schema as a whole, to find out whether it is valid.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSchema`] with the place and the reason, also for a reference to another document: nothing is ever fetched.
    pub(super) fn prepare(&self) -> Result<()> {
        if self.whole.get().is_none() {
            if expands_too_far(self.root()) {
                let reason =
                    "It refers to its own parts too often: expanded, it would have millions of parts.".to_owned();
                return Err(Error::InvalidSchema { reason });
            }
            let validator = options::<F>(self.formats).build(self.root()).map_err(|error| invalid(&error))?;
            let _ = self.whole.set(Some(validator));
        }
        Ok(())
    }

    /// True if the value fits the schema as a whole.
    pub(super) fn is_valid<S: JsonLike<Form = F>>(&self, value: &S) -> bool {
        let validator = self.whole.get_or_init(|| options::<F>(self.formats).build(self.root()).ok());
        validator.as_ref().is_some_and(|validator| validator.is_valid(value.node()))
    }

    /// True if the value fits the schema at a JSON pointer.
    pub(super) fn is_valid_at<S: JsonLike<Form = F>>(&self, pointer: &str, value: &S) -> bool {
        let part = self.part(pointer);
        part.fast.accepts(value) || {
            let validator = part.validator.get_or_init(|| self.validator_at(pointer));
            validator.as_ref().is_some_and(|validator| validator.is_valid(value.node()))
        }
    }

    fn part(&self, pointer: &str) -> Arc<Part<F>> {
        let parts = || self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(part) = parts().get(pointer) {
            return Arc::clone(part);
        }
        let root = self.tree.get_or_init(|| Node::from(self.root().clone()));
        let mut compiler = Compiler::new(root, self.formats);
        let fast = match root.pointer(pointer) {
            Some(schema) if !self.has_ids() => compiler.compile(schema),
            _ => FastCheck::Undecided,
        };
        let part = Arc::new(Part { fast, _shared: compiler.into_shared(), validator: OnceLock::new() });
        Arc::clone(parts().entry(pointer.to_owned()).or_insert(part))
    }

    fn validator_at(&self, pointer: &str) -> Option<Validator<F>> {
        if pointer.is_empty() {
            return options::<F>(self.formats).build(self.root()).ok();
        }
        let mut reference = format!("{DOCUMENT}#");
        for byte in pointer.bytes() {
            if byte.is_ascii_alphanumeric() || b"/-_.~$".contains(&byte) {
                reference.push(char::from(byte));
            } else {
                let _ = write!(reference, "%{byte:02X}");
            }
        }
        build_within(self.root(), &json!({"$ref": reference}), self.formats)
    }

    /// True if a part of the document has an `$id` of its own, against which its references are resolved.
    fn has_ids(&self) -> bool {
        *self.has_ids.get_or_init(|| match self.root() {
            Value::Object(root) => root.values().any(has_id),
            _ => false,
        })
    }
}

fn has_id(value: &Value) -> bool {
    match value {
        Value::Object(entries) => {
            entries.get("$id").or_else(|| entries.get("id")).is_some_and(Value::is_string)
                || entries.values().any(has_id)
        }
        Value::Array(items) => items.iter().any(has_id),
        _ => false,
    }
}

/// The backtracking limit of a pattern with lookaround; all others take linear time.
const BACKTRACKING: usize = 100_000;

/// The options of every validator: nothing is fetched, formats are asserted, patterns take bounded time, and values are equal
/// whatever the order of their keys.
pub(super) fn options<'i, F: Json>(formats: FormatRules) -> ValidationOptions<'i, Arc<dyn jsonschema::Retrieve>, F> {
    with_formats(jsonschema::options_for::<F>().offline(), formats)
        .with_keyword("uniqueItems", UniqueItems::make::<F>)
        .with_keyword("const", ListedValues::make_const::<F>)
        .with_keyword("enum", ListedValues::make_enum::<F>)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKING))
}

/// Compiles a schema that refers to a document as [`DOCUMENT`].
pub(in crate::schema) fn build_within<F: Json>(
    document: &Value,
    schema: &Value,
    formats: FormatRules,
) -> Option<Validator<F>> {
    let draft = Draft::default().detect(document);
    let registry = Registry::new().draft(draft).add(DOCUMENT, document).ok()?.prepare().ok()?;
    options::<F>(formats).with_draft(draft).with_registry(&registry).build(schema).ok()
}

fn invalid(error: &jsonschema::ValidationError<'_>) -> Error {
    let at = error.instance_path().to_string();
    let mut reason = error.to_string();
    if let Some((end, _)) = reason.char_indices().nth(300) {
        reason.truncate(end);
        reason.push('…');
    }
    if !at.is_empty() {
        let at: String = at.chars().take(200).collect();
        reason = format!("At `{at}`: {reason}");
    }
    Error::InvalidSchema { reason }
}

/// The most parts that a schema may expand to.
const PARTS: u64 = 10_000_000;
/// The depth to which references are followed.
const EXPANSION_DEPTH: usize = 400;

/// True if a schema expands to too many parts when its references are replaced by what they refer to.
///
/// Definitions that use one another twice each double the work at every step: thirty of them are a billion visits of one value. A
/// definition that refers to itself is not counted again, because the validator remembers it.
pub(super) fn expands_too_far(root: &Value) -> bool {
    let mut known = HashMap::new();
    expanded_size(root, root, &mut known, 0) > PARTS
}

fn expanded_size(root: &Value, value: &Value, known: &mut HashMap<String, u64>, depth: usize) -> u64 {
    if depth > EXPANSION_DEPTH {
        return u64::MAX;
    }
    let mut size: u64 = 1;
    let mut add = |more: u64| size = size.saturating_add(more);
    match value {
        Value::Array(items) => items.iter().for_each(|item| add(expanded_size(root, item, known, depth + 1))),
        Value::Object(entries) => {
            for (key, entry) in entries {
                // Definitions count where they are referred to.
                if !matches!(key.as_str(), "$defs" | "definitions") {
                    add(expanded_size(root, entry, known, depth + 1));
                }
            }
            if let Some(pointer) = view::pointer(entries) {
                if !known.contains_key(&pointer) {
                    known.insert(pointer.clone(), 1);
                    let size = root.pointer(&pointer).map_or(1, |target| expanded_size(root, target, known, depth + 1));
                    known.insert(pointer.clone(), size);
                }
                add(known.get(&pointer).copied().unwrap_or(1));
            }
        }
        _ => {}
    }
    size
}

/// The deepest nesting of arguments.
const DEPTH: usize = 128;
/// The most values inside of the arguments.
const VALUES: usize = 5_000_000;

/// The work that may still be done: a multiple of the size of the value, whatever its shape.
pub(super) struct Budget(Cell<usize>);

impl Budget {
    pub(super) fn for_value<S: JsonLike>(value: &S) -> Budget {
        Budget(Cell::new(20_000 + 16 * size(value)))
    }

    /// Spends the cost of so many visits of a value; false once the budget is used up.
    pub(super) fn take<S: JsonLike>(&self, times: usize, value: &S) -> bool {
        let left = self.0.get().checked_sub(times * size(value));
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    /// True if some budget is left.
    pub(super) fn is_left(&self) -> bool {
        self.0.get() > 0
    }
}

/// The problem of a value that is too deep or too large to be checked, for example because it contains itself.
pub(super) fn oversize<S: JsonLike>(value: &S) -> Option<Problem> {
    let mut left = VALUES;
    let expected = match measure(value, DEPTH, &mut left) {
        Ok(()) => return None,
        Err(Oversize::Deep) => format!("at most {DEPTH} levels of nesting"),
        Err(Oversize::Many) => format!("at most {VALUES} values"),
    };
    Some(Problem { path: ValuePath::default(), expected: expected.into(), found: Found::Fixed("more") })
}

/// The number of values inside, itself included.
fn size<S: JsonLike>(value: &S) -> usize {
    let mut left = VALUES;
    match measure(value, DEPTH, &mut left) {
        Ok(()) => VALUES - left,
        Err(_) => VALUES,
    }
}

enum Oversize {
    Deep,
    Many,
}

/// Counts values down from a limit, to a limited depth.
fn measure<S: JsonLike>(value: &S, depth: usize, left: &mut usize) -> Result<(), Oversize> {
    *left = left.checked_sub(1).ok_or(Oversize::Many)?;
    let kind = value.kind();
    if !matches!(kind, ValueKind::Array | ValueKind::Object) {
        return Ok(());
    }
    let depth = depth.checked_sub(1).ok_or(Oversize::Deep)?;
    let mut result = Ok(());
    let mut inside = |value: &S| {
        result = measure(value, depth, left);
        result.is_ok()
    };
    if kind == ValueKind::Array {
        value.every_item(inside);
    } else {
        value.every_entry(|_, value| inside(value));
    }
    result
}

/// The first part of the arguments that is not JSON: a string with a lone surrogate, a number that is not finite, a value that is
/// nested too deep. For arguments that could not be converted; if there is no such part, the problem is the arguments as a whole.
#[must_use]
pub fn not_json<S: JsonLike>(arguments: &S) -> Problem {
    not_json_in(arguments, &At::Root, None, 0).unwrap_or_else(|| Problem {
        path: ValuePath::default(),
        expected: "JSON values".into(),
        found: Found::Fixed("another value"),
    })
}

/// The problem in a value; `parameter` is the first key of its path.
fn not_json_in<S: JsonLike>(value: &S, at: &At<'_>, parameter: Option<&str>, depth: usize) -> Option<Problem> {
    let problem = |expected: Expected| Some(Problem { path: at.into(), expected, found: Found::of(value) });
    let mut first = None;
    match value.kind() {
        ValueKind::String if value.text().is_none() => return problem("text without lone surrogates".into()),
        ValueKind::Int if !matches!(value.integer(), Integer::Small(_)) && value.digits(DIGITS).is_none() => {
            return problem(format!("an integer of at most {DIGITS} digits").into());
        }
        ValueKind::Other => return problem("a JSON value".into()),
        ValueKind::Array | ValueKind::Object if depth == DEPTH => {
            return Some(Problem {
                // The whole path would not help the model.
                path: parameter.map_or_else(ValuePath::default, |name| At::Root.key(name).into()),
                expected: format!("at most {DEPTH} levels of nesting").into(),
                found: Found::Fixed("more"),
            });
        }
        ValueKind::Array => {
            let mut index = 0;
            value.every_item(|item| {
                first = not_json_in(item, &at.index(index), parameter, depth + 1);
                index += 1;
                first.is_none()
            });
        }
        ValueKind::Object => {
            value.every_entry(|key, entry| {
                first = match key {
                    Some(key) => not_json_in(entry, &at.key(key), parameter.or(Some(key)), depth + 1),
                    None => Some(Problem {
                        path: at.into(),
                        expected: "names that are plain strings".into(),
                        found: Found::Fixed("another name"),
                    }),
                };
                first.is_none()
            });
        }
        _ => {}
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn definitions_that_double_expand_too_far() {
        let definitions: Map<String, Value> = (0..40)
            .map(|index| {
                let next = json!({"$ref": format!("#/$defs/d{}", index + 1)});
                (format!("d{index}"), json!({"anyOf": [next, next]}))
            })
            .collect();

        assert!(expands_too_far(&json!({"$ref": "#/$defs/d0", "$defs": definitions})));
    }

    #[test]
    fn recursion_does_not_expand_too_far() {
        let tree = json!({"anyOf": [{"$ref": "#/$defs/tree"}, {"items": {"$ref": "#/$defs/tree"}}]});

        assert!(!expands_too_far(&json!({"properties": {"x": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": tree}})));
    }

    #[test]
    fn the_path_leads_to_what_is_not_json() {
        let large: Value = serde_json::from_str(&format!("{{\"a\": [0, {}]}}", "9".repeat(DIGITS + 1))).unwrap();
        let infinite: Value = serde_json::from_str("{\"a\": {\"b c\": 1e999}}").unwrap();
        let deep = (0..DEPTH).fold(json!(1), |inner, _| json!([inner]));

        assert_eq!(not_json(&large).path, "a[1]");
        assert_eq!(not_json(&infinite).path, "a[\"b c\"]");
        assert_eq!(not_json(&json!({"x": 1, "deep": [deep]})).path, "deep");
        assert!(not_json(&json!({"x": 1})).path.is_root());
    }
}
