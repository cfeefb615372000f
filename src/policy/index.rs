//! Finding the rules that may be about a call without trying each of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::matcher::Names;
use super::{CallFacts, Rule};

type Places = HashMap<Box<[u8]>, Vec<u32>, ahash::RandomState>;

/// Where the rules stand that name something, by what they name.
///
/// Each rule is kept under one of its conditions, the first that narrows it down; the others are tried afterwards.
#[derive(Debug, Default)]
pub(super) struct Index {
    tools: Shelf,
    servers: Shelf,
    callers: Shelf,
    groups: Shelf,
    tags: Shelf,
    /// The rules that only trying can tell.
    rest: Vec<u32>,
}

/// The rules under one condition.
#[derive(Debug, Default)]
struct Shelf {
    exact: Places,
    prefixes: Affixes,
    suffixes: Affixes,
}

/// Beginnings or ends of names, with the lengths that they have.
#[derive(Debug, Default)]
struct Affixes {
    places: Places,
    lengths: Vec<usize>,
}

impl Index {
    pub(super) fn new(rules: &[Arc<Rule>]) -> Self {
        let mut index = Self::default();
        for (place, rule) in (0..).zip(rules) {
            let shelves = [
                (&rule.tool, &mut index.tools),
                (&rule.server, &mut index.servers),
                (&rule.caller, &mut index.callers),
                (&rule.group, &mut index.groups),
                (&rule.tag, &mut index.tags),
            ];
            let found = shelves.into_iter().find_map(|(names, shelf)| {
                names.as_ref().filter(|names| names.can_be_indexed()).map(|names| (names, shelf))
            });
            match found {
                Some((names, shelf)) => shelf.put(names, place),
                None => index.rest.push(place),
            }
        }
        index
    }

    /// The places of all rules that may be about a call, and of some that are not, in order.
    pub(super) fn candidates(&self, subject: &CallFacts<'_>) -> Vec<u32> {
        let mut found = self.rest.clone();
        self.tools.find(subject.tool, &mut found);
        subject.server.iter().for_each(|name| self.servers.find(name, &mut found));
        self.callers.find(subject.caller.unwrap_or_default(), &mut found);
        subject.groups.iter().for_each(|name| self.groups.find(name, &mut found));
        subject.tags.iter().for_each(|name| self.tags.find(name, &mut found));
        found.sort_unstable();
        found.dedup();
        found
    }
}

impl Shelf {
    fn put(&mut self, names: &Names, place: u32) {
        for name in names.exact() {
            self.exact.entry(name.as_bytes().into()).or_default().push(place);
        }
        for glob in names.globs() {
            // A glob has one of them, or its rule would not be indexed.
            match glob.prefix() {
                "" => self.suffixes.put(glob.suffix(), place),
                prefix => self.prefixes.put(prefix, place),
            }
        }
    }

    fn find(&self, name: &str, found: &mut Vec<u32>) {
        let name = name.as_bytes();
        if let Some(places) = self.exact.get(name) {
            found.extend(places);
        }
        self.prefixes.find(|length| name.get(..length), found);
        self.suffixes.find(|length| name.len().checked_sub(length).map(|start| &name[start..]), found);
    }
}

impl Affixes {
    fn put(&mut self, affix: &str, place: u32) {
        self.places.entry(affix.as_bytes().into()).or_default().push(place);
        if let Err(at) = self.lengths.binary_search(&affix.len()) {
            self.lengths.insert(at, affix.len());
        }
    }

    fn find<'n>(&self, part: impl Fn(usize) -> Option<&'n [u8]>, found: &mut Vec<u32>) {
        for part in self.lengths.iter().map_while(|length| part(*length)) {
            if let Some(places) = self.places.get(part) {
                found.extend(places);
            }
        }
    }
}
