//! What of a registry is saved: its groups. Tools are code, which the program registers anew.

use std::collections::HashSet;
use std::iter;
use std::sync::Arc;

use indexmap::IndexSet;
use serde_json::{Map, Value};

use super::{BASIC, Group, Registry};
use crate::store::Format;

/// The form in which a registry's state is kept in a file.
pub const FORMAT: Format = Format { name: "toolcrib-state", version: 1, limit: 16 * 1024 * 1024 };

/// A group as it is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// The name, which is not the basic group's.
    pub name: String,
    /// What the group is for.
    pub description: String,
    /// How to use its tools.
    pub notes: Option<String>,
    /// Whether it is on.
    pub active: bool,
}

impl GroupState {
    /// Writes groups as a value that can be kept.
    #[must_use]
    pub fn write_all(groups: &[Self]) -> Value {
        let groups = groups.iter().map(|group| {
            let fields = [
                ("name", group.name.clone().into()),
                ("description", group.description.clone().into()),
                ("notes", group.notes.clone().into()),
                ("active", group.active.into()),
            ];
            Value::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
        });
        let groups = groups.collect();
        Value::Object(Map::from_iter([("groups".to_owned(), Value::Array(groups))]))
    }

    /// Reads groups from a value that was kept; the error says what about it is no such value.
    ///
    /// # Errors
    ///
    /// A clause for the developer. An entry that is not known is one too: whoever wrote it relied on it.
    pub fn read_all(value: Value) -> Result<Vec<Self>, String> {
        let Value::Object(mut entries) = value else { return Err("its state is not an object".to_owned()) };
        let Some(Value::Array(groups)) = entries.shift_remove("groups") else {
            return Err("its state has no list of groups".to_owned());
        };
        if let Some(key) = entries.keys().next() {
            return Err(format!("its state has an unknown entry `{key}`"));
        }
        let groups: Vec<Self> = groups.into_iter().map(Self::read).collect::<Result<_, _>>()?;
        let mut names = HashSet::from([BASIC]);
        match groups.iter().find(|group| !names.insert(&group.name)) {
            Some(group) => Err(format!("it may not have a group `{}`, or has it twice", group.name)),
            None => Ok(groups),
        }
    }

    fn read(value: Value) -> Result<Self, String> {
        let Value::Object(mut fields) = value else { return Err("one of its groups is not an object".to_owned()) };
        let mut take = |key: &str| fields.shift_remove(key).unwrap_or_default();
        match (take("name"), take("description"), take("notes"), take("active")) {
            (Value::String(name), Value::String(description), notes, Value::Bool(active)) if fields.is_empty() => {
                let notes = match notes {
                    Value::Null => None,
                    Value::String(notes) => Some(notes),
                    _ => return Err(format!("the notes of its group `{name}` are not text")),
                };
                Ok(Self { name, description, notes, active })
            }
            _ => Err("one of its groups is not as a group is saved".to_owned()),
        }
    }
}

impl<B> Registry<B> {
    /// The groups that are on, in the order they were created, without the basic one.
    pub fn active_groups(&self) -> impl Iterator<Item = &str> {
        self.groups().filter(|group| group.is_active()).map(|group| group.name())
    }

    /// Switches every group on whose name is among these, and every other off.
    pub fn set_active_groups(&mut self, names: &HashSet<String>) {
        for group in self.groups() {
            group.set_active(names.contains(group.name()));
        }
    }

    /// The groups as they are now.
    #[must_use]
    pub fn group_states(&self) -> Vec<GroupState> {
        let state = |group: &Arc<Group>| GroupState {
            name: group.name().to_owned(),
            description: group.description(),
            notes: group.notes(),
            active: group.is_active(),
        };
        self.groups().map(state).collect()
    }

    /// Makes the groups what they were: in the order of the states, those that are gone anew, and those that have no
    /// state after them, switched off. Their tools stay.
    pub fn restore_groups(&mut self, states: Vec<GroupState>) {
        let order: IndexSet<String> =
            iter::once(BASIC.to_owned()).chain(states.iter().map(|state| state.name.clone())).collect();
        for group in self.groups().filter(|group| !order.contains(group.name())) {
            group.set_active(false);
        }
        for GroupState { name, description, notes, active } in states.into_iter().filter(|state| state.name != BASIC) {
            if let Ok(group) = self.group(&name) {
                group.set_description(description);
                group.set_notes(notes);
                group.set_active(active);
            } else {
                let group = Group::new(&name, active, &description, notes, self.revision.clone());
                self.groups.open(&name, Arc::new(group));
            }
        }
        self.groups.arrange(order.iter().map(String::as_str));
        self.touch();
    }
}
