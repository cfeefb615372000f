//! From a JSON Schema to a [`Quick`].

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use super::{
    bounds::Bounds,
    facts::{Facts, listed, size},
    kinds::Kinds,
    quick::{Field, Fields, Items, Limits, Quick},
};
use crate::schema::{Entries, Node};

/// How deep schemas are followed; deeper ones are left to the judge.
const DEPTH: usize = 64;

/// Compiles schemas of one document and owns the definitions they share.
#[derive(Debug)]
pub(super) struct Compiler<'s> {
    root: &'s Node,
    /// By the text of the reference.
    shared: HashMap<&'s str, Target>,
    /// Whether `items` leaves the places of `prefixItems` alone, as it does since the draft of 2020.
    modern: bool,
    depth: usize,
}

#[derive(Debug)]
enum Target {
    Open(Weak<Quick>),
    Done(Arc<Quick>),
}

impl<'s> Compiler<'s> {
    pub(super) fn new(root: &'s Node) -> Self {
        let dialect = root.get("$schema").and_then(Node::as_str);
        let modern = dialect.is_none_or(|dialect| dialect.contains("2020-12"));
        Compiler { root, shared: HashMap::new(), modern, depth: 0 }
    }

    /// The definitions that compiled schemas refer to: whoever keeps a [`Quick`] keeps these too.
    pub(super) fn into_shared(self) -> Vec<Arc<Quick>> {
        let shared = self.shared.into_values();
        shared.filter_map(|target| if let Target::Done(quick) = target { Some(quick) } else { None }).collect()
    }

    /// Compiles the document for the arguments of a call: an object in which a key is refused that the schema does not name, unless it says
    /// something about such keys or names none at all.
    pub(super) fn compile_root(&mut self) -> Quick {
        let Node::Object(root) = self.root else {
            return self.compile(self.root);
        };
        let plain = Facts::read(root, true).filter(|facts| {
            let kinds = facts.kinds.unwrap_or(Kinds::ALL);
            kinds.meets(Kinds::OBJECT) && !facts.listed && !root.contains_key("$ref") && !root.contains_key("anyOf")
        });
        let fields = plain.and_then(|_| self.all_fields(root));
        match fields {
            Some(mut fields) => {
                if root.contains_key("properties") && !root.contains_key("additionalProperties") {
                    fields.rest = Quick::Ask;
                }
                Quick::Fields(Box::new(fields))
            }
            None => Quick::Ask,
        }
    }

    /// Compiles a schema of the document.
    pub(super) fn compile(&mut self, schema: &'s Node) -> Quick {
        match schema {
            Node::Bool(true) => Quick::Any,
            Node::Object(schema) if self.depth < DEPTH => {
                self.depth += 1;
                let is_root = self.root.as_object().is_some_and(|root| std::ptr::eq(root, schema));
                let quick = self.object(schema, is_root).unwrap_or(Quick::Ask);
                self.depth -= 1;
                quick
            }
            _ => Quick::Ask,
        }
    }

    fn object(&mut self, schema: &'s Entries, is_root: bool) -> Option<Quick> {
        let facts = Facts::read(schema, is_root)?;
        // The commonest schema by far: a type and words about it.
        if facts.plain {
            return Some(facts.kinds.map_or(Quick::Any, by_kinds));
        }
        let kinds = facts.kinds.unwrap_or(Kinds::ALL);
        let mut parts = Vec::with_capacity(1);
        if facts.structured {
            self.own(schema, kinds, &mut parts)?;
        } else if facts.kinds.is_some() && !facts.listed {
            parts.push(by_kinds(kinds));
        }
        if facts.listed {
            parts.push(listed(schema, facts.kinds)?);
        }
        if let Some(reference) = schema.get("$ref") {
            parts.push(self.reference(reference.as_str()?)?);
        }
        if let Some(branches) = schema.get("anyOf") {
            let branches: Vec<Quick> = branches.as_array()?.iter().map(|branch| self.compile(branch)).collect();
            parts.push(either(branches));
        }
        Some(if parts.len() == 1 { parts.pop()? } else { Quick::Both(parts.into()) })
    }

    /// Limits, items and fields. Each is asked only of its own kind, so that a schema with several kinds becomes alternatives.
    fn own(&mut self, schema: &'s Entries, kinds: Kinds, parts: &mut Vec<Quick>) -> Option<()> {
        let items = if kinds.meets(Kinds::ARRAY) { self.items(schema)? } else { None };
        let fields = if kinds.meets(Kinds::OBJECT) { self.fields(schema)? } else { None };
        let mut others = kinds;
        let mut alternatives = Vec::with_capacity(1);
        if let Some(items) = items {
            others = others.without(Kinds::ARRAY);
            alternatives.push(Quick::Items(Box::new(items)));
        }
        if let Some(fields) = fields {
            others = others.without(Kinds::OBJECT);
            alternatives.push(Quick::Fields(Box::new(fields)));
        }
        if others != Kinds::NONE {
            let limits = Limits {
                kinds: others,
                bounds: Bounds::read(schema)?,
                text: size(schema, "minLength", "maxLength")?,
                items: size(schema, "minItems", "maxItems")?,
                entries: size(schema, "minProperties", "maxProperties")?,
            };
            alternatives.push(Quick::Limits(Box::new(limits)));
        }
        parts.push(if alternatives.len() == 1 { alternatives.pop()? } else { Quick::Either(alternatives.into()) });
        Some(())
    }

