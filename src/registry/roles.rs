//! The roles of an organisation, by name.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::roles_file::{Rest, RolesFile};
use super::{Access, Filter, ORG_MANAGEMENT, ROOT, Role, View};
use crate::{Error, Result};

/// What a new record needs from the world outside.
#[derive(Debug, Clone, Default)]
pub struct Stamp {
    /// An id that no other record has.
    pub id: String,
    /// The time, as a person reads it.
    pub at: String,
}

/// Roles by name, in the order they were added.
///
/// Who has a role that is not here sees nothing. What a change brings holds at once, also for views that were made before.
#[derive(Debug, Default)]
pub struct Roles {
    /// The groups of roles that name none; all if there is no such list.
    default: Option<Vec<String>>,
    by_name: IndexMap<String, (Role, Arc<Access>), ahash::RandomState>,
    /// What else is in the file, to be written again.
    rest: Rest,
}

impl Roles {
    /// No roles; those to come that name no groups have these, or all.
    #[must_use]
    pub fn new(default: Option<Vec<String>>) -> Self {
        Self { default, ..Self::default() }
    }

    /// The groups of roles that name none, if they are not all.
    #[must_use]
    pub fn default_groups(&self) -> Option<&[String]> {
        self.default.as_deref()
    }

    /// Adds a role; what its record lacks is taken from the stamp.
    ///
    /// # Errors
    ///
    /// [`Error::DuplicateRole`], [`Error::SystemRole`] for the root role, [`Error::InvalidRole`] if it has no name.
    pub fn add(&mut self, mut role: Role, stamp: Stamp) -> Result<()> {
        role.check()?;
        if self.by_name.contains_key(&role.name) {
            return Err(Error::DuplicateRole { name: role.name });
        }
        let mut lacking = |key: &str, value: Value| role.details.entry(key).or_insert(value).is_null();
        lacking("id", stamp.id.into());
        lacking("createdBy", Value::Null);
        lacking("createdAt", stamp.at.into());
        lacking("llmServiceId", Value::Null);
        let access = Arc::new(Access::new(role.filter(self.default.as_deref())));
        self.by_name.insert(role.name.clone(), (role, access));
        Ok(())
    }

    /// Finds a role by its exact name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Role> {
        self.by_name.get(name).map(|(role, _)| role)
    }

    /// All roles in the order they were added.
    #[must_use]
    pub fn all(&self) -> impl ExactSizeIterator<Item = &Role> {
        self.by_name.values().map(|(role, _)| role)
    }

    /// Changes a role, but for its name.
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

    /// Takes a role away: who has it sees nothing from now on.
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

    /// What whoever has the role of this name sees: it follows the role until that is removed, and shows nothing where there is
    /// no such role.
    #[must_use]
    pub fn view(&self, name: &str) -> View {
        if name == ROOT {
            return Filter::of_groups([ORG_MANAGEMENT]).into();
        }
        self.by_name.get(name).map_or_else(|| Filter::nothing().into(), |(_, access)| access.clone().into())
    }

    /// The roles as they are kept in a file.
    #[must_use]
    pub fn file(&self) -> RolesFile {
        RolesFile { roles: self.all().cloned().collect(), rest: self.rest.clone(), problems: Vec::new() }
    }

    /// Puts the roles of a file in the place of all roles; views follow those that are still there, and the records that are
    /// no roles are passed over.
    pub fn replace(&mut self, file: RolesFile) {
        let mut old = std::mem::take(&mut self.by_name);
        for role in file.roles {
            let filter = role.filter(self.default.as_deref());
            let access = match old.swap_remove(&role.name) {
                Some((_, access)) => {
                    access.set(filter);
                    access
                }
                None => Arc::new(Access::new(filter)),
            };
            self.by_name.insert(role.name.clone(), (role, access));
        }
        for (_, access) in old.into_values() {
            access.set(Filter::nothing());
        }
        self.rest = file.rest;
    }
}
