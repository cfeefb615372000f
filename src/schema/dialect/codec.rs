//! The codec: converts arguments between the shape that a tool expects and the one of a dialect.

use std::sync::{Arc, OnceLock};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::resolve::{every_schema, rename_references};
use super::union::Shape;
use crate::json::Document;
use crate::schema::check::{DOCUMENT, FormatRules, JsonLike, KindSet, build_within};

/// The key of an entry, where a map is a list of entries.
pub(super) const KEY: &str = "key";
/// The value of an entry, of a tagged branch, or of a boxed field.
pub(super) const VALUE: &str = "value";
/// The tag of a branch.
pub(super) const CHOICE: &str = "choice";
/// The property that holds the arguments where they cannot be the root.
pub(super) const ARGUMENTS: &str = "arguments";

/// Converts arguments between a dialect and the tool.
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
    pub(super) op: Op,
    /// The conversions of definitions.
    pub(super) shared: Box<[Op]>,
    /// The original schema, which selects the branch of a union.
    document: Arc<Document>,
}

/// The conversion of one value.
#[derive(Debug)]
pub(super) enum Op {
    /// No change.
    Same,
    /// An object, field by field.
    Object(Box<ObjectCodec>),
    /// A list, item by item.
    List(Box<Op>),
    /// A map, encoded as a list of its entries.
    Pairs(Box<Op>),
    /// A list of fixed positions, encoded as an object.
    Tuple(Box<TupleCodec>),
    /// Any value, encoded as JSON text; with `plain`, text that is not JSON is kept as it is.
    Text { plain: bool },
    /// One of a few values, each encoded as a string.
    Listed(Box<[(Box<str>, Value)]>),
    /// `null` as it is, or another conversion.
    Nullable(Box<Op>),
    /// The branch that has the shape of the value.
    Choice(Box<[BranchCodec]>),
    /// The branch of the tag.
    Tagged(Box<[BranchCodec]>),
    /// The value under a key.
    Inside(&'static str, Box<Op>),
    /// The conversion of a definition.
    Shared(usize),
}

/// The conversion of an object.
#[derive(Debug, Default)]
pub(super) struct ObjectCodec {
    pub(super) named: Vec<FieldCodec>,
    /// The property that holds all other entries.
    pub(super) rest: Option<(Box<str>, Op)>,
    /// True if a missing field must be sent as `null`.
    pub(super) explicit: bool,
}

/// The conversion of a field of an object, or of a position of a list.
#[derive(Debug)]
pub(super) struct FieldCodec {
    /// Its name in the dialect.
    pub(super) outer: Box<str>,
    /// Its original name.
    pub(super) inner: Box<str>,
    pub(super) op: Op,
    pub(super) absence: Absence,
}

/// The encoding of a missing field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// It is left out, and `null` is a value.
    Missing,
    /// It is left out, and a `null` that a model sends out of habit means the same.
    Lenient,
    /// It is `null`.
    Null,
    /// It is `null`, and a value is in an object, so that it can be `null` too.
    Boxed,
}

/// The conversion of a list of fixed positions.
#[derive(Debug)]
pub(super) struct TupleCodec {
    pub(super) fixed: Vec<FieldCodec>,
    pub(super) rest: Option<(Box<str>, Op)>,
    pub(super) explicit: bool,
}

/// The conversion of a branch of a union.
#[derive(Debug)]
pub(super) struct BranchCodec {
    pub(super) label: Box<str>,
    pub(super) shape: Shape,
    pub(super) test: BranchTest,
    pub(super) op: Op,
}

impl Op {
    /// True if it leaves every value as it is.
    pub(super) fn is_same(&self) -> bool {
        match self {
            Self::Same => true,
            Self::Object(fields) => {
                let same = |field: &FieldCodec| {
                    let is_there = matches!(field.absence, Absence::Missing | Absence::Lenient);
                    is_there && field.outer == field.inner && field.op.is_same()
                };
                fields.rest.is_none() && fields.named.iter().all(same)
            }
            Self::List(op) | Self::Nullable(op) => op.is_same(),
            _ => false,
        }
    }

    /// The conversion of each item of a list.
    pub(super) fn each(self) -> Self {
        if matches!(self, Self::Same) { Self::Same } else { Self::List(Box::new(self)) }
    }

    /// The conversion of a value that may be `null`.
    pub(super) fn or_null(self) -> Self {
        match self {
            Self::Same | Self::Nullable(_) => self,
            other => Self::Nullable(Box::new(other)),
        }
    }
}

impl ObjectCodec {
    /// The conversion of the whole object.
    pub(super) fn into_op(self) -> Op {
        let op = Op::Object(Box::new(self));
        let Op::Object(fields) = &op else { return op };
        let is_lenient =
            fields.named.iter().any(|field| field.absence == Absence::Lenient || !matches!(field.op, Op::Same));
        if !is_lenient && op.is_same() { Op::Same } else { op }
    }
}

impl Codec {
    pub(super) fn new(op: Op, shared: Vec<Op>, document: Arc<Document>) -> Self {
        Self { op, shared: shared.into(), document }
    }

    /// True if arguments are the same in both shapes.
    #[must_use]
    pub fn is_same(&self) -> bool {
        matches!(self.op, Op::Same)
    }
}