    #[allow(clippy::option_option)]
    fn items(&mut self, schema: &'s Entries) -> Option<Option<Items>> {
        let unique = match schema.get("uniqueItems") {
            None => false,
            Some(unique) => unique.as_bool()?,
        };
        let first = match schema.get("prefixItems") {
            None => Vec::new(),
            Some(_) if !self.modern => return None,
            Some(first) => first.as_array()?.iter().map(|item| self.compile(item)).collect(),
        };
        let rest = schema.get("items").map_or(Quick::Any, |items| self.compile(items));
        if !unique && first.is_empty() && matches!(rest, Quick::Any) {
            return Some(None);
        }
        Some(Some(Items { size: size(schema, "minItems", "maxItems")?, first: first.into(), rest, unique }))
    }

    #[allow(clippy::option_option)]
    fn fields(&mut self, schema: &'s Entries) -> Option<Option<Fields>> {
        let asks =
            ["properties", "required", "additionalProperties"].iter().any(|keyword| schema.contains_key(keyword));
        if asks { Some(Some(self.all_fields(schema)?)) } else { Some(None) }
    }

    fn all_fields(&mut self, schema: &'s Entries) -> Option<Fields> {
        let rest = schema.get("additionalProperties").map_or(Quick::Any, |rest| self.compile(rest));
        let mut fields = Vec::new();
        if let Some(properties) = schema.get("properties") {
            let properties = properties.as_object()?;
            fields.reserve_exact(properties.len());
            for (name, property) in properties.iter() {
                fields.push(Field { name: name.into(), required: false, quick: self.compile(property) });
            }
        }
        let mut order = Fields::sorted(&fields);
        let mut required = 0;
        if let Some(names) = schema.get("required") {
            for name in names.as_array()? {
                let name = name.as_str()?;
                if let Ok(at) = order.binary_search_by(|index| (*fields[*index as usize].name).cmp(name)) {
                    let field = &mut fields[order[at] as usize];
                    required += usize::from(!field.required);
                    field.required = true;
                } else {
                    // Asked for but not described, so held to what the others are.
                    let quick = if matches!(rest, Quick::Any) { Quick::Any } else { Quick::Ask };
                    fields.push(Field { name: name.into(), required: true, quick });
                    required += 1;
                    order = Fields::sorted(&fields);
                }
            }
        }
        let size = size(schema, "minProperties", "maxProperties")?;
        Some(Fields { size, named: fields.into(), order, required, rest })
    }

    /// Only whole definitions are followed: a pointer into something that has an identity of its own would be misread.
    fn reference(&mut self, reference: &'s str) -> Option<Quick> {
        let (place, name) = reference.strip_prefix("#/")?.split_once('/')?;
        if !matches!(place, "$defs" | "definitions") || name.contains(['/', '~', '%']) {
            return None;
        }
        match self.shared.get(reference) {
            Some(Target::Open(open)) => return Some(Quick::Again(Weak::clone(open))),
            Some(Target::Done(done)) => return Some(Quick::Shared(Arc::clone(done))),
            None => {}
        }
        let root = self.root;
        let target = root.get(place)?.get(name)?;
        let compiled = Arc::new_cyclic(|open| {
            self.shared.insert(reference, Target::Open(Weak::clone(open)));
            self.compile(target)
        });
        self.shared.insert(reference, Target::Done(Arc::clone(&compiled)));
        Some(Quick::Shared(compiled))
    }
}

impl Fields {
    fn sorted(fields: &[Field]) -> Box<[u32]> {
        let mut order: Box<[u32]> = (0..).take(fields.len()).collect();
        order.sort_unstable_by(|one, other| fields[*one as usize].name.cmp(&fields[*other as usize].name));
        order
    }
}

fn by_kinds(kinds: Kinds) -> Quick {
    match kinds {
        Kinds::STRING => Quick::Text,
        Kinds::INTEGER => Quick::Integer,
        Kinds::NUMBER => Quick::Number,
        Kinds::BOOLEAN => Quick::Boolean,
        _ => Quick::Kinds(kinds),
    }
}

/// Alternatives. Those that ask for nothing but kinds are one set of them.
fn either(branches: Vec<Quick>) -> Quick {
    let kinds = branches.iter().try_fold(Kinds::NONE, |kinds, branch| {
        Some(kinds.or(match branch {
            Quick::Text => Kinds::STRING,
            Quick::Integer => Kinds::INTEGER,
            Quick::Number => Kinds::NUMBER,
            Quick::Boolean => Kinds::BOOLEAN,
            Quick::Kinds(kinds) => *kinds,
            _ => return None,
        }))
    });
    kinds.map_or_else(|| Quick::Either(branches.into()), by_kinds)
}
