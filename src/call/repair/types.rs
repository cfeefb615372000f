//! Which values were brought to their declared type.

use crate::call::{Repair, RepairKind};
use crate::schema::check::{Kind, Subject, entry_path, found, item_path};

/// How many are listed.
const MOST: usize = 50;
/// How deep is looked.
const DEPTH: usize = 128;

/// Lists what differs between arguments as they came and as they were coerced.
#[must_use]
pub fn coerced<S: Subject + Clone>(before: &S, after: &S) -> Vec<Repair> {
    let mut repairs = Vec::new();
    walk("", before, after, DEPTH, &mut repairs);
    repairs
}

fn walk<S: Subject + Clone>(path: &str, before: &S, after: &S, depth: usize, repairs: &mut Vec<Repair>) {
    if repairs.len() >= MOST || depth == 0 {
        return;
    }
    match (before.kind(), after.kind()) {
        (Kind::Object, Kind::Object) => {
            before.every_entry(|key, entry| {
                if let Some(key) = key {
                    after.at_key(key, |other| walk(&entry_path(path, key), entry, other, depth - 1, repairs));
                }
                repairs.len() < MOST
            });
        }
        (Kind::Array, Kind::Array) => {
            let mut items = Vec::with_capacity(after.length());
            after.every_item(|item| {
                items.push(item.clone());
                true
            });
            let mut index = 0;
            before.every_item(|item| {
                if let Some(other) = items.get(index) {
                    walk(&item_path(path, index), item, other, depth - 1, repairs);
                }
                index += 1;
                repairs.len() < MOST
            });
        }
        (one, other) if one == other => {}
        _ => {
            let text = format!("{} was read as {}", found(before), found(after));
            repairs.push(Repair::new(RepairKind::Coerced, text).at(path));
        }
    }
}
