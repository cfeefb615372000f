//! Things with an id in the order they came, any of which can be found and taken out.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Things with an id in the order they came. An id is there once.
#[derive(Debug)]
pub(super) struct Queue<T> {
    turns: HashMap<Arc<str>, u64>,
    entries: BTreeMap<u64, (Arc<str>, T)>,
    next_turn: u64,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { turns: HashMap::new(), entries: BTreeMap::new(), next_turn: 0 }
    }
}

impl<T> Queue<T> {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, id: &str) -> Option<&T> {
        self.entries.get(self.turns.get(id)?).map(|(_, thing)| thing)
    }

    /// Puts a thing at the end, where it can be seen.
    pub(super) fn push(&mut self, id: &str, thing: T) -> &T {
        self.remove(id);
        let turn = self.next_turn;
        self.next_turn += 1;
        let id: Arc<str> = id.into();
        self.turns.insert(id.clone(), turn);
        &self.entries.entry(turn).or_insert((id, thing)).1
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<T> {
        let turn = self.turns.remove(id)?;
        self.entries.remove(&turn).map(|(_, thing)| thing)
    }

    /// The thing that came first.
    pub(super) fn first(&self) -> Option<&T> {
        self.entries.first_key_value().map(|(_, (_, thing))| thing)
    }

    /// Takes out the thing that came first.
    pub(super) fn pop_first(&mut self) -> Option<T> {
        let (_, (id, thing)) = self.entries.pop_first()?;
        self.turns.remove(&id);
        Some(thing)
    }

    /// All of them, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.entries.values().map(|(id, thing)| (&**id, thing))
    }
}
