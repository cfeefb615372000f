//! From a type to its schema.

use super::tree::{Entries, Node};

use super::build::{Builder, Progress};
use super::defs::{self, PREFIX};
use super::node::{any_of, enumeration, formatted, insert, into_object, literal, object, one, overwrite, typed};
use super::order::same;
use super::types::{ArrayKind, Field, Format, Others, Presence, Record, Refusal, Type};

impl Builder<'_> {
    pub(super) fn schema(&mut self, accepts: &Type) -> Result<Node, Refusal> {
        Ok(match accepts {
            Type::Any => Node::Object(Entries::new()),
            Type::Null | Type::Boolean | Type::Integer | Type::Number | Type::Text => {
                typed(accepts.plain_kind().unwrap_or_default())
            }
            Type::Formatted(Format::Plain) => typed("string"),
            Type::Bytes => formatted("binary"),
            Type::Formatted(format) => format.name().map_or_else(|| typed("string"), formatted),
            Type::Decimal => one("anyOf", Node::Array(vec![typed("number"), typed("string")])),
            Type::Fraction => one("anyOf", Node::Array(vec![typed("number"), formatted("fraction")])),
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
                    // Of a union without a single choice, `null` is what remains.
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
                defs::adopt(&mut self.foreign, definitions.clone(), &mut schema);
                schema
            }
            Type::Unsupported(refusal) => return Err(refusal.clone()),
        })
    }

    fn refer(&mut self, index: usize) -> Result<Node, Refusal> {
        if self.counts[index] <= 1 && matches!(self.progress[index], Progress::Waiting) {
            // Nothing else refers to it, so its refusal is that of the place it stands in.
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

    /// Leaves out the choices that have no schema, as long as one remains.
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

    fn record(&mut self, record: &Record) -> Result<Node, Refusal> {
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
            Others::Unsaid => {}
            Others::Forbidden => {
                schema.insert("additionalProperties", Node::Bool(false));
            }
            Others::Typed(others) => {
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
            if !member.accepts.is_fixed() {
                overwrite(&mut place, &member.notes);
            }
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

    /// Writes a parameter of a tool or a field of a record.
    pub(super) fn field(&mut self, accepts: &Type, presence: Presence, notes: Entries) -> Result<Node, Refusal> {
        let own = into_object(self.schema(accepts)?);
        // What overrules the type comes first, which for most types is the order that the keys will have.
        let mut node = Entries::with_capacity(own.len() + notes.len() + 1);
        if let Presence::Default(value) = presence {
            node.push("default", value);
        }
        node.extend(notes);
        for (key, value) in own {
            if !node.contains_key(&key) {
                node.push(key, value);
            }
        }
        let mut schema = Node::Object(node);
        if schema.get("$ref").is_some() {
            self.drop_echo(&mut schema)?;
        }
        Ok(schema)
    }

    /// Drops the keys beside a reference that the definition has already.
    fn drop_echo(&self, schema: &mut Node) -> Result<(), Refusal> {
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
