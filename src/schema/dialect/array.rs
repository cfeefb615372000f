//! Lists, and lists whose places differ.

use serde_json::{Map, Value, json};

use super::codec::{Op, Places};
use super::encoder::Encoder;
use super::form::{ARRAY, Form, Keys};
use super::piece::Piece;
use super::record::Told;

impl Encoder<'_> {
    pub(super) fn array(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Piece {
        if depth >= self.depth {
            return self.as_text(&Value::Object(map.clone()), at, "nesting");
        }
        // Before the draft of 2020 `items` could be the list that `prefixItems` is now.
        let (places, items) = match map.get("items") {
            Some(Value::Array(places)) => (Some(places), map.get("additionalItems")),
            items => (map.get("prefixItems").and_then(Value::as_array), items),
        };
        let Some(places) = places.filter(|places| !places.is_empty()) else {
            return self.list(map, items, at, depth);
        };
        let most = map.get("maxItems").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
        let is_full = most.is_some_and(|most| most <= places.len()) || items == Some(&Value::Bool(false));
        let is_uniform = places.iter().all(|place| *place == places[0]);
        // Places that are all the same are a list of that length.
        if is_uniform && (is_full || items == places.first()) {
            let mut uniform = map.clone();
            uniform.shift_remove("prefixItems");
            if is_full {
                let most = most.unwrap_or(places.len()).min(places.len());
                uniform.insert("maxItems".to_owned(), Value::from(most));
            }
            return self.list(&uniform, places.first(), at, depth);
        }
        self.places(map, places, (!is_full).then(|| items.unwrap_or(&Value::Bool(true))), at, depth)
    }

    fn list(&mut self, map: &Map<String, Value>, items: Option<&Value>, at: &str, depth: usize) -> Piece {
        let item = self.child(items.unwrap_or(&Value::Bool(true)), &format!("{at}[]"), depth);
        let (item, op, _) = item.finish(self.rules);
        let mut piece = Piece::new(json!({"type": "array", "items": item}), op.each(), Form::of(ARRAY));
        self.limit(&mut piece, map, "array", &[], at);
        piece
    }

    /// A list of fixed places as an object with a field for each.
    fn places(
        &mut self,
        map: &Map<String, Value>,
        places: &[Value],
        rest: Option<&Value>,
        at: &str,
        depth: usize,
    ) -> Piece {
        let least = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let mut told = Told::default();
        for (index, place) in places.iter().enumerate() {
            let name = format!("item_{}", index + 1);
            let is_required = u64::try_from(index).is_ok_and(|index| index < least);
            self.tell_field(&mut told, &name, place, is_required, &format!("{at}[{index}]"), depth);
        }
        let mut all_keys = std::mem::take(&mut told.keys);
        let rest = rest.map(|rest| {
            let list = self.list(&Map::new(), Some(rest), &format!("{at}[]"), depth);
            let (schema, op, _) = list.finish(self.rules);
            told.properties.insert("more".to_owned(), schema);
            all_keys.all.push("more".into());
            if self.rules.requires_all {
                told.required.push(Value::from("more"));
                all_keys.required.push("more".into());
            }
            ("more".into(), op)
        });
        let op = Op::Places(Box::new(Places { fixed: told.fields, rest, explicit: self.rules.requires_all }));
        let schema = self.object(told.properties, told.required);
        let mut piece = Piece::new(Value::Object(schema), op, Form::object(Keys { tags: Vec::new(), ..all_keys }));
        // The fields themselves say how many items there are.
        let count = places.len() as u64;
        let settled = |keyword: &str, size: &Value| {
            size.as_u64().is_some_and(|size| if keyword == "minItems" { size <= count } else { size == count })
        };
        for keyword in ["minItems", "maxItems", "uniqueItems", "contains"] {
            if let Some(value) = map.get(keyword).filter(|value| **value != Value::Bool(false))
                && !settled(keyword, value)
            {
                self.say(&mut piece, keyword, value, at);
            }
        }
        piece
    }
}
