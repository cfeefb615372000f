//! A JSON value for building schemas: keywords are borrowed, objects are small and keep their order.

use std::borrow::Cow;

use serde_json::{Number, Value};

/// A JSON value that is cheap to build: known words are borrowed and nothing is hashed.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Node {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number with all of its digits.
    Number(Number),
    /// A string.
    String(Cow<'static, str>),
    /// An array.
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

    /// The string, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The boolean, if this is one.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(flag) = self { Some(*flag) } else { None }
    }

    /// The number, if this is a non-negative integer.
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

type NodeEntry = (Cow<'static, str>, Node);

/// The entries of an object, in insertion order. Objects of schemas are small, so a key is found by a linear search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entries(Vec<NodeEntry>);

impl Entries {
    /// An object without entries.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// An object without entries, with capacity for this many.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.0.iter().position(|(own, _)| own == key)
    }

    /// True if there is an entry of this key.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// The value of a key, mutably.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// Appends an entry, or replaces the value of the one that has the key.
    pub fn insert(&mut self, key: impl Into<Cow<'static, str>>, value: Node) {
        let key = key.into();
        match self.get_mut(&key) {
            Some(old) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// Appends an entry whose key no other entry has.
    pub fn push(&mut self, key: impl Into<Cow<'static, str>>, value: Node) {
        self.0.push((key.into(), value));
    }

    /// Puts an entry whose key no other entry has before the others.
    pub fn push_front(&mut self, key: impl Into<Cow<'static, str>>, value: Node) {
        self.0.insert(0, (key.into(), value));
    }

    /// Removes an entry; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        self.position(key).map(|at| self.0.remove(at).1)
    }

    /// Keeps the entries for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &Node) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    /// Sorts the entries by key.
    pub fn sort_keys(&mut self) {
        if !self.0.is_sorted_by(|(one, _), (other, _)| one <= other) {
            self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
    }

    pub(crate) fn as_slice(&self) -> &[NodeEntry] {
        &self.0
    }

    /// The entries in order, mutably. The keys must not change.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [NodeEntry] {
        &mut self.0
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// The entries in order, with mutable values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Node)> {
        self.0.iter_mut().map(|(key, value)| (&**key, value))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_ref())
    }

    /// The values in order, mutably.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Inserts copies of `others`.
    pub fn overwrite(&mut self, others: &Entries) {
        for (key, value) in &others.0 {
            self.insert(key.clone(), value.clone());
        }
    }
}

/// Takes entries whose keys are all different.
impl<const N: usize> From<[NodeEntry; N]> for Entries {
    fn from(entries: [NodeEntry; N]) -> Self {
        Self(entries.into())
    }
}

/// Collects entries whose keys are all different.
impl FromIterator<NodeEntry> for Entries {
    fn from_iter<T: IntoIterator<Item = NodeEntry>>(entries: T) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl Extend<NodeEntry> for Entries {
    fn extend<T: IntoIterator<Item = NodeEntry>>(&mut self, entries: T) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl IntoIterator for Entries {
    type Item = NodeEntry;
    type IntoIter = std::vec::IntoIter<NodeEntry>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_place() {
        let mut entries = Entries::new();

        entries.insert("b", Node::from(1));
        entries.insert("a", Node::from(2));
        entries.insert("b", Node::from(3));

        assert_eq!(entries.keys().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(entries.get("b"), Some(&Node::from(3)));
    }

    #[test]
    fn taking_out_closes_the_gap() {
        let mut entries: Entries = ["c", "b", "a"].map(|key| (key.into(), Node::Null)).into_iter().collect();

        let removed = entries.remove("b");
        entries.sort_keys();

        assert_eq!(removed, Some(Node::Null));
        assert_eq!(entries.keys().collect::<Vec<_>>(), ["a", "c"]);
    }
}
