//! The entries of an object.

use std::borrow::Cow;

use super::Node;

type Entry = (Cow<'static, str>, Node);

/// Values by key, in the order they were put in. There are few in a schema, so they are found by looking at each.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entries(Vec<Entry>);

impl Entries {
    /// No entries.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// No entries, with room for so many.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn position(&self, key: &str) -> Option<usize> {
        self.0.iter().position(|(own, _)| own == key)
    }

    /// Whether there is an entry of this key.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.position(key).is_some()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// Puts an entry at the end, or in the place of the one that had the key.
    pub fn insert(&mut self, key: impl Into<Cow<'static, str>>, value: Node) {
        let key = key.into();
        match self.get_mut(&key) {
            Some(old) => *old = value,
            None => self.0.push((key, value)),
        }
    }

    /// Puts an entry at the end whose key no other has.
    pub fn push(&mut self, key: impl Into<Cow<'static, str>>, value: Node) {
        self.0.push((key.into(), value));
    }

    /// Takes an entry out and closes the gap.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        self.position(key).map(|at| self.0.remove(at).1)
    }

    /// Keeps the entries for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &Node) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    /// Puts the keys into alphabetical order.
    pub fn sort_keys(&mut self) {
        if !self.0.is_sorted_by(|(one, _), (other, _)| one <= other) {
            self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
    }

    pub(in crate::schema) fn as_slice(&self) -> &[Entry] {
        &self.0
    }

    /// The entries in order, to be changed in any way that leaves the keys what they are.
    pub(in crate::schema) fn as_mut_slice(&mut self) -> &mut [Entry] {
        &mut self.0
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// The entries in order, with values to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Node)> {
        self.0.iter_mut().map(|(key, value)| (&**key, value))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| key.as_ref())
    }

    /// The values in order, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.0.iter_mut().map(|(_, value)| value)
    }

    /// Writes copies of `others` over the entries.
    pub fn overwrite(&mut self, others: &Entries) {
        for (key, value) in &others.0 {
            self.insert(key.clone(), value.clone());
        }
    }
}

/// Of entries whose keys differ.
impl FromIterator<Entry> for Entries {
    fn from_iter<T: IntoIterator<Item = Entry>>(entries: T) -> Self {
        Self(entries.into_iter().collect())
    }
}

impl Extend<Entry> for Entries {
    fn extend<T: IntoIterator<Item = Entry>>(&mut self, entries: T) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl IntoIterator for Entries {
    type Item = Entry;
    type IntoIter = std::vec::IntoIter<Entry>;

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
