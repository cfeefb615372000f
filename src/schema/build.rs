//! The JSON Schema of a tool's parameters, with the definitions that they share.

use std::collections::{HashMap, HashSet};

use super::definitions::{self, DefinitionNames, PREFIX};
use super::emit::keyword;
use super::normalize::sort_keys;
use super::types::{ArrayKind, ExtraFields, Field, Presence, Refusal, Type};
use crate::json::{Entries, Node};

/// A named type, written once and referred to from elsewhere.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Its origin: `module.Name:id[argument:id,…]`.
    pub reference: String,
    /// The type.
    pub body: Type,
}

/// All definitions of one tool, in the order of first use.
pub type Definitions = Vec<Definition>;

/// A parameter and its visibility to the model.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// The parameter itself.
    pub field: Field,
    /// True if the value does not come from the model.
    pub hidden: bool,
}

/// Builds the schema of `parameters`: an object with `properties`.
///
/// # Errors
///
/// The index of the first parameter that has no schema, and the reason. A hidden parameter never fails.
pub fn build(parameters: Vec<Parameter>, definitions: &Definitions) -> Result<Entries, (usize, Refusal)> {
    let mut builder = Builder::new(&parameters, definitions);
    let mut properties = Entries::with_capacity(parameters.len());
    let mut required = Vec::new();
    let mut hidden_properties = Vec::new();
    for (index, Parameter { field, hidden }) in parameters.into_iter().enumerate() {
        let Field { name, accepts, presence, notes, .. } = field;
        let is_required = presence == Presence::Required;
        let property = builder.field(&accepts, presence, notes).and_then(|property| builder.complete(property));
        match property {
            Ok(property) if hidden => hidden_properties.push(property),
            Ok(property) => {
                if is_required {
                    required.push(Node::from(name.clone()));
                }
                properties.push(name, property);
            }
            Err(_) if hidden => {}
            Err(refusal) => return Err((index, refusal)),
        }
    }

    let mut built = Entries::with_capacity(4);
    let mut schema = Node::Object(properties);
    let named = builder.finish(&mut schema, &Node::Array(hidden_properties));
    if !named.is_empty() {
        built.insert("$defs", Node::Object(named));
    }
    built.insert("properties", schema);
    if !required.is_empty() {
        built.insert("required", Node::Array(required));
    }
    built.insert("type", Node::from("object"));
    let mut built = Node::Object(built);
    sort_keys(&mut built);
    match built {
        Node::Object(built) => Ok(built),
        _ => Ok(Entries::new()),
    }
}

/// The state of a definition.
pub(super) enum Progress {
    Waiting,
    Writing,
    Written(Node),
    Refused(Refusal),
}

/// The weight of a reference: a definition that counts once is written where it is used, the others before all else.
#[derive(Clone, Copy)]
struct Weight {
    here: usize,
    /// Inside the definitions that are referred to.
    below: usize,
}

impl Weight {
    /// A definition with annotations beside the reference is not written where it is used.
    fn beside_notes(self, noted: &Type) -> Self {
        if matches!(noted, Type::Reference(_)) { Self { here: 2, ..self } } else { self }
    }
}

/// Writes the parameters of one tool and the definitions they share.
pub(super) struct Builder<'a> {
    definitions: &'a [Definition],
    short: Vec<String>,
    /// The full names of definitions, counted in the order in which they are first referred to.
    names: Vec<Option<DefinitionNames>>,
    occurrences: HashMap<String, usize>,
    /// The total weight of the references to each definition.
    pub(super) counts: Vec<usize>,
    pub(super) progress: Vec<Progress>,
    /// True if two definitions have the same short name.
    clash: bool,
    pub(super) foreign: Entries,
}

impl<'a> Builder<'a> {
    fn new(parameters: &[Parameter], definitions: &'a [Definition]) -> Self {
        let mut builder = Self {
            definitions,
            short: Vec::new(),
            names: vec![None; definitions.len()],
            occurrences: HashMap::new(),
            counts: vec![0; definitions.len()],
            progress: definitions.iter().map(|_| Progress::Waiting).collect(),
            clash: false,
            foreign: Entries::new(),
        };
        if !definitions.is_empty() {
            builder.prepare(parameters);
        }
        builder
    }

    /// Names the definitions and writes those that are referred to from several places, or from within themselves.
    fn prepare(&mut self, parameters: &[Parameter]) {
        self.short =
            self.definitions.iter().map(|definition| DefinitionNames::short_of(&definition.reference)).collect();
        let mut taken = HashSet::new();
        self.clash = !self.short.iter().all(|short| taken.insert(short));
        let mut order = Vec::new();
        for parameter in parameters {
            self.count(&parameter.field.accepts, Weight { here: 1, below: 1 }, &mut order);
        }
        for index in order {
            if self.counts[index] > 1 && matches!(self.progress[index], Progress::Waiting) {
                self.write(index);
                self.count_name(index);
            }
        }
    }

    /// Creates the full names of a definition when it is first referred to.
    fn count_name(&mut self, index: usize) {
        if self.clash && self.names[index].is_none() {
            let reference = &self.definitions[index].reference;
            let occurrence = self.occurrences.entry(DefinitionNames::full_of(reference)).or_default();
            *occurrence += 1;
            self.names[index] = Some(DefinitionNames::of(reference, *occurrence));
        }
    }

