//! Roles: named prompts with the groups that their holders may use.

use std::sync::{Arc, Mutex, MutexGuard};

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::roles_file::{OtherContent, RolesFile, check_details, is_root};
use super::{Filter, View};
use crate::sync::lock;
use crate::{Error, Result};

/// The name of the role that every organisation has; it is never kept in a file.
pub const ROOT: &str = "root";

/// The one group of the root role.
pub const ORG_MANAGEMENT: &str = "org_management";

/// A role: a prompt, and the groups that its holders may use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Role {
    /// The name, unique among the roles.
    pub name: String,
    /// The prompt of an agent in this role.
    pub prompt: String,
    /// The groups it may use: `None` for the default, an empty list for none.
    pub tool_groups: Option<Vec<String>>,
    /// The other fields of its record, such as its id and creation time.
    pub details: Map<String, Value>,
}

impl Role {
    /// Makes a role without other fields.
    #[must_use]
    pub fn new(name: &str, prompt: &str, tool_groups: Option<Vec<String>>) -> Self {
        Self { name: name.to_owned(), prompt: prompt.to_owned(), tool_groups, details: Map::new() }
    }

    /// The filter of the role; `default` are the groups of a role that names none, `None` for all.
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

    /// The view of the role as it is now; it does not follow changes of the role.
    #[must_use]
    pub fn view(&self, default: Option<&[String]>) -> View {
        self.filter(default).into()
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.name == ROOT || is_root(&self.details) {
            return Err(Error::SystemRole { name: ROOT.to_owned() });
        }
        if self.name.is_empty() {
            return Err(Error::InvalidRole { reason: "the name is empty".to_owned() });
        }
        check_details(&self.details)
            .map_err(|(field, reason)| Error::InvalidRole { reason: format!("{field}: {reason}") })
    }
}

/// The filter of a role, for views that follow its changes.
#[derive(Debug)]
pub struct RoleAccess(Mutex<(u64, Arc<Filter>)>);

impl RoleAccess {
    pub(super) fn new(filter: Filter) -> Self {
        Self(Mutex::new((0, Arc::new(filter))))
    }

    /// The current filter; it selects nothing once the role is removed.
    #[must_use]
    pub fn filter(&self) -> Arc<Filter> {
        self.current().1.clone()
    }

    pub(super) fn revision(&self) -> u64 {
        self.current().0
    }

    pub(super) fn set(&self, filter: Filter) {
        let mut current = self.current();
        *current = (current.0 + 1, Arc::new(filter));
    }

    fn current(&self) -> MutexGuard<'_, (u64, Arc<Filter>)> {
        lock(&self.0)
    }
}

/// The id and time of a new record.
#[derive(Debug, Clone, Default)]
pub struct RecordStamp {
    /// A unique id.
    pub id: String,
    /// The time as text.
    pub at: String,
}

/// The roles of an organisation by name, in the order in which they were added.
///
/// An unknown role sees nothing. Changes apply at once, also to views that were made before.
#[derive(Debug, Default)]
pub struct Roles {
    /// The groups of roles that name none; `None` for all.
    default: Option<Vec<String>>,
    by_name: IndexMap<String, (Role, Arc<RoleAccess>), ahash::RandomState>,
    /// The other content of the file, to be written again.
    rest: OtherContent,
}

impl Roles {
    /// Makes an empty list; `default` are the groups of roles that name none, `None` for all.
    #[must_use]
    pub fn new(default: Option<Vec<String>>) -> Self {
        Self { default, ..Self::default() }
    }

    /// The groups of roles that name none; `None` for all.
    #[must_use]
    pub fn default_groups(&self) -> Option<&[String]> {
        self.default.as_deref()
    }

    /// Adds a role; missing fields of its record are taken from the stamp.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateRole`], [`Error::SystemRole`] for the root role, [`Error::InvalidRole`] if it has no name.
    pub fn add(&mut self, mut role: Role, stamp: RecordStamp) -> Result<()> {
        role.check()?;
        if self.by_name.contains_key(&role.name) {
            return Err(Error::DuplicateRole { name: role.name });
        }
        let defaults = [
            ("id", stamp.id.into()),
            ("createdBy", Value::Null),
            ("createdAt", stamp.at.into()),
            ("llmServiceId", Value::Null),
        ];
        for (key, value) in defaults {
            role.details.entry(key).or_insert(value);
        }
        let access = Arc::new(RoleAccess::new(role.filter(self.default.as_deref())));
        self.by_name.insert(role.name.clone(), (role, access));
        Ok(())
    }

    /// Finds a role by its exact name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Role> {
        self.by_name.get(name).map(|(role, _)| role)
    }

    /// All roles in the order in which they were added.
    #[must_use]
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Role> {
        self.by_name.values().map(|(role, _)| role)
    }

    /// Changes a role; its name stays.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownRole`], and [`Error::SystemRole`] for the root role.
    pub fn update(&mut self, name: &str, at: &str, change: impl FnOnce(&mut Role)) -> Result<&Role> {
        if name == ROOT {
            return Err(Error::SystemRole { name: name.to_owned() });
        }
        let (role, access) = self.by_name.get_mut(name).ok_or_else(|| Error::UnknownRole { name: name.to_owned() })?;
        change(role);
        name.clone_into(&mut role.name);
        role.details.insert("updatedAt".to_owned(), at.into());
        access.set(role.filter(self.default.as_deref()));
        Ok(role)
    }

    /// Removes a role: its holders see nothing from now on.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownRole`], and [`Error::SystemRole`] for the root role.
    pub fn remove(&mut self, name: &str) -> Result<Role> {
        if name == ROOT {
            return Err(Error::SystemRole { name: name.to_owned() });
        }
        let removed = self.by_name.shift_remove(name);
        let (role, access) = removed.ok_or_else(|| Error::UnknownRole { name: name.to_owned() })?;
        access.set(Filter::nothing());
        Ok(role)
    }

    /// The view of a role, which follows its changes; it selects nothing if the role is unknown or removed.
    #[must_use]
    pub fn view(&self, name: &str) -> View {
        if name == ROOT {
            return Filter::of_groups([ORG_MANAGEMENT]).into();
        }
        self.by_name.get(name).map_or_else(|| Filter::nothing().into(), |(_, access)| access.clone().into())
    }

    /// The roles as the content of a file.
    #[must_use]
    pub fn file(&self) -> RolesFile {
        RolesFile { roles: self.all().cloned().collect(), rest: self.rest.clone(), problems: Vec::new() }
    }

    /// Replaces all roles by those of a file; views follow the roles that still exist, and invalid records are ignored.
    pub fn replace(&mut self, file: RolesFile) {
        let mut old = std::mem::take(&mut self.by_name);
        for role in file.roles {
            let filter = role.filter(self.default.as_deref());
            let access = match old.swap_remove(&role.name) {
                Some((_, access)) => {
                    access.set(filter);
                    access
                }
                None => Arc::new(RoleAccess::new(filter)),
            };
            self.by_name.insert(role.name.clone(), (role, access));
        }
        for (_, access) in old.into_values() {
            access.set(Filter::nothing());
        }
        self.rest = file.rest;
    }
}
