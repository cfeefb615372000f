//! The last word on what fits a schema: `jsonschema`, compiled when it is first needed.
//!
//! Only its yes or no is used. It remembers what it has seen of a recursive schema, so that the answer takes linear time; its error values
//! hold the failures of every branch of every union, which can double at every level.

use std::{
    collections::HashMap,
    fmt::Write as _,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use jsonschema::{Draft, PatternOptions, Registry, ValidationOptions, Validator, json::Json};
use serde_json::{Value, json};

use super::{compile::Compiler, expansion::is_excessive, quick::Quick, subject::Subject, unique::UniqueItems};
use crate::schema::{Document, Node};
use crate::{Error, Result};

/// Where the document is when a part of it is judged alone. Never fetched.
const DOCUMENT: &str = "toolcrib:parameters";

/// Judges values of one representation against a schema and its parts.
pub struct Judge<F: Json> {
    document: Arc<Document>,
    /// The schema as its parts are compiled from.
    tree: OnceLock<Node>,
    whole: OnceLock<Option<Validator<F>>>,
    parts: Mutex<HashMap<String, Arc<Part<F>>>>,
    has_identities: OnceLock<bool>,
}

struct Part<F: Json> {
    quick: Quick,
    _shared: Vec<Arc<Quick>>,
    validator: OnceLock<Option<Validator<F>>>,
}

impl<F: Json> Judge<F> {
    /// A judge that compiles nothing yet.
    #[must_use]
    pub fn new(document: Arc<Document>) -> Self {
        Judge {
            document,
            tree: OnceLock::new(),
            whole: OnceLock::new(),
            parts: Mutex::default(),
            has_identities: OnceLock::new(),
        }
    }

    fn root(&self) -> &Value {
        self.document.value()
    }

    /// Compiles the schema as a whole, to learn whether it is one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSchema`] says where it is not, also for a reference to another document: nothing is ever fetched.
    pub fn prepare(&self) -> Result<()> {
        if self.whole.get().is_none() {
            if is_excessive(self.root()) {
                let reason =
                    "It refers to its own parts too often: written out, it would have millions of them.".to_owned();
                return Err(Error::InvalidSchema { reason });
            }
            let validator = options::<F>().build(self.root()).map_err(|error| invalid(&error))?;
            let _ = self.whole.set(Some(validator));
        }
        Ok(())
    }

    /// Whether the value fits the schema as a whole.
    pub fn allows<S: Subject<Form = F>>(&self, value: &S) -> bool {
        let validator = self.whole.get_or_init(|| options::<F>().build(self.root()).ok());
        validator.as_ref().is_some_and(|validator| validator.is_valid(value.node()))
    }

    /// Whether the value fits the schema at a JSON pointer.
    pub(super) fn admits<S: Subject<Form = F>>(&self, pointer: &str, value: &S) -> bool {
        let part = self.part(pointer);
        part.quick.accepts(value) || {
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
        let mut compiler = Compiler::new(root);
        let quick = match root.pointer(pointer) {
            Some(schema) if !self.has_identities() => compiler.compile(schema),
            _ => Quick::Ask,
        };
        let part = Arc::new(Part { quick, _shared: compiler.into_shared(), validator: OnceLock::new() });
        Arc::clone(parts().entry(pointer.to_owned()).or_insert(part))
    }

    fn validator_at(&self, pointer: &str) -> Option<Validator<F>> {
        if pointer.is_empty() {
            return options::<F>().build(self.root()).ok();
        }
        let draft = Draft::default().detect(self.root());
        let registry = Registry::new().draft(draft).add(DOCUMENT, self.root()).ok()?.prepare().ok()?;
        let mut reference = format!("{DOCUMENT}#");
        for byte in pointer.bytes() {
            if byte.is_ascii_alphanumeric() || b"/-_.~$".contains(&byte) {
                reference.push(char::from(byte));
            } else {
                let _ = write!(reference, "%{byte:02X}");
            }
        }
        options::<F>().with_draft(draft).with_registry(&registry).build(&json!({"$ref": reference})).ok()
    }

    /// Whether a part of the document has an identity of its own, against which its references are read.
    fn has_identities(&self) -> bool {
        *self.has_identities.get_or_init(|| match self.root() {
            Value::Object(root) => root.values().any(names_itself),
            _ => false,
        })
    }
}

fn names_itself(value: &Value) -> bool {
    match value {
        Value::Object(entries) => {
            entries.get("$id").or_else(|| entries.get("id")).is_some_and(Value::is_string)
                || entries.values().any(names_itself)
        }
        Value::Array(items) => items.iter().any(names_itself),
        _ => false,
    }
}

/// How many steps back a pattern may take, if it is one that looks around; all others take linear time.
const STEPS_BACK: usize = 100_000;

/// How every schema is read: nothing fetched, formats as annotations, patterns and `uniqueItems` in bounded time.
pub(in crate::schema) fn options<'i, F: Json>() -> ValidationOptions<'i, Arc<dyn jsonschema::Retrieve>, F> {
    jsonschema::options_for::<F>()
        .offline()
        .should_validate_formats(false)
        .with_keyword("uniqueItems", UniqueItems::make::<F>)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(STEPS_BACK))
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
