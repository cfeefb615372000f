//! Converts arguments from the shape of a dialect to the one that a tool expects.

use serde_json::{Map, Value};

use super::codec::{Absence, BranchCodec, CHOICE, Codec, FieldCodec, KEY, ObjectCodec, Op, TupleCodec, VALUE};
use crate::schema::check::{At, Expected, Found, JsonLike, Problem, unknown_name};

/// The most steps into a value and its schema.
const STEPS: usize = 600;

/// The expected encoding of an entry of a map.
const ENTRY: &str = "an object with `key`, a string, and `value`";

type Decoded = Result<Value, Problem>;

#[cold]
fn problem(at: &At<'_>, expected: impl Into<Expected>, value: &Value) -> Problem {
    Problem { path: at.into(), expected: expected.into(), found: Found::of(value) }
}

impl Codec {
    /// Converts arguments from the shape of the dialect to their original shape. What already has that shape is left as it is: the
    /// check that comes after decides whether it fits.
    ///
    /// # Errors
    ///
    /// The first part that cannot be converted, for the model.
    pub fn decode(&self, arguments: Value) -> Result<Value, Problem> {
        self.value(&self.op, arguments, &At::Root, 0)
    }

    fn value(&self, op: &Op, value: Value, place: &At<'_>, depth: usize) -> Decoded {
        if depth > STEPS {
            let expected = "a value that is not nested so deep".into();
            return Err(Problem { path: place.into(), expected, found: Found::Fixed("a deeper one") });
        }
        let next = depth + 1;
        match (op, value) {
            (Op::Same, value) | (Op::Nullable(_), value @ Value::Null) => Ok(value),
            (Op::Shared(index), value) => self.value(&self.shared[*index], value, place, next),
            (Op::Nullable(op), value) => self.value(op, value, place, next),
            (Op::Object(fields), Value::Object(entries)) => self.fields(fields, entries, place, next),
            (Op::List(op), Value::Array(items)) => {
                let items = items.into_iter().enumerate();
                let items = items.map(|(index, item)| self.value(op, item, &At::Index(place, index), next));
                items.collect::<Result<Vec<_>, _>>().map(Value::Array)
            }
            (Op::Pairs(op), Value::Array(items)) => {
                let mut entries = Map::new();
                self.pairs(op, items, &mut entries, place, next)?;
                Ok(Value::Object(entries))
            }
            (Op::Pairs(op), Value::Object(entries)) => {
                let mut decoded = Map::new();
                for (key, value) in entries {
                    let value = self.value(op, value, &At::Key(place, &key), next)?;
                    decoded.insert(key, value);
                }
                Ok(Value::Object(decoded))
            }
            (Op::Tuple(places), Value::Object(entries)) => self.places(places, entries, place, next),
            (Op::Tuple(places), Value::Array(items)) => self.items(places, items, place, next),
            (Op::Text { plain }, Value::String(text)) => match serde_json::from_str(&text) {
                Ok(value) => Ok(value),
                Err(_) if *plain => Ok(Value::String(text)),
                Err(error) => Err(problem(place, format!("JSON text ({error})"), &Value::String(text))),
            },
            (Op::Listed(listed), Value::String(text)) => {
                let value = listed.iter().find(|(own, _)| **own == *text).map(|(_, value)| value.clone());
                Ok(value.unwrap_or(Value::String(text)))
            }
            (Op::Choice(branches), value) => {
                let by_form = branches.iter().find(|branch| branch.shape.admits(&value));
                let branch = by_form.or_else(|| branches.iter().find(|branch| branch.shape.kinds.has(value.kind())));
                match branch {
                    Some(branch) => self.value(&branch.op, value, place, next),
                    None => Ok(value),
                }
            }
            (Op::Tagged(branches), Value::Object(entries)) => self.tagged(branches, entries, place, next),
            (Op::Inside(key, op), Value::Object(mut entries)) => match entries.shift_remove(*key) {
                Some(value) if entries.is_empty() => self.value(op, value, place, next),
                Some(value) => {
                    entries.insert((*key).to_owned(), value);
                    Ok(Value::Object(entries))
                }
                None => Ok(Value::Object(entries)),
            },
            (_, value) => Ok(value),
        }
    }

    fn fields(&self, fields: &ObjectCodec, entries: Map<String, Value>, place: &At<'_>, depth: usize) -> Decoded {
        let mut decoded = Map::new();
        let mut others = None;
        for (position, (key, value)) in entries.into_iter().enumerate() {
            if let Some(rest) = &fields.rest
                && *rest.0 == *key
            {
                others = Some((key, rest, value));
                continue;
            }
            // A model sends fields in the order of the schema.
            let expected = fields.named.get(position).filter(|field| *field.outer == *key);
            let Some(field) = expected.or_else(|| fields.named.iter().find(|field| *field.outer == *key)) else {
                decoded.insert(key, value);
                continue;
            };
            if let Some(value) = self.field(field, value, place, depth)? {
                decoded.insert(field.inner.to_string(), value);
            }
        }
        if let Some((key, (_, op), value)) = others {
            let place = At::Key(place, key.as_str());
            match self.value(op, value, &place, depth)? {
                Value::Object(entries) => {
                    for (key, value) in entries {
                        if decoded.contains_key(&key) {
                            return Err(problem(
                                &place,
                                "only entries that have no field of their own",
                                &Value::String(key),
                            ));
                        }
                        decoded.insert(key, value);
                    }
                }
                Value::Null => {}
                other => drop(decoded.insert(key.clone(), other)),
            }
        }
        Ok(Value::Object(decoded))
    }

