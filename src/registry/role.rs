//! Who somebody is to a toolkit, and what that lets them see.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use super::roles_file::{check_details, is_root};
use super::{Filter, View};
use crate::{Error, Result};

/// The name of the role that every organisation has; it is never kept in a file.
pub const ROOT: &str = "root";

/// The one group of the root role.
pub const ORG_MANAGEMENT: &str = "org_management";

/// A role: a prompt, and the groups that whoever has it may use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Role {
    /// The name, unique among the roles.
    pub name: String,
    /// What an agent in this role is told.
    pub prompt: String,
    /// The groups it may use: `None` for the default, an empty list for none.
    pub tool_groups: Option<Vec<String>>,
    /// Everything else that its record says, such as its id and when it was created.
    pub details: Map<String, Value>,
}

impl Role {
    /// Makes a role without any record.
    #[must_use]
    pub fn new(name: &str, prompt: &str, tool_groups: Option<Vec<String>>) -> Self {
        Self { name: name.to_owned(), prompt: prompt.to_owned(), tool_groups, details: Map::new() }
    }

    /// What it lets see, where `default` are the groups of a role that names none, if they are not all.
    #[must_use]
    pub fn filter(&self, default: Option<&[String]>) -> Filter {
        if self.name == ROOT {
            return Filter::of_groups([ORG_MANAGEMENT]);
        }
        match self.tool_groups.as_deref().or(default) {
            Some(groups) => Filter::of_groups(groups.iter().map(String::as_str)),
            None => Filter::default(),
        }
    }

    /// What it lets see at this moment, whatever becomes of the role.
    #[must_use]
    pub fn view(&self, default: Option<&[String]>) -> View {
        self.filter(default).into()
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.name == ROOT || is_root(&self.details) {
            return Err(Error::SystemRole { name: ROOT.to_owned() });
        }
        if self.name.is_empty() {
            return Err(Error::InvalidRole { reason: "its name is empty".to_owned() });
        }
        check_details(&self.details)
            .map_err(|(field, reason)| Error::InvalidRole { reason: format!("{field}: {reason}") })
    }
}

/// What a role lets see, for views that follow it.
#[derive(Debug)]
pub struct Access(Mutex<(u64, Arc<Filter>)>);

impl Access {
    pub(super) fn new(filter: Filter) -> Self {
        Self(Mutex::new((0, Arc::new(filter))))
    }

    /// What the role lets see now: nothing once it is gone.
    #[must_use]
    pub fn filter(&self) -> Arc<Filter> {
        self.now().1.clone()
    }

    pub(super) fn revision(&self) -> u64 {
        self.now().0
    }

    pub(super) fn set(&self, filter: Filter) {
        let mut now = self.now();
        *now = (now.0 + 1, Arc::new(filter));
    }

    fn now(&self) -> MutexGuard<'_, (u64, Arc<Filter>)> {
        // The pair is replaced in one assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
