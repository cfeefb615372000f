//! The list of values that were coerced to their declared type.

use crate::call::{Change, Repair, RepairKind};
use crate::schema::check::{At, Found, JsonLike, ValueKind};

/// How many are listed.
const MOST: usize = 50;
/// How deep is looked.
const DEPTH: usize = 128;

/// Lists what differs between arguments as they came and as they were coerced.
#[must_use]
pub fn coerced<S: JsonLike + Clone>(before: &S, after: &S) -> Vec<Repair> {
    let mut repairs = Vec::new();
    walk(&At::Root, before, after, DEPTH, &mut repairs);
    repairs
}

fn walk<S: JsonLike + Clone>(at: &At<'_>, before: &S, after: &S, depth: usize, repairs: &mut Vec<Repair>) {
    if repairs.len() >= MOST || depth == 0 {
        return;
    }
    match (before.kind(), after.kind()) {
        (ValueKind::Object, ValueKind::Object) => {
            before.every_entry(|key, entry| {
                if let Some(key) = key {
                    after.at_key(key, |other| walk(&at.key(key), entry, other, depth - 1, repairs));
                }
                repairs.len() < MOST
            });
        }
        (ValueKind::Array, ValueKind::Array) => {
            let mut items = Vec::with_capacity(after.length());
            after.every_item(|item| {
                items.push(item.clone());
                true
            });
            let mut index = 0;
            before.every_item(|item| {
                if let Some(other) = items.get(index) {
                    walk(&at.index(index), item, other, depth - 1, repairs);
                }
                index += 1;
                repairs.len() < MOST
            });
        }
        (one, other) if one == other => {}
        _ => {
            let (before, after) = (Found::of(before).to_string(), Found::of(after).to_string());
            repairs.push(Repair::of(RepairKind::Coerced, Change::ReadAs { before, after }).at(at));
        }
    }
}