    /// The value of a field; `None` if it is encoded as missing.
    fn field(&self, field: &FieldCodec, value: Value, place: &At<'_>, depth: usize) -> Result<Option<Value>, Problem> {
        let place = At::Key(place, &field.outer);
        let value = match (field.absence, value) {
            (Absence::Missing, value) => value,
            (_, Value::Null) => return Ok(None),
            (Absence::Boxed, Value::Object(mut entries)) if entries.len() == 1 && entries.contains_key(VALUE) => {
                entries.shift_remove(VALUE).unwrap_or_default()
            }
            (_, value) => value,
        };
        self.value(&field.op, value, &place, depth).map(Some)
    }

    fn pairs(
        &self,
        op: &Op,
        items: Vec<Value>,
        entries: &mut Map<String, Value>,
        place: &At<'_>,
        depth: usize,
    ) -> Result<(), Problem> {
        for (index, item) in items.into_iter().enumerate() {
            let place = At::Index(place, index);
            let mut item = match item {
                Value::Object(item) => item,
                other => return Err(problem(&place, ENTRY, &other)),
            };
            let (key, value) = match (item.shift_remove(KEY), item.shift_remove(VALUE)) {
                (Some(Value::String(key)), Some(value)) if item.is_empty() => (key, value),
                (key, value) => {
                    item.extend(key.map(|key| (KEY.to_owned(), key)));
                    item.extend(value.map(|value| (VALUE.to_owned(), value)));
                    return Err(problem(&place, ENTRY, &Value::Object(item)));
                }
            };
            if entries.contains_key(&key) {
                return Err(problem(&place, "a key that has not been given before", &Value::String(key)));
            }
            let value = self.value(op, value, &At::Key(&place, VALUE), depth)?;
            entries.insert(key, value);
        }
        Ok(())
    }

    fn places(&self, places: &TupleCodec, mut entries: Map<String, Value>, place: &At<'_>, depth: usize) -> Decoded {
        let mut items = Vec::with_capacity(places.fixed.len());
        let mut gap: Option<&FieldCodec> = None;
        for field in &places.fixed {
            let value = match entries.shift_remove(&*field.outer) {
                Some(value) => self.field(field, value, place, depth)?,
                None => None,
            };
            match (value, gap) {
                (Some(value), None) => items.push(value),
                (Some(value), Some(gap)) => {
                    return Err(problem(
                        &place.key(&gap.outer),
                        format!("a value, because `{}` after it has one", field.outer),
                        &value,
                    ));
                }
                (None, _) => gap = gap.or(Some(field)),
            }
        }
        if let Some((outer, op)) = &places.rest
            && let Some(rest) = entries.shift_remove(&**outer)
        {
            let place = At::Key(place, outer);
            match (self.value(op, rest, &place, depth)?, gap) {
                (Value::Array(rest), None) => items.extend(rest),
                (Value::Array(rest), Some(_)) if rest.is_empty() => {}
                (Value::Null, _) => {}
                (other, _) => return Err(problem(&place, "nothing, unless all fields before it have a value", &other)),
            }
        }
        if let Some((key, value)) = entries.into_iter().next() {
            let known: Vec<&str> = places.fixed.iter().map(|field| &*field.outer).collect();
            return Err(problem(&place.key(&key), unknown_name("field", &key, &known), &value));
        }
        Ok(Value::Array(items))
    }

    /// Converts a list that came as a list.
    fn items(&self, places: &TupleCodec, items: Vec<Value>, place: &At<'_>, depth: usize) -> Decoded {
        let items = items.into_iter().enumerate().map(|(index, item)| {
            let rest = places.rest.as_ref().and_then(|(_, op)| if let Op::List(op) = op { Some(&**op) } else { None });
            match places.fixed.get(index).map(|field| &field.op).or(rest) {
                Some(op) => self.value(op, item, &At::Index(place, index), depth),
                None => Ok(item),
            }
        });
        items.collect::<Result<Vec<_>, _>>().map(Value::Array)
    }

    fn tagged(
        &self,
        branches: &[BranchCodec],
        mut entries: Map<String, Value>,
        place: &At<'_>,
        depth: usize,
    ) -> Decoded {
        let label = match entries.get(CHOICE) {
            Some(Value::String(label)) if entries.len() == 2 && entries.contains_key(VALUE) => label,
            _ => return Ok(Value::Object(entries)),
        };
        let Some(branch) = branches.iter().find(|branch| *branch.label == **label) else {
            let labels: Vec<String> = branches.iter().map(|branch| format!("\"{}\"", branch.label)).collect();
            let expected = format!("one of {}", labels.join(", "));
            return Err(problem(&place.key(CHOICE), expected, &Value::from(label.as_str())));
        };
        let value = entries.shift_remove(VALUE).unwrap_or_default();
        self.value(&branch.op, value, &At::Key(place, VALUE), depth)
    }
}
