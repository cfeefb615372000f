//! Tool groups: named sets of tools that are active or inactive, and their saved state.

use std::collections::HashSet;
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use indexmap::IndexSet;
use serde_json::{Map, Value};

use super::{Registry, Revision};
use crate::store::FileFormat;
use crate::sync::lock;

/// The name of the group that every toolkit has and that is always active.
pub const BASIC: &str = "basic";

/// A named set of tools, with a description for the model and notes on how to use them.
#[derive(Debug)]
pub struct Group {
    name: Arc<str>,
    active: AtomicBool,
    texts: Mutex<GroupTexts>,
    revision: Revision,
}

#[derive(Debug, Clone)]
struct GroupTexts {
    description: String,
    notes: Option<String>,
}

impl Group {
    pub(crate) fn new(name: &str, active: bool, description: &str, notes: Option<String>, revision: Revision) -> Self {
        Self {
            name: name.into(),
            active: AtomicBool::new(active),
            texts: Mutex::new(GroupTexts { description: description.to_owned(), notes }),
            revision,
        }
    }

    pub(super) fn basic(revision: Revision) -> Self {
        Self::new(BASIC, true, "", None, revision)
    }

    /// The name, unique in its toolkit.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name, to be kept elsewhere without a copy.
    pub(super) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    /// The number of changes of its registry.
    pub fn revision(&self) -> &Arc<AtomicU64> {
        &self.revision
    }

    /// True if its tools are shown to the model and may be called.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed)
    }

    /// Activates or deactivates the group.
    pub fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::Relaxed);
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// The description, which the model is shown.
    pub fn description(&self) -> String {
        self.texts().description.clone()
    }

    /// Sets the description.
    pub fn set_description(&self, description: String) {
        self.texts().description = description;
        self.revision.fetch_add(1, Ordering::Relaxed);
    }

    /// The notes on how to use its tools, which the model is shown while the group is active.
    pub fn notes(&self) -> Option<String> {
        self.texts().notes.clone()
    }

    /// Sets the notes.
    pub fn set_notes(&self, notes: Option<String>) {
        self.texts().notes = notes;
    }

    fn texts(&self) -> MutexGuard<'_, GroupTexts> {
        lock(&self.texts)
    }
}

/// The format of a saved registry. Only its groups are saved: tools are code, which the program registers again.
pub const FORMAT: FileFormat = FileFormat { name: "toolcrib-state", version: 1, limit: 16 * 1024 * 1024 };

/// The saved state of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupState {
    /// The name, never that of the basic group.
    pub name: String,
    /// The description.
    pub description: String,
    /// The notes.
    pub notes: Option<String>,
    /// True if it is active.
    pub active: bool,
}

impl GroupState {
    /// Converts groups to the value that is saved.
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

    /// Parses groups from a saved value.
    ///
    /// # Errors
    ///
    /// A clause for the developer. An unknown entry is an error, too: its writer relied on it.
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
            Some(group) => Err(format!("its state has the group `{}` twice, or it is reserved", group.name)),
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
            _ => Err("one of its groups is not a saved group".to_owned()),
        }
    }
}

impl<B> Registry<B> {
    /// The names of the active groups, in the order of their creation, without the basic one.
    pub fn active_groups(&self) -> impl Iterator<Item = &str> {
        self.groups().filter(|group| group.is_active()).map(|group| group.name())
    }

    /// Activates the named groups and deactivates all others.
    pub fn set_active_groups(&mut self, names: &HashSet<String>) {
        for group in self.groups() {
            group.set_active(names.contains(group.name()));
        }
    }

    /// The state of all groups.
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

    /// Restores groups in the order of their states. Removed groups are created again; groups without a state go to the end and
    /// are deactivated. Their tools stay.
    pub fn restore_groups(&mut self, states: Vec<GroupState>) {
        let order: IndexSet<String> =
            iter::once(BASIC.to_owned()).chain(states.iter().map(|state| state.name.clone())).collect();
        for group in self.groups().filter(|group| !order.contains(group.name())) {
            group.set_active(false);
        }
        for state in states.into_iter().filter(|state| state.name != BASIC) {
            self.put_group(state);
        }
        self.groups.sort(order.iter().map(String::as_str));
        self.touch();
    }
}
