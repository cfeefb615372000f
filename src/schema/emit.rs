//! The JSON Schema of a single type.

use super::build::{Builder, Progress};
use super::definitions::{self, PREFIX};
use super::normalize::{same, without_repetition};
use super::types::{ArrayKind, ExtraFields, Field, Presence, RecordType, Refusal, StringFormat, Type};
use crate::json::number::is_integer_text;
use crate::json::{Entries, Node};

impl Builder<'_> {
    pub(super) fn schema(&mut self, accepts: &Type) -> Result<Node, Refusal> {
        Ok(match accepts {
            Type::Any => Node::Object(Entries::new()),
            Type::Null | Type::Boolean | Type::Integer | Type::Number | Type::Text => {
                typed(accepts.plain_kind().unwrap_or_default())
            }
            Type::Formatted(StringFormat::Plain) => typed("string"),
            Type::Bytes => formatted("binary"),
            Type::Formatted(format) => format.name().map_or_else(|| typed("string"), formatted),
            Type::Decimal => keyword("anyOf", Node::Array(vec![typed("number"), typed("string")])),
            Type::Fraction => keyword("anyOf", Node::Array(vec![typed("number"), formatted("fraction")])),
            Type::Literal(values) => literal(values),
            Type::Enumeration { values, description } => enumeration(values, description.as_deref()),
            Type::Array { items, kind } => {
                let mut schema = object([("items", self.schema(items)?), ("type", Node::from("array"))]);
                if *kind == ArrayKind::Set {
                    schema.insert("uniqueItems", Node::Bool(true));
                }
                Node::Object(schema)
            }
            Type::Tuple(members) => self.tuple(members)?,
            Type::Map { keys, values, .. } => self.map(keys, values)?,
            Type::Union(choices) => self.union(choices)?,
            Type::Nullable(inner) => {
                let null = typed("null");
                match self.schema(inner) {
                    Ok(inner) if inner == null => null,
                    Ok(inner) => any_of(vec![inner, null]),
                    // A union without a single member leaves only `null`.
                    Err(refusal) if !refusal.mistake && matches!(**inner, Type::Union(_)) => null,
                    Err(refusal) => return Err(refusal),
                }
            }
            Type::Record(record) => self.record(record)?,
            Type::Row(members) => self.row(members)?,
            Type::Reference(index) => self.refer(*index)?,
            Type::Repeated(index) => self.repeat(*index)?,
            Type::Limited { inner, limits } => self.limited(inner, limits)?,
            Type::Keyed { inner, keys } | Type::Noted { inner, notes: keys } => {
                let mut schema = self.schema(inner)?;
                overwrite(&mut schema, keys);
                schema
            }
            Type::Stepped(inner) | Type::Kept(inner) => self.schema(inner)?,
            Type::Raw { schema, definitions } => {
                let mut schema = Node::Object(schema.clone());
                definitions::adopt(&mut self.foreign, definitions.clone(), &mut schema);
                schema
            }
            Type::Unsupported(refusal) => return Err(refusal.clone()),
        })
    }

    fn refer(&mut self, index: usize) -> Result<Node, Refusal> {
        if self.counts[index] <= 1 && matches!(self.progress[index], Progress::Waiting) {
            // Nothing else refers to it, so its refusal is reported here.
            return self.repeat(index);
        }
        Ok(self.reference(index))
    }

    fn repeat(&mut self, index: usize) -> Result<Node, Refusal> {
        if matches!(self.progress[index], Progress::Waiting) {
            self.write(index);
        }
        match &self.progress[index] {
            Progress::Refused(refusal) => Err(refusal.clone()),
            _ => Ok(self.reference(index)),
        }
    }

    fn tuple(&mut self, members: &[Type]) -> Result<Node, Refusal> {
        let members = members.iter().map(|member| self.schema(member)).collect::<Result<Vec<_>, _>>()?;
        let length = Node::from(members.len());
        let mut schema = object([("maxItems", length.clone()), ("minItems", length)]);
        if !members.is_empty() {
            schema.insert("prefixItems", Node::Array(members));
        }
        schema.insert("type", Node::from("array"));
        Ok(Node::Object(schema))
    }

    fn map(&mut self, keys: &Type, values: &Type) -> Result<Node, Refusal> {
        let mut schema = Entries::new();
        let mut keys = into_object(self.schema(keys)?);
        let pattern = if keys.contains_key("$ref") { None } else { keys.remove("pattern") };
        let values = self.schema(values)?;
        let any_value = values.as_object().is_some_and(Entries::is_empty);
        match pattern {
            Some(Node::String(pattern)) => {
                let mut by_pattern = Entries::new();
                by_pattern.insert(pattern, values);
                schema.insert("patternProperties", Node::Object(by_pattern));
            }
            _ if any_value => {
                schema.insert("additionalProperties", Node::Bool(true));
            }
            _ => {
                schema.insert("additionalProperties", values);
            }
        }
        let limited = keys.len() > 1 && keys.get("type").and_then(Node::as_str) == Some("string");
        if limited || keys.contains_key("$ref") {
            keys.remove("type");
            schema.insert("propertyNames", Node::Object(keys));
        }
        schema.insert("type", Node::from("object"));
        Ok(Node::Object(schema))
    }

    /// Leaves out the members that have no schema, as long as one remains.
    fn union(&mut self, choices: &[Type]) -> Result<Node, Refusal> {
        let mut schemas = Vec::with_capacity(choices.len());
        let mut refusal = None;
        for choice in choices {
            match self.schema(choice) {
                Ok(schema) => schemas.push(schema),
                Err(reason) if reason.mistake => return Err(reason),
                Err(reason) => refusal = Some(reason),
            }
        }
        match (schemas.len(), refusal) {
            (0, Some(refusal)) => Err(refusal),
            (1, _) => Ok(schemas.swap_remove(0)),
            _ => Ok(any_of(schemas)),
        }
    }

    fn record(&mut self, record: &RecordType) -> Result<Node, Refusal> {
        let mut properties = Entries::new();
        let mut required = Vec::new();
        for field in &record.fields {
            let property = self.field(&field.accepts, field.presence.clone(), field.notes.clone())?;
            properties.insert(field.name.clone(), property);
            if field.presence == Presence::Required {
                required.push(Node::from(field.name.clone()));
            }
        }
        let mut schema = Entries::new();
        match &record.others {
            ExtraFields::Unstated => {}
            ExtraFields::Forbidden => {
                schema.insert("additionalProperties", Node::Bool(false));
            }
            ExtraFields::Typed(others) => {
                let others = if **others == Type::Any { Node::Bool(true) } else { self.schema(others)? };
                schema.insert("additionalProperties", others);
            }
        }
        if record.deprecated {
            schema.insert("deprecated", Node::Bool(true));
        }
        if let Some(description) = &record.description {
            schema.insert("description", Node::from(description.clone()));
        }
        schema.insert("properties", Node::Object(properties));
        if !required.is_empty() {
            schema.insert("required", Node::Array(required));
        }
        schema.insert("type", Node::from("object"));
        Ok(Node::Object(schema))
    }

    fn row(&mut self, members: &[Field]) -> Result<Node, Refusal> {
        let mut places = Vec::with_capacity(members.len());
        let mut least = 0;
        for member in members {
            let mut place = self.schema(&member.accepts)?;
            let mut notes = member.notes.clone();
            notes.retain(|key, _| member.accepts.shows_note(key));
            overwrite(&mut place, &notes);
            match &member.presence {
                Presence::Required => least += 1,
                Presence::Optional => {}
                Presence::Default(value) => insert(&mut place, "default", value.clone()),
            }
            if let (Some(title), Node::Object(place)) = (&member.title, &mut place)
                && !member.accepts.is_named()
                && !place.contains_key("title")
            {
                place.insert("title", Node::from(title.clone()));
            }
            places.push(place);
        }
        let mut schema = object([("maxItems", Node::from(places.len()))]);
        if least > 0 {
            schema.insert("minItems", Node::from(least));
        }
        if !places.is_empty() {
            schema.insert("prefixItems", Node::Array(places));
        }
        schema.insert("type", Node::from("array"));
        Ok(Node::Object(schema))
    }

    fn limited(&mut self, inner: &Type, limits: &Entries) -> Result<Node, Refusal> {
        let mut schema = self.schema(inner)?;
        if !matches!(inner, Type::Decimal | Type::Fraction) {
            overwrite(&mut schema, limits);
        } else if let Node::Object(node) = &mut schema
            && let Some(Node::Array(choices)) = node.get_mut("anyOf")
            && let Some(Node::Object(number)) = choices.first_mut()
        {
            for (keyword, limit) in limits.iter() {
                let limit = limit.as_f64().and_then(serde_json::Number::from_f64);
                if let Some(limit) = limit {
                    number.insert(keyword.to_owned(), Node::Number(limit));
                }
            }
        }
        Ok(schema)
    }

    /// Emits a parameter of a tool or a field of a record.
    pub(super) fn field(&mut self, accepts: &Type, presence: Presence, notes: Entries) -> Result<Node, Refusal> {
        let own = into_object(self.schema(accepts)?);
        // The keys that override the type come first, which for most types is their final order.
        let mut node = notes;
        if let Presence::Default(value) = presence
            && !node.contains_key("default")
        {
            node.push_front("default", value);
        }
        for (key, value) in own {
            if !node.contains_key(&key) {
                node.push(key, value);
            }
        }
        let mut schema = Node::Object(node);
        if schema.get("$ref").is_some() {
            self.remove_repeated_keys(&mut schema)?;
        }
        Ok(schema)
    }

    /// Removes the keys beside a reference that the definition has already.
    fn remove_repeated_keys(&self, schema: &mut Node) -> Result<(), Refusal> {
        let Node::Object(node) = schema else {
            return Ok(());
        };
        let name = node.get("$ref").and_then(Node::as_str).and_then(|reference| reference.strip_prefix(PREFIX));
        let Some(index) = name.and_then(|name| self.index_of(name)) else {
            return Ok(());
        };
        match &self.progress[index] {
            Progress::Written(definition) => {
                node.retain(|key, value| key == "$ref" || !definition.get(key).is_some_and(|own| same(own, value)));
                Ok(())
            }
            Progress::Refused(refusal) => Err(refusal.clone()),
            Progress::Waiting | Progress::Writing => Ok(()),
        }
    }
}

