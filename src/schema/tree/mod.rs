//! JSON in the form that schemas are put together in: their words are known, their objects small and in order.

mod entries;
pub(super) mod text;

use std::borrow::Cow;

use serde_json::{Number, Value};

pub use entries::Entries;
pub use text::Document;

/// A JSON value that costs no more than what is said in it: known words are borrowed and nothing is hashed.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Node {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number with all of its digits.
    Number(Number),
    /// A text.
    String(Cow<'static, str>),
    /// A list of values.
    Array(Vec<Node>),
    /// Values by key, in order.
    Object(Entries),
}

impl Node {
    /// The value of a key, if this is an object that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_object()?.get(key)
    }

    /// The value at a JSON pointer.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Node> {
        pointer.split('/').skip(1).try_fold(self, |node, step| match node {
            Self::Object(entries) => entries.get(&step.replace("~1", "/").replace("~0", "~")),
            Self::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The text, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The truth value, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(flag) = self { Some(*flag) } else { None }
    }

    /// The number, if this is one that is whole and not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        if let Self::Number(number) = self { number.as_u64() } else { None }
    }

    /// The number, if this is one.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        if let Self::Number(number) = self { number.as_f64() } else { None }
    }

    /// The items, if this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Node]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The entries, if this is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Entries> {
        if let Self::Object(entries) = self { Some(entries) } else { None }
    }
}

impl From<&'static str> for Node {
    fn from(text: &'static str) -> Self {
        Self::String(Cow::Borrowed(text))
    }
}

impl From<String> for Node {
    fn from(text: String) -> Self {
        Self::String(Cow::Owned(text))
    }
}

impl From<usize> for Node {
    fn from(number: usize) -> Self {
        Self::Number(number.into())
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(flag) => Self::Bool(flag),
            Value::Number(number) => Self::Number(number),
            Value::String(text) => text.into(),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Value::Object(entries) => {
                Self::Object(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
            }
        }
    }
}

impl From<Node> for Value {
    fn from(node: Node) -> Self {
        match node {
            Node::Null => Self::Null,
            Node::Bool(flag) => Self::Bool(flag),
            Node::Number(number) => Self::Number(number),
            Node::String(text) => Self::String(text.into_owned()),
            Node::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            Node::Object(entries) => {
                Self::Object(entries.into_iter().map(|(key, node)| (key.into_owned(), node.into())).collect())
            }
        }
    }
}
