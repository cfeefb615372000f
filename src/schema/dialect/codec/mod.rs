//! The way between the shape that a tool expects and the one that a dialect has words for.

mod decode;
mod encode;
mod pick;
mod readable;

use std::sync::Arc;

use serde_json::Value;

pub(super) use pick::Pick;
pub use readable::unreadable;

use super::form::Form;
use crate::schema::Document;

/// The key of an entry, where a map is a list of entries.
pub(super) const KEY: &str = "key";
/// The value of an entry, of a choice, or of a field that could also be left out.
pub(super) const VALUE: &str = "value";
/// Which of several choices a value is.
pub(super) const CHOICE: &str = "choice";
/// What arguments are inside of, where they cannot be the root themselves.
pub(super) const ARGUMENTS: &str = "arguments";

/// Turns arguments of a dialect into those of a tool, and back.
///
/// ```
/// use std::sync::Arc;
/// use serde_json::json;
/// use toolcrib::provider::Dialect;
/// use toolcrib::schema::{Document, Node};
///
/// let labels = json!({"type": "object", "additionalProperties": {"type": "integer"}});
/// let parameters = json!({"type": "object", "properties": {"labels": labels}, "required": ["labels"]});
/// let encoded = Dialect::OpenAiStrict.encode(&Arc::new(Document::new(&Node::from(parameters))));
///
/// let sent = json!({"labels": [{"key": "a", "value": 1}]});
/// assert_eq!(encoded.codec.decode(sent.clone()).unwrap(), json!({"labels": {"a": 1}}));
/// assert_eq!(encoded.codec.encode_value(&json!({"labels": {"a": 1}})), sent);
/// ```
#[derive(Debug)]
pub struct Codec {
    op: Op,
    /// What recursive parts refer to.
    shared: Box<[Op]>,
    /// The original schema, by which a value finds its choice in a union.
    document: Arc<Document>,
}

/// What is done to one value.
#[derive(Debug)]
pub(super) enum Op {
    /// Nothing.
    Same,
    /// An object, field by field.
    Fields(Box<Fields>),
    /// Each item of a list.
    List(Box<Op>),
    /// A map, encoded as a list of its entries.
    Pairs(Box<Op>),
    /// A list of fixed places, encoded as an object.
    Places(Box<Places>),
    /// Any value, encoded as JSON in a text; `plain` takes what is no JSON as the text that it is.
    Text { plain: bool },
    /// One of a few values, encoded as a text each.
    Listed(Box<[(Box<str>, Value)]>),
    /// `null` as it is, or another.
    Nullable(Box<Op>),
    /// Whichever choice has the form of the value.
    Choice(Box<[Branch]>),
    /// Whichever choice the value names.
    Tagged(Box<[Branch]>),
    /// What is under a key.
    Inside(&'static str, Box<Op>),
    /// One of the shared ones.
    Shared(usize),
}

/// The fields of an object.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) named: Vec<Field>,
    /// The property that holds all other entries.
    pub(super) rest: Option<(Box<str>, Op)>,
    /// Whether what is left out has to be said.
    pub(super) explicit: bool,
}

/// A field of an object, or a place of a list.
#[derive(Debug)]
pub(super) struct Field {
    /// Its name in the dialect.
    pub(super) outer: Box<str>,
    /// Its own name.
    pub(super) inner: Box<str>,
    pub(super) op: Op,
    pub(super) absence: Absence,
}

/// How a field that is left out is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// It is not there, and `null` is a value like others.
    Missing,
    /// It is not there, and a `null` that a model sends out of habit means the same.
    Lenient,
    /// It is `null`.
    Null,
    /// It is `null`, and a value is in an object, so that it can be `null` too.
    Boxed,
}

/// The places of a list.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) fixed: Vec<Field>,
    pub(super) rest: Option<(Box<str>, Op)>,
    pub(super) explicit: bool,
}

/// A choice of a union.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) label: Box<str>,
    pub(super) form: Form,
    pub(super) pick: Pick,
    pub(super) op: Op,
}

impl Op {
    /// Whether a value that was encoded by it is the same as before.
    pub(super) fn is_same(&self) -> bool {
        match self {
            Self::Same => true,
            Self::Fields(fields) => {
                let same = |field: &Field| {
                    let is_there = matches!(field.absence, Absence::Missing | Absence::Lenient);
                    is_there && field.outer == field.inner && field.op.is_same()
                };
                fields.rest.is_none() && fields.named.iter().all(same)
            }
            Self::List(op) | Self::Nullable(op) => op.is_same(),
            _ => false,
        }
    }

    /// The same for a list.
    pub(super) fn each(self) -> Self {
        if matches!(self, Self::Same) { Self::Same } else { Self::List(Box::new(self)) }
    }

    /// The same for a value that may be `null`.
    pub(super) fn or_null(self) -> Self {
        match self {
            Self::Same | Self::Nullable(_) => self,
            other => Self::Nullable(Box::new(other)),
        }
    }
}

impl Fields {
    /// As what is done to an object.
    pub(super) fn into_op(self) -> Op {
        let op = Op::Fields(Box::new(self));
        let Op::Fields(fields) = &op else { return op };
        let is_lenient =
            fields.named.iter().any(|field| field.absence == Absence::Lenient || !matches!(field.op, Op::Same));
        if !is_lenient && op.is_same() { Op::Same } else { op }
    }
}

impl Codec {
    pub(super) fn new(op: Op, shared: Vec<Op>, document: Arc<Document>) -> Self {
        Self { op, shared: shared.into(), document }
    }

    /// Whether arguments are the same in both shapes.
    #[must_use]
    pub fn is_same(&self) -> bool {
        matches!(self.op, Op::Same)
    }
}