    /// Counts the references in `accepts`, and those in the definitions they refer to.
    fn count(&mut self, accepts: &Type, weight: Weight, order: &mut Vec<usize>) {
        match accepts {
            Type::Reference(index) => {
                let first = self.counts[*index] == 0;
                self.counts[*index] += weight.here;
                if first {
                    order.push(*index);
                    let definitions = self.definitions;
                    let weight = Weight { here: weight.below, ..weight };
                    self.count(&definitions[*index].body, weight, order);
                }
            }
            // Several arrays to pydantic, though only one of them is visible.
            Type::Array { items, kind: ArrayKind::Sequence } => {
                self.count(items, Weight { here: 2, ..weight }, order);
            }
            Type::Noted { inner, .. } | Type::Kept(inner) => self.count(inner, weight.beside_notes(inner), order),
            Type::Array { items: inner, .. }
            | Type::Nullable(inner)
            | Type::Limited { inner, .. }
            | Type::Keyed { inner, .. }
            | Type::Stepped(inner) => self.count(inner, weight, order),
            Type::Map { keys, values, countable } => {
                // A map with defaults is several maps to pydantic, at all levels.
                let weight = if *countable { weight } else { Weight { here: 2, below: 2 } };
                self.count(keys, weight, order);
                self.count(values, weight, order);
            }
            Type::Tuple(members) | Type::Union(members) => {
                for member in members {
                    self.count(member, weight, order);
                }
            }
            Type::Row(fields) => {
                for Field { accepts, notes, .. } in fields {
                    let weight = if notes.is_empty() { weight } else { weight.beside_notes(accepts) };
                    self.count(accepts, weight, order);
                }
            }
            Type::Record(record) => {
                for field in &record.fields {
                    self.count(&field.accepts, weight, order);
                }
                if let ExtraFields::Typed(others) = &record.others {
                    self.count(others, weight, order);
                }
            }
            _ => {}
        }
    }

    fn name(&self, index: usize) -> Option<&str> {
        match &self.names[index] {
            Some(names) => Some(names.unique()),
            None if self.clash => None,
            None => Some(&self.short[index]),
        }
    }

    pub(super) fn index_of(&self, name: &str) -> Option<usize> {
        (0..self.names.len()).find(|index| self.name(*index) == Some(name))
    }

    pub(super) fn reference(&mut self, index: usize) -> Node {
        self.count_name(index);
        keyword("$ref", Node::from(format!("{PREFIX}{}", self.name(index).unwrap_or_default())))
    }

    /// Writes a definition and records the result.
    pub(super) fn write(&mut self, index: usize) {
        self.progress[index] = Progress::Writing;
        let definitions = self.definitions;
        let mut body = &definitions[index].body;
        // An alias replaces a definition that nothing else refers to, and one that is written anew at each use.
        loop {
            body = match body {
                Type::Repeated(target) => &definitions[*target].body,
                Type::Reference(target) if *target != index && self.counts[*target] <= 1 => &definitions[*target].body,
                _ => break,
            };
        }
        self.progress[index] = match self.schema(body) {
            Ok(schema) => Progress::Written(schema),
            Err(refusal) => Progress::Refused(refusal),
        };
    }

    /// Fails if a definition that `property` refers to has no schema.
    fn complete(&mut self, property: Node) -> Result<Node, Refusal> {
        if self.definitions.is_empty() {
            return Ok(property);
        }
        for index in self.reachable([&property]) {
            if let Progress::Refused(refusal) = &self.progress[index] {
                return Err(refusal.clone());
            }
        }
        Ok(property)
    }

    fn reachable<'v>(&self, from: impl IntoIterator<Item = &'v Node>) -> Vec<usize> {
        let mut found = Vec::new();
        from.into_iter().for_each(|value| definitions::references(value, &mut found));
        let mut reached: Vec<usize> = Vec::new();
        while let Some(name) = found.pop() {
            let Some(index) = self.index_of(&name) else {
                continue;
            };
            if !reached.contains(&index) {
                reached.push(index);
                if let Progress::Written(body) = &self.progress[index] {
                    definitions::references(body, &mut found);
                }
            }
        }
        reached
    }

    /// The definitions that the properties refer to, under their final names.
    fn finish(mut self, properties: &mut Node, hidden: &Node) -> Entries {
        let mut named = Entries::new();
        if !self.definitions.is_empty() {
            let mut reached = self.reachable([&*properties, hidden]);
            reached.sort_unstable();
            let mut written = Vec::with_capacity(reached.len());
            for index in reached {
                let Progress::Written(body) = std::mem::replace(&mut self.progress[index], Progress::Waiting) else {
                    continue;
                };
                match self.names[index].take() {
                    Some(choices) => written.push((choices, body)),
                    None => named.insert(std::mem::take(&mut self.short[index]), body),
                }
            }
            if self.clash {
                named = definitions::shorten(written, properties);
            }
        }
        if !self.foreign.is_empty() {
            definitions::adopt(&mut named, self.foreign, properties);
        }
        named
    }
}