impl Codec {
    /// Encodes arguments as a model would send them. A value that does not fit its schema is left as it is.
    #[must_use]
    pub fn encode_value(&self, arguments: &Value) -> Value {
        self.encoded(&self.op, arguments)
    }

    fn encoded(&self, op: &Op, value: &Value) -> Value {
        match (op, value) {
            (Op::Shared(index), value) => self.encoded(&self.shared[*index], value),
            (Op::Nullable(op), value) if !value.is_null() => self.encoded(op, value),
            (Op::Object(fields), Value::Object(entries)) => Value::Object(self.encoded_fields(fields, entries)),
            (Op::List(op), Value::Array(items)) => items.iter().map(|item| self.encoded(op, item)).collect(),
            (Op::Pairs(op), Value::Object(entries)) => {
                entries.iter().map(|(key, value)| json!({KEY: key, VALUE: self.encoded(op, value)})).collect()
            }
            (Op::Tuple(places), Value::Array(items)) => {
                let mut entries = Map::new();
                let mut items = items.iter();
                for field in &places.fixed {
                    self.encode_field(field, items.next(), places.explicit, &mut entries);
                }
                if let Some((outer, op)) = &places.rest {
                    let rest: Vec<Value> = items.cloned().collect();
                    if places.explicit || !rest.is_empty() {
                        entries.insert(outer.to_string(), self.encoded(op, &Value::Array(rest)));
                    }
                }
                Value::Object(entries)
            }
            (Op::Text { .. }, value) => Value::String(value.to_string()),
            (Op::Listed(listed), value) => {
                let text = listed.iter().find(|(_, own)| own == value).map(|(text, _)| Value::from(&**text));
                text.unwrap_or_else(|| value.clone())
            }
            (Op::Choice(branches), value) => match self.branch(branches, value) {
                Some(branch) => self.encoded(&branch.op, value),
                None => value.clone(),
            },
            (Op::Tagged(branches), value) => match self.branch(branches, value) {
                Some(branch) => json!({CHOICE: branch.label, VALUE: self.encoded(&branch.op, value)}),
                None => value.clone(),
            },
            (Op::Inside(key, op), value) => json!({*key: self.encoded(op, value)}),
            (_, value) => value.clone(),
        }
    }

    fn branch<'a>(&self, branches: &'a [BranchCodec], value: &Value) -> Option<&'a BranchCodec> {
        let find = |closed| branches.iter().find(|branch| branch.test.admits(value, self.document.value(), closed));
        find(true).or_else(|| find(false))
    }

    fn encoded_fields(&self, fields: &ObjectCodec, entries: &Map<String, Value>) -> Map<String, Value> {
        let mut encoded = Map::new();
        for field in &fields.named {
            self.encode_field(field, entries.get(&*field.inner), fields.explicit, &mut encoded);
        }
        let others = || entries.iter().filter(|(key, _)| !fields.named.iter().any(|field| *field.inner == ***key));
        match &fields.rest {
            Some((outer, op)) => {
                let others: Map<String, Value> = others().map(|(key, value)| (key.clone(), value.clone())).collect();
                if fields.explicit || !others.is_empty() {
                    encoded.insert(outer.to_string(), self.encoded(op, &Value::Object(others)));
                }
            }
            None => encoded.extend(others().map(|(key, value)| (key.clone(), value.clone()))),
        }
        encoded
    }

    fn encode_field(&self, field: &FieldCodec, value: Option<&Value>, explicit: bool, into: &mut Map<String, Value>) {
        let encoded = match (value, field.absence) {
            (Some(value), Absence::Boxed) => json!({VALUE: self.encoded(&field.op, value)}),
            (Some(value), _) => self.encoded(&field.op, value),
            (None, Absence::Null | Absence::Boxed) if explicit => Value::Null,
            (None, _) => return,
        };
        into.insert(field.outer.to_string(), encoded);
    }
}

/// The test for a value being of a branch.
pub(super) enum BranchTest {
    /// By its kind.
    Kinds(KindSet),
    /// By the schema of the branch, compiled on first use: as it is, and without entries that it does not name.
    Schema(Box<Value>, [OnceLock<Option<Validator>>; 2]),
}

impl std::fmt::Debug for BranchTest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kinds(kinds) => formatter.debug_tuple("Kinds").field(kinds).finish(),
            Self::Schema(schema, _) => formatter.debug_tuple("Schema").field(schema).finish(),
        }
    }
}

impl BranchTest {
    pub(super) fn by(schema: &Value) -> Self {
        Self::Schema(Box::new(schema.clone()), [OnceLock::new(), OnceLock::new()])
    }

    /// True if the value is of this branch; with `closed`, only if it has no entries that the branch does not name.
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
    rename_references(&mut schema, &|reference| reference.starts_with('#').then(|| format!("{DOCUMENT}{reference}")));
    build_within(&document, &schema, FormatRules::Python)
}

/// Forbids entries that the schema does not mention, as a dialect does in which they cannot be encoded.
fn close(schema: &mut Value) {
    every_schema(schema, &mut |map| {
        let has_properties = map.get("properties").and_then(Value::as_object).is_some_and(|it| !it.is_empty());
        if has_properties && !map.contains_key("patternProperties") {
            map.entry("additionalProperties").or_insert(Value::Bool(false));
        }
    });
}
