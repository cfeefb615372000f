//! From types to the JSON Schema of a tool's parameters.

use std::collections::{HashMap, HashSet};

use super::tree::{Entries, Node};

use super::defs::{self, Names, PREFIX};
use super::node::one;
use super::order::sort_keys;
use super::types::{ArrayKind, Field, Others, Presence, Refusal, Type};

/// A type with a name, told once and referred to from elsewhere.
#[derive(Debug, Clone)]
pub struct Definition {
    /// Where it comes from: `module.Name:id[argument:id,…]`.
    pub reference: String,
    /// What it is.
    pub body: Type,
}

/// All definitions of one tool, in the order they were met.
pub type Definitions = Vec<Definition>;

/// A parameter together with whether the model is told about it.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// The parameter itself.
    pub field: Field,
    /// Whether somebody else supplies it.
    pub hidden: bool,
}

/// The schema of a tool's parameters: an object with `properties`.
pub type Built = Entries;

/// Writes the schema of `parameters`.
///
/// # Errors
///
/// The place of the first parameter that has no schema, and why. A hidden parameter never fails.
pub fn build(parameters: Vec<Parameter>, definitions: &Definitions) -> Result<Built, (usize, Refusal)> {
    let mut builder = Builder::new(&parameters, definitions);
    let mut properties = Entries::with_capacity(parameters.len());
    let mut required = Vec::new();
    let mut unseen = Vec::new();
    for (index, Parameter { field, hidden }) in parameters.into_iter().enumerate() {
        let Field { name, accepts, presence, notes, .. } = field;
        let is_required = presence == Presence::Required;
        let property = builder.field(&accepts, presence, notes).and_then(|property| builder.complete(property));
        match property {
            Ok(property) if hidden => unseen.push(property),
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
    let named = builder.finish(&mut schema, &Node::Array(unseen));
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

/// How far a definition has come.
pub(super) enum Progress {
    Waiting,
    Writing,
    Written(Node),
    Refused(Refusal),
}

/// How often a reference counts: a definition that counts once is written where it stands, the others before all else.
#[derive(Clone, Copy)]
struct Weight {
    here: usize,
    /// Inside the definitions that are led to.
    below: usize,
}

impl Weight {
    /// A definition with notes beside the reference to it is not written where it stands.
    fn beside_notes(self, noted: &Type) -> Self {
        if matches!(noted, Type::Reference(_)) { Self { here: 2, ..self } } else { self }
    }
}

/// Writes the parameters of one tool and the definitions they share.
pub(super) struct Builder<'a> {
    definitions: &'a [Definition],
    short: Vec<String>,
    /// The full names of definitions, counted in the order in which they are first referred to.
    names: Vec<Option<Names>>,
    met: HashMap<String, usize>,
    /// How often each definition is referred to.
    pub(super) counts: Vec<usize>,
    pub(super) progress: Vec<Progress>,
    /// Whether two definitions would like the same name.
    clash: bool,
    pub(super) foreign: Entries,
}

impl<'a> Builder<'a> {
    fn new(parameters: &[Parameter], definitions: &'a [Definition]) -> Self {
        let mut builder = Self {
            definitions,
            short: Vec::new(),
            names: vec![None; definitions.len()],
            met: HashMap::new(),
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
        self.short = self.definitions.iter().map(|definition| Names::short_of(&definition.reference)).collect();
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

    /// Makes the full names of a definition when it is first referred to.
    fn count_name(&mut self, index: usize) {
        if self.clash && self.names[index].is_none() {
            let reference = &self.definitions[index].reference;
            let occurrence = self.met.entry(Names::full_of(reference)).or_default();
            *occurrence += 1;
            self.names[index] = Some(Names::of(reference, *occurrence));
        }
    }

    /// Counts the references in `accepts`, and those in the definitions they lead to.
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
            // Several arrays to pydantic, though only one of them shows.
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
                // A map with defaults is several maps to pydantic, all the way down.
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
                if let Others::Typed(others) = &record.others {
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
        one("$ref", Node::from(format!("{PREFIX}{}", self.name(index).unwrap_or_default())))
    }

    /// Writes a definition, whatever comes of it.
    pub(super) fn write(&mut self, index: usize) {
        self.progress[index] = Progress::Writing;
        let definitions = self.definitions;
        let mut body = &definitions[index].body;
        // An alias takes the place of a definition that nothing else refers to, and of one that is told again anyway.
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

    /// Makes sure that everything `property` leads to has a schema.
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
        from.into_iter().for_each(|value| defs::references(value, &mut found));
        let mut reached: Vec<usize> = Vec::new();
        while let Some(name) = found.pop() {
            let Some(index) = self.index_of(&name) else {
                continue;
            };
            if !reached.contains(&index) {
                reached.push(index);
                if let Progress::Written(body) = &self.progress[index] {
                    defs::references(body, &mut found);
                }
            }
        }
        reached
    }

    /// The definitions that the properties lead to, under their final names.
    fn finish(mut self, properties: &mut Node, unseen: &Node) -> Entries {
        let mut named = Entries::new();
        if !self.definitions.is_empty() {
            let mut reached = self.reachable([&*properties, unseen]);
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
                named = defs::shorten(written, properties);
            }
        }
        if !self.foreign.is_empty() {
            defs::adopt(&mut named, self.foreign, properties);
        }
        named
    }
}
