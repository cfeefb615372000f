//! Arguments that mean the right thing in the wrong type: `"42"` for an integer becomes 42.
//!
//! Only the declared type decides, what already fits is left as it is, and nothing is changed in place.

use serde_json::{Map, Value};

use super::{
    convert::{to_member, to_type},
    judge::Judge,
    phrase,
    subject::{Kind, Subject},
    work::Work,
};

/// How deep values are followed.
const DEPTH: usize = 128;

/// A value of which changed copies can be built.
pub trait Rebuild: Subject + Clone {
    /// A value of the same representation; `None` if it has no word for it.
    fn build(&self, value: &Value) -> Option<Self>;

    /// A copy of this array with some items replaced.
    fn with_items(&self, items: Vec<(usize, Self)>) -> Option<Self>;

    /// A copy of this object with some entries replaced.
    fn with_entries(&self, entries: Vec<(String, Self)>) -> Option<Self>;
}

impl Rebuild for Value {
    fn build(&self, value: &Value) -> Option<Self> {
        Some(value.clone())
    }

    fn with_items(&self, items: Vec<(usize, Self)>) -> Option<Self> {
        let mut copy = self.as_array()?.clone();
        for (index, item) in items {
            *copy.get_mut(index)? = item;
        }
        Some(Value::Array(copy))
    }

    fn with_entries(&self, entries: Vec<(String, Self)>) -> Option<Self> {
        let mut copy = self.as_object()?.clone();
        copy.extend(entries);
        Some(Value::Object(copy))
    }
}

/// A schema of the document and its JSON pointer.
#[derive(Clone)]
struct Site<'s> {
    schema: &'s Value,
    pointer: String,
}

impl<'s> Site<'s> {
    /// The schema under a keyword.
    fn keyword(&self, keyword: &str) -> Option<Site<'s>> {
        let schema = self.schema.get(keyword)?;
        Some(Site { schema, pointer: format!("{}/{keyword}", self.pointer) })
    }

    fn item(&self, index: usize) -> Option<Site<'s>> {
        Some(Site { schema: self.schema.get(index)?, pointer: format!("{}/{index}", self.pointer) })
    }

    fn entry(&self, name: &str) -> Option<Site<'s>> {
        let schema = self.schema.get(name)?;
        Some(Site { schema, pointer: format!("{}/{}", self.pointer, escaped(name)) })
    }
}

/// A name as a step of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Coerces a value by the document's whole schema; `None` if nothing changes.
pub fn coerce<S: Rebuild>(root: &Value, judge: &Judge<S::Form>, value: &S) -> Option<S> {
    let work = Work::for_value(value);
    let coercer = Coercer { root, judge, work };
    coercer.coerce(&Site { schema: root, pointer: String::new() }, value, 0)
}

struct Coercer<'s, S: Subject> {
    root: &'s Value,
    judge: &'s Judge<S::Form>,
    work: Work,
}

impl<'s, S: Rebuild> Coercer<'s, S> {
    fn coerce(&self, site: &Site<'s>, value: &S, depth: usize) -> Option<S> {
        let schema = site.schema.as_object().filter(|_| depth < DEPTH)?;
        let mut changed: Option<S> = None;
        let mut step = |make: &dyn Fn(&S) -> Option<S>| {
            if let Some(next) = make(changed.as_ref().unwrap_or(value)) {
                changed = Some(next);
            }
        };
        if let Some(pointer) = phrase::pointer(schema)
            && let Some(schema) = self.root.pointer(&pointer)
        {
            let target = Site { schema, pointer };
            step(&|value| self.coerce(&target, value, depth + 1));
        }
        if let Some(members) = members(schema) {
            step(&|value| to_member(value, members));
        } else if let Some(declared) = schema.get("type") {
            step(&|value| to_type(value, declared));
        }
        if let Some(parts) = site.keyword("allOf") {
            let mut index = 0;
            while let Some(part) = parts.item(index) {
                step(&|value| self.coerce(&part, value, depth + 1));
                index += 1;
            }
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(branches) = site.keyword(union) {
                step(&|value| self.to_branch(&branches, value, depth));
            }
        }
        step(&|value| match value.kind() {
            Kind::Array => self.items(site, schema, value, depth),
            Kind::Object => self.entries(site, schema, value, depth),
            _ => None,
        });
        changed
    }

    /// As it is if a branch admits it; else as the first branch admits it after coercion.
    fn to_branch(&self, branches: &Site<'s>, value: &S, depth: usize) -> Option<S> {
        let branches: Vec<Site<'s>> = (0..).map_while(|index| branches.item(index)).collect();
        // Nested unions could ask for more work with every level.
        if !self.work.take(branches.len(), value) {
            return None;
        }
        if branches.iter().any(|branch| self.judge.admits(&branch.pointer, value)) {
            return None;
        }
        branches.iter().find_map(|branch| {
            let coerced = self.coerce(branch, value, depth + 1)?;
            let admitted = self.work.take(1, &coerced) && self.judge.admits(&branch.pointer, &coerced);
            admitted.then_some(coerced)
        })
    }

    fn items(&self, site: &Site<'s>, schema: &Map<String, Value>, value: &S, depth: usize) -> Option<S> {
        // Before the draft of 2020 `items` could be the list that `prefixItems` is now.
        let (first, rest) = match schema.get("items") {
            Some(Value::Array(_)) => (site.keyword("items"), site.keyword("additionalItems")),
            _ => (site.keyword("prefixItems"), site.keyword("items")),
        };
        if first.is_none() && rest.is_none() {
            return None;
        }
        let mut changes = Vec::new();
        let mut index = 0;
        value.every_item(|item| {
            let place = first.as_ref().and_then(|first| first.item(index));
            let coerced = place.as_ref().or(rest.as_ref()).and_then(|site| self.coerce(site, item, depth + 1));
            changes.extend(coerced.map(|coerced| (index, coerced)));
            index += 1;
            true
        });
        if changes.is_empty() { None } else { value.with_items(changes) }
    }

    fn entries(&self, site: &Site<'s>, schema: &Map<String, Value>, value: &S, depth: usize) -> Option<S> {
        let properties = site.keyword("properties");
        // Which entries are the additional ones is not known here if patterns take some of them.
        let patterns = schema.contains_key("patternProperties");
        let rest = if patterns { None } else { site.keyword("additionalProperties") };
        if properties.is_none() && rest.is_none() {
            return None;
        }
        let mut changes = Vec::new();
        value.every_entry(|key, entry| {
            if let Some(key) = key {
                let property = properties.as_ref().and_then(|properties| properties.entry(key));
                let coerced = property.as_ref().or(rest.as_ref()).and_then(|site| self.coerce(site, entry, depth + 1));
                changes.extend(coerced.map(|coerced| (key.to_owned(), coerced)));
            }
            true
        });
        if changes.is_empty() { None } else { value.with_entries(changes) }
    }
}

/// What an `enum` or a `const` lists.
fn members(schema: &Map<String, Value>) -> Option<&[Value]> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(member), _) => Some(std::slice::from_ref(member)),
        (None, Some(Value::Array(members))) => Some(members),
        _ => None,
    }
}