pub(super) fn literal(values: &[Node]) -> Node {
    let mut schema = match values {
        [only] => object([("const", only.clone())]),
        several => object([("enum", Node::Array(several.to_vec()))]),
    };
    if let Some(kind) = common_kind(values) {
        schema.insert("type", Node::from(kind));
    }
    Node::Object(schema)
}

pub(super) fn enumeration(values: &[Node], description: Option<&str>) -> Node {
    let mut schema = Entries::new();
    if let Some(description) = description {
        schema.insert("description", Node::from(description.to_owned()));
    }
    schema.insert("enum", Node::Array(values.to_vec()));
    if let Some(kind) = common_kind(values).filter(|kind| *kind != "null") {
        schema.insert("type", Node::from(kind));
    }
    Node::Object(schema)
}

/// The type that all of `values` have in common, if any.
pub(super) fn common_kind(values: &[Node]) -> Option<&'static str> {
    let mut kinds = values.iter().map(|value| match value {
        Node::Null => Some("null"),
        Node::Bool(_) => Some("boolean"),
        Node::Number(number) if is_integer_text(number.as_str()) => Some("integer"),
        Node::Number(_) => Some("number"),
        Node::String(_) => Some("string"),
        Node::Array(_) => Some("array"),
        Node::Object(_) => None,
    });
    let first = kinds.next()??;
    kinds.all(|kind| kind == Some(first)).then_some(first)
}

