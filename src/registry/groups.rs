//! The groups of a registry in order, each with the names of the tools it holds.

use std::sync::Arc;

use indexmap::IndexMap;

use super::Group;
use crate::{Error, Result};

/// The groups by name, in the order they were created.
///
/// The groups that hold a tool are kept with the tool, so that nothing is looked up in two places.
#[derive(Debug, Default)]
pub(super) struct Groups(IndexMap<Box<str>, Held, ahash::RandomState>);

/// A group and the tools it holds.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) group: Arc<Group>,
    pub(super) is_reserved: bool,
    /// In the order they were taken in.
    pub(super) tools: Vec<Arc<str>>,
}

impl Groups {
    pub(super) fn get(&self, id: &str) -> Option<&Held> {
        self.0.get(id)
    }

    /// All groups in their order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Held)> {
        self.0.iter().map(|(id, held)| (&**id, held))
    }

    pub(super) fn is_reserved(&self, id: &str) -> bool {
        self.get(id).is_some_and(|held| held.is_reserved)
    }

    pub(super) fn may_register(&self, id: &str) -> Result<()> {
        if self.is_reserved(id) { Err(Error::ReservedGroup { id: id.to_owned() }) } else { Ok(()) }
    }

    pub(super) fn may_unregister(&self, id: &str) -> Result<()> {
        match self.get(id) {
            Some(held) if held.is_reserved => Err(Error::ReservedGroupStays { id: id.to_owned() }),
            Some(_) => Ok(()),
            None => Err(Error::UnknownGroup { name: id.to_owned() }),
        }
    }

    /// Keeps the name of a group from being registered or unregistered from now on.
    pub(super) fn reserve(&mut self, id: &str) -> Result<()> {
        let held = self.0.get_mut(id).ok_or_else(|| Error::UnknownGroup { name: id.to_owned() })?;
        held.is_reserved = true;
        Ok(())
    }

    /// Adds a group without tools at the end, or in the place of the one that has the name.
    pub(super) fn open(&mut self, id: &str, group: Arc<Group>) {
        match self.0.get_mut(id) {
            Some(held) => held.group = group,
            None => drop(self.0.insert(id.into(), Held { group, is_reserved: false, tools: Vec::new() })),
        }
    }

    /// Takes a group out, reserved or not, and names the tools it held.
    pub(super) fn close(&mut self, id: &str) -> Vec<Arc<str>> {
        self.0.shift_remove(id).map(|held| held.tools).unwrap_or_default()
    }

    /// Gives a group other tools and names those it held.
    pub(super) fn refill(&mut self, id: &str, tools: Vec<Arc<str>>) -> Vec<Arc<str>> {
        self.0.get_mut(id).map(|held| std::mem::replace(&mut held.tools, tools)).unwrap_or_default()
    }

    /// Lists a tool that the group does not hold yet.
    pub(super) fn add(&mut self, id: &str, tool: Arc<str>) {
        if let Some(held) = self.0.get_mut(id) {
            held.tools.push(tool);
        }
    }

    /// Takes a tool off the list of a group.
    pub(super) fn take(&mut self, id: &str, tool: &str) {
        if let Some(held) = self.0.get_mut(id)
            && let Some(place) = held.tools.iter().position(|name| **name == *tool)
        {
            held.tools.remove(place);
        }
    }

    /// Brings groups into an order: those named first, then the others as they were.
    pub(super) fn arrange<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        for (place, id) in ids.into_iter().enumerate() {
            if let Some(from) = self.0.get_index_of(id) {
                self.0.move_index(from, place);
            }
        }
    }
}
