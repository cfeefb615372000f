//! Which choice of a union a value in its original shape is.

use std::sync::OnceLock;

use jsonschema::{Draft, Registry, Validator};
use serde_json::Value;

use crate::schema::check::{Kinds, Subject, options};
use crate::schema::dialect::walk;

/// Where the document is that a choice refers to. Never fetched.
const DOCUMENT: &str = "toolcrib:parameters";

/// How a value is told to be a choice.
pub(in crate::schema::dialect) enum Pick {
    /// By its kind.
    Kinds(Kinds),
    /// By the schema of the choice, compiled when it is first asked for: as it is, and with no entries that it does not name.
    Schema(Box<Value>, [OnceLock<Option<Validator>>; 2]),
}

impl std::fmt::Debug for Pick {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kinds(kinds) => formatter.debug_tuple("Kinds").field(kinds).finish(),
            Self::Schema(schema, _) => formatter.debug_tuple("Schema").field(schema).finish(),
        }
    }
}

impl Pick {
    pub(in crate::schema::dialect) fn by(schema: &Value) -> Self {
        Self::Schema(Box::new(schema.clone()), [OnceLock::new(), OnceLock::new()])
    }

    /// Whether the value is this choice; `closed` if only what the choice names counts.
    pub(super) fn admits(&self, value: &Value, document: &Value, closed: bool) -> bool {
        match self {
            Self::Kinds(kinds) => kinds.has(value.kind()),
            Self::Schema(schema, validators) => {
                let validator = validators[usize::from(closed)].get_or_init(|| compile(schema, document, closed));
                validator.as_ref().is_some_and(|validator| validator.is_valid(value))
            }
        }
    }
}

fn compile(schema: &Value, document: &Value, closed: bool) -> Option<Validator> {
    let (mut schema, mut document) = (schema.clone(), document.clone());
    if closed {
        close(&mut schema);
        close(&mut document);
    }
    walk::rename_references(&mut schema, &|reference| {
        reference.starts_with('#').then(|| format!("{DOCUMENT}{reference}"))
    });
    let draft = Draft::default().detect(&document);
    let registry = Registry::new().draft(draft).add(DOCUMENT, &document).ok()?.prepare().ok()?;
    options().with_draft(draft).with_registry(&registry).build(&schema).ok()
}

/// Forbids the entries that nothing is said about, as a dialect does in which they cannot be told.
fn close(schema: &mut Value) {
    walk::every_schema(schema, &mut |map| {
        let has_properties = map.get("properties").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
        if has_properties && !map.contains_key("patternProperties") {
            map.entry("additionalProperties").or_insert(Value::Bool(false));
        }
    });
}