pub(super) fn any_of(schemas: Vec<Node>) -> Node {
    let mut members = Vec::with_capacity(schemas.len());
    for schema in schemas {
        match schema {
            Node::Object(mut node) if node.len() == 1 && node.contains_key("anyOf") => match node.remove("anyOf") {
                Some(Node::Array(inner)) => members.extend(inner),
                other => members.extend(other),
            },
            other => members.push(other),
        }
    }
    let mut members = without_repetition(members);
    if members.len() == 1 { members.swap_remove(0) } else { keyword("anyOf", Node::Array(members)) }
}

pub(super) fn typed(kind: &'static str) -> Node {
    keyword("type", Node::from(kind))
}

pub(super) fn formatted(format: &'static str) -> Node {
    Node::Object(object([("format", Node::from(format)), ("type", Node::from("string"))]))
}

pub(super) fn keyword(key: &'static str, value: Node) -> Node {
    Node::Object(object([(key, value)]))
}

pub(super) fn object<const N: usize>(entries: [(&'static str, Node); N]) -> Entries {
    Entries::from(entries.map(|(key, value)| (key.into(), value)))
}

pub(super) fn into_object(schema: Node) -> Entries {
    match schema {
        Node::Object(node) => node,
        _ => Entries::new(),
    }
}

pub(super) fn insert(schema: &mut Node, key: &'static str, value: Node) {
    if let Node::Object(node) = schema {
        node.insert(key, value);
    }
}

pub(super) fn overwrite(schema: &mut Node, keys: &Entries) {
    if let Node::Object(node) = schema {
        node.overwrite(keys);
    }
}
