//! From a type to its schema.

use serde_json::{Map, Value};

use super::build::{Builder, Progress};
use super::defs::{self, PREFIX};
use super::node::{any_of, enumeration, formatted, insert, into_object, literal, object, one, overwrite, typed};
use super::order::same;
use super::types::{ArrayKind, Field, Format, Others, Presence, Record, Refusal, Type};

impl Builder<'_> {
    pub(super) fn schema(&mut self, accepts: &Type) -> Result<Value, Refusal> {
        Ok(match accepts {
            Type::Any => Value::Object(Map::new()),
            Type::Null | Type::Boolean | Type::Integer | Type::Number | Type::Text => {
                typed(accepts.plain_kind().unwrap_or_default())
            }
            Type::Formatted(Format::Plain) => typed("string"),
            Type::Bytes => formatted("binary"),
            Type::Formatted(format) => format.name().map_or_else(|| typed("string"), formatted),
            Type::Decimal => one("anyOf", Value::Array(vec![typed("number"), typed("string")])),
            Type::Fraction => one("anyOf", Value::Array(vec![typed("number"), formatted("fraction")])),
            Type::Literal(values) => literal(values),
            Type::Enumeration { values, description } => enumeration(values, description.as_deref()),
            Type::Array { items, kind } => {
                let mut schema = object([("items", self.schema(items)?), ("type", Value::from("array"))]);
                if *kind == ArrayKind::Set {
                    schema.insert("uniqueItems".to_owned(), Value::Bool(true));
                }
                Value::Object(schema)
            }
            Type::Tuple(members) => self.tuple(members)?,
            Type::Map { keys, values, .. } => self.map(keys, values)?,
            Type::Union(choices) => self.union(choices)?,
            Type::Nullable(inner) => {
                let inner = self.schema(inner)?;
                let null = typed("null");
                if inner == null { null } else { any_of(vec![inner, null]) }
            }
            Type::Record(record) => self.record(record)?,
            Type::Row(members) => self.row(members)?,
            Type::Reference(index) => self.refer(*index)?,
            Type::Limited { inner, limits } => self.limited(inner, limits)?,
            Type::Keyed { inner, keys } | Type::Noted { inner, notes: keys } => {
                let mut schema = self.schema(inner)?;
                overwrite(&mut schema, keys);
                schema
            }
            Type::Stepped(inner) => self.schema(inner)?,
            Type::Raw { schema, definitions } => {
                let mut schema = Value::Object(schema.clone());
                defs::adopt(&mut self.foreign, definitions.clone(), &mut schema);
                schema
            }
            Type::Unsupported(refusal) => return Err(refusal.clone()),
        })
    }

    fn refer(&mut self, index: usize) -> Result<Value, Refusal> {
        if self.counts[index] <= 1 && matches!(self.progress[index], Progress::Waiting) {
            self.write(index);
            // Nothing else refers to it, so its refusal is that of the place it stands in.
            if let Progress::Refused(refusal) = &self.progress[index] {
                return Err(refusal.clone());
            }
        }
        Ok(self.reference(index))
    }

    fn tuple(&mut self, members: &[Type]) -> Result<Value, Refusal> {
        let members = members.iter().map(|member| self.schema(member)).collect::<Result<Vec<_>, _>>()?;
        let length = Value::from(members.len());
        let mut schema = object([("maxItems", length.clone()), ("minItems", length)]);
        if !members.is_empty() {
            schema.insert("prefixItems".to_owned(), Value::Array(members));
        }
        schema.insert("type".to_owned(), Value::from("array"));
        Ok(Value::Object(schema))
    }

    fn map(&mut self, keys: &Type, values: &Type) -> Result<Value, Refusal> {
        let mut schema = Map::new();
        let mut keys = into_object(self.schema(keys)?);
        let pattern = if keys.contains_key("$ref") { None } else { keys.shift_remove("pattern") };
        let values = self.schema(values)?;
        let any_value = values.as_object().is_some_and(Map::is_empty);
        match pattern {
            Some(Value::String(pattern)) => {
                let mut by_pattern = Map::new();
                by_pattern.insert(pattern, values);
                schema.insert("patternProperties".to_owned(), Value::Object(by_pattern));
            }
            _ if any_value => {
                schema.insert("additionalProperties".to_owned(), Value::Bool(true));
            }
            _ => {
                schema.insert("additionalProperties".to_owned(), values);
            }
        }
        let limited = keys.len() > 1 && keys.get("type").is_some_and(|kind| kind == "string");
        if limited || keys.contains_key("$ref") {
            keys.shift_remove("type");
            schema.insert("propertyNames".to_owned(), Value::Object(keys));
        }
        schema.insert("type".to_owned(), Value::from("object"));
        Ok(Value::Object(schema))
    }

    /// Leaves out the choices that have no schema, as long as one remains.
    fn union(&mut self, choices: &[Type]) -> Result<Value, Refusal> {
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

    fn record(&mut self, record: &Record) -> Result<Value, Refusal> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in &record.fields {
            properties.insert(field.name.clone(), self.field(field)?);
            if field.presence == Presence::Required {
                required.push(Value::from(field.name.as_str()));
            }
        }
        let mut schema = Map::new();
        match &record.others {
            Others::Unsaid => {}
            Others::Forbidden => {
                schema.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            Others::Typed(others) => {
                let others = if **others == Type::Any { Value::Bool(true) } else { self.schema(others)? };
                schema.insert("additionalProperties".to_owned(), others);
            }
        }
        if record.deprecated {
            schema.insert("deprecated".to_owned(), Value::Bool(true));
        }
        if let Some(description) = &record.description {
            schema.insert("description".to_owned(), Value::from(description.as_str()));
        }
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            schema.insert("required".to_owned(), Value::Array(required));
        }
        schema.insert("type".to_owned(), Value::from("object"));
        Ok(Value::Object(schema))
    }

    fn row(&mut self, members: &[Field]) -> Result<Value, Refusal> {
        let mut places = Vec::with_capacity(members.len());
        let mut least = 0;
        for member in members {
            let mut place = self.schema(&member.accepts)?;
            overwrite(&mut place, &member.notes);
            match &member.presence {
                Presence::Required => least += 1,
                Presence::Optional => {}
                Presence::Default(value) => insert(&mut place, "default", value.clone()),
            }
            if let (Some(title), Value::Object(place)) = (&member.title, &mut place)
                && !member.accepts.is_named()
                && !place.contains_key("title")
            {
                place.insert("title".to_owned(), Value::from(title.as_str()));
            }
            places.push(place);
        }
        let mut schema = object([("maxItems", Value::from(places.len()))]);
        if least > 0 {
            schema.insert("minItems".to_owned(), Value::from(least));
        }
        if !places.is_empty() {
            schema.insert("prefixItems".to_owned(), Value::Array(places));
        }
        schema.insert("type".to_owned(), Value::from("array"));
        Ok(Value::Object(schema))
    }

    fn limited(&mut self, inner: &Type, limits: &Map<String, Value>) -> Result<Value, Refusal> {
        let mut schema = self.schema(inner)?;
        if !matches!(inner, Type::Decimal | Type::Fraction) {
            overwrite(&mut schema, limits);
        } else if let Some(number) = schema.pointer_mut("/anyOf/0") {
            for (keyword, limit) in limits {
                let limit = limit.as_f64().and_then(serde_json::Number::from_f64);
                if let Some(limit) = limit {
                    insert(number, keyword, Value::Number(limit));
                }
            }
        }
        Ok(schema)
    }

    /// Writes a parameter. Most are a plain type with a default and a description, which are moved into their places.
    pub(super) fn property(&mut self, field: Field) -> Result<Value, Refusal> {
        let is_plain = field.notes.keys().all(|key| key == "description");
        let Some(kind) = field.accepts.plain_kind().filter(|_| is_plain) else { return self.field(&field) };
        let mut schema = Map::with_capacity(3);
        if let Presence::Default(value) = field.presence {
            schema.insert("default".to_owned(), value);
        }
        schema.extend(field.notes);
        schema.insert("type".to_owned(), Value::from(kind));
        Ok(Value::Object(schema))
    }

    pub(super) fn field(&mut self, field: &Field) -> Result<Value, Refusal> {
        let mut schema = self.schema(&field.accepts)?;
        if let Presence::Default(value) = &field.presence {
            insert(&mut schema, "default", value.clone());
        }
        overwrite(&mut schema, &field.notes);
        if schema.get("$ref").is_some() {
            self.drop_echo(&mut schema)?;
        }
        Ok(schema)
    }

    /// Drops the keys beside a reference that the definition has already.
    fn drop_echo(&self, schema: &mut Value) -> Result<(), Refusal> {
        let Value::Object(node) = schema else {
            return Ok(());
        };
        let name = node.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix(PREFIX));
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
