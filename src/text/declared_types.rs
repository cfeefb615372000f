//! The types that a tool's schema declares, as far as the parsing of text depends on them.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::schema::Document;
use crate::schema::check::{FormatRules, SchemaValidator, coerce};

/// A lookup of the parameters of a tool by its name.
pub type FindParameters<'a> = dyn Fn(&str) -> Option<Arc<Document>> + 'a;

/// The maximum number of schemas that one question visits: unions of references to unions can be endless.
const MAX_VISITS: usize = 64;

static UNDECLARED: Value = Value::Null;

fn take_visit(visits: &Cell<usize>) -> bool {
    let left = visits.get();
    visits.set(left.saturating_sub(1));
    left > 0
}

/// A set of the types that a value may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    const NONE: Self = Self(0);
    pub(super) const STRING: Self = Self(1);
    const SCALAR: Self = Self(2);
    pub(super) const ARRAY: Self = Self(4);
    pub(super) const OBJECT: Self = Self(8);
    /// `null`, which is a scalar as well.
    pub(super) const NULL: Self = Self(32);
    /// No type is declared.
    pub(super) const ANY: Self = Self(16);

    pub(super) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn named(name: &str) -> Self {
        match name {
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            "null" => Self::NULL.with(Self::SCALAR),
            _ => Self::SCALAR,
        }
    }

    fn of(value: &Value) -> Self {
        match value {
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
            Value::Null => Self::NULL.with(Self::SCALAR),
            Value::Bool(_) | Value::Number(_) => Self::SCALAR,
        }
    }

    /// True for text, and neither a list nor an object.
    pub(super) fn is_text(self) -> bool {
        self.has(Self::STRING) && !self.has(Self(Self::ARRAY.0 | Self::OBJECT.0 | Self::ANY.0))
    }
}

/// The declared type of a value: a schema in the document of a tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeclaredType<'s> {
    root: &'s Value,
    schema: &'s Value,
}

impl<'s> DeclaredType<'s> {
    /// The type of all arguments of a tool.
    pub(super) fn root(document: &'s Document) -> Self {
        Self { root: document.value(), schema: document.value() }
    }

    /// The type of a value that is not declared.
    pub(super) fn nothing(self) -> Self {
        self.at(&UNDECLARED)
    }

    fn at(self, schema: &'s Value) -> Self {
        Self { schema, ..self }
    }

    /// The target of a reference, and the branches of a union.
    fn parts(self) -> impl Iterator<Item = Self> {
        let target = self.schema.get("$ref").and_then(Value::as_str).and_then(|reference| {
            let pointer = reference.strip_prefix('#')?;
            self.root.pointer(pointer)
        });
        let branches =
            ["anyOf", "oneOf", "allOf"].into_iter().filter_map(move |word| self.schema.get(word)?.as_array());
        target.into_iter().chain(branches.flatten()).map(move |schema| self.at(schema))
    }

    /// The types that a value may have.
    pub(super) fn types(self) -> Types {
        match self.types_within(&Cell::new(MAX_VISITS)) {
            Types::NONE => Types::ANY,
            types => types,
        }
    }

    fn types_within(self, visits: &Cell<usize>) -> Types {
        if let Some(member) = self.schema.get("const") {
            return Types::of(member);
        }
        let union = |types: Types, other: Types| types.with(other);
        if let Some(members) = self.schema.get("enum").and_then(Value::as_array) {
            return members.iter().map(Types::of).fold(Types::NONE, union);
        }
        match self.schema.get("type") {
            Some(Value::String(name)) => return Types::named(name),
            Some(Value::Array(names)) => {
                return names.iter().filter_map(Value::as_str).map(Types::named).fold(Types::NONE, union);
            }
            _ => {}
        }
        if !take_visit(visits) {
            return Types::ANY;
        }
        let parts = self.parts().map(|part| part.types_within(visits)).fold(Types::NONE, union);
        let is_object = self.schema.get("properties").is_some();
        let is_array = self.schema.get("items").is_some();
        match (parts, is_object, is_array) {
            (Types::NONE, true, _) => Types::OBJECT,
            (Types::NONE, _, true) => Types::ARRAY,
            (Types::NONE, false, false) => Types::ANY,
            (parts, _, _) => parts,
        }
    }

    /// True if the schema lists its values.
    pub(super) fn is_listed(self) -> bool {
        self.schema.get("enum").is_some() || self.schema.get("const").is_some()
    }

    /// The type of an entry.
    pub(super) fn entry(self, name: &str) -> Option<Self> {
        self.find(&Cell::new(MAX_VISITS), &|schema| {
            let named = schema.get("properties").and_then(|properties| properties.get(name));
            named.or_else(|| schema.get("additionalProperties").filter(|rest| rest.is_object()))
        })
    }

    /// The type of an item.
    pub(super) fn item(self, index: usize) -> Option<Self> {
        self.find(&Cell::new(MAX_VISITS), &|schema| match schema.get("items") {
            Some(Value::Array(items)) => items.get(index),
            items => schema.get("prefixItems").and_then(|items| items.get(index)).or(items),
        })
    }

    fn find(self, visits: &Cell<usize>, look: &dyn Fn(&'s Map<String, Value>) -> Option<&'s Value>) -> Option<Self> {
        let own = self.schema.as_object().and_then(look);
        own.map(|schema| self.at(schema)).or_else(|| {
            let mut parts = self.parts().take_while(|_| take_visit(visits));
            parts.find_map(|part| part.find(visits, look))
        })
    }

    /// The name of the only parameter, or of the only required one.
    pub(super) fn only(self) -> Option<&'s str> {
        let properties = self.schema.get("properties")?.as_object()?;
        let required = self.schema.get("required").and_then(Value::as_array);
        match (properties.len(), required.map(Vec::as_slice)) {
            (1, _) => properties.keys().next().map(String::as_str),
            (_, Some([only])) => only.as_str(),
            _ => None,
        }
    }

    /// True if a property of that name is declared.
    pub(super) fn has_property(self, name: &str) -> bool {
        self.schema.get("properties").is_some_and(|properties| properties.get(name).is_some())
    }
}

/// Coerces arguments that were written as text to their declared types. Values that do not fit are left to validation.
pub(super) fn converted(arguments: Map<String, Value>, document: &Arc<Document>) -> Value {
    let value = Value::Object(arguments);
    coerce(&SchemaValidator::new(Arc::clone(document), FormatRules::Python), &value).unwrap_or(value)
}
