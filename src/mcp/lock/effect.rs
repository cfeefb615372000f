//! The effect of a change of a JSON Schema on the values that it accepts.
//!
//! Each keyword restricts the values on its own, so that a schema accepts more if every changed keyword does. The keywords
//! for which this does not hold, or that are unknown here, count as incompatible when they change. The result is an
//! upper bound: a change that is said to accept everything that was accepted before does so, and one that is said to be
//! incompatible may be harmless.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use crate::json::canonical;
use crate::json::number::Decimal;
use crate::schema::view::{escaped, pointer};

/// The depth to which schemas are compared.
const DEPTH: usize = 100;
/// The most pairs of schemas that are compared.
const STEPS: usize = 100_000;
/// The most differences that are recorded.
const MOST_DIFFERENCES: usize = 200;

/// The possible effects of a change on the accepted values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Effect {
    /// Values that were refused may be accepted.
    pub(super) accepts_more: bool,
    /// Values that were accepted may be refused.
    pub(super) accepts_less: bool,
}

impl Effect {
    pub(super) const NONE: Self = Self { accepts_more: false, accepts_less: false };
    const MORE: Self = Self { accepts_more: true, accepts_less: false };
    const LESS: Self = Self { accepts_more: false, accepts_less: true };
    pub(super) const BOTH: Self = Self { accepts_more: true, accepts_less: true };

    fn or(self, other: Self) -> Self {
        Self {
            accepts_more: self.accepts_more || other.accepts_more,
            accepts_less: self.accepts_less || other.accepts_less,
        }
    }

    /// The effect of a restriction that is added, removed or replaced by an unrelated one.
    fn of_restriction(old: Option<&Value>, new: Option<&Value>) -> Self {
        match (old, new) {
            (None, Some(_)) => Self::LESS,
            (Some(_), None) => Self::MORE,
            (old, new) if old == new => Self::NONE,
            _ => Self::BOTH,
        }
    }

    /// The effect of the change of a set of accepted values.
    fn of_sets<T: Ord>(old: &BTreeSet<T>, new: &BTreeSet<T>) -> Self {
        Self { accepts_more: !new.is_subset(old), accepts_less: !old.is_subset(new) }
    }
}

/// The meaning of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The same values are accepted: it is a text, or another way to write the same.
    Text,
    /// The value of an omitted argument.
    Default,
    /// The accepted values.
    Values(Effect),
}

/// A place at which two schemas differ.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SchemaDifference {
    pub(super) path: String,
    pub(super) meaning: Meaning,
    pub(super) before: Option<Value>,
    pub(super) after: Option<Value>,
}

/// The use of a schema, which decides about names that it does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Arguments: unlisted names are refused, unless the schema has a rule for them or lists none at all; see
    /// [`Checker`](crate::schema::check::Checker).
    Arguments,
    /// Results: unlisted names are accepted.
    Results,
}

/// The change of a schema.
#[derive(Debug)]
pub(super) struct SchemaChange {
    /// The effect of all differences together.
    pub(super) effect: Effect,
    /// True if the value of an omitted part is another.
    pub(super) changes_default: bool,
    /// The differences, of a hostile schema only the first.
    pub(super) differences: Vec<SchemaDifference>,
}

/// Compares two schemas; the paths of differences begin with `path`.
pub(super) fn compare(old: &Value, new: &Value, usage: Use, path: &str) -> SchemaChange {
    let ignores_siblings = [old, new].into_iter().any(|root| has_old_draft(root));
    let mut comparison = Comparison {
        old,
        new,
        base: path,
        ignores_siblings,
        differences: Vec::new(),
        changes_default: false,
        known: HashMap::new(),
        is_deciding: false,
        steps: 0,
    };
    let mut effect = comparison.schema(old, new, path, 0, usage == Use::Arguments);
    comparison.definitions();
    let drafts = (old.get("$schema"), new.get("$schema"));
    if drafts.0 != drafts.1 {
        effect = comparison.differ(&at(path, "$schema"), Meaning::Values(Effect::BOTH), drafts.0, drafts.1);
    }
    let is_unclear =
        |root: &&Value| reaches_far(root, true, 0) || usage == Use::Arguments && requires_undescribed(root);
    if [old, new].iter().any(is_unclear) && !comparison.is_same(old, new) {
        effect = comparison.differ(path, Meaning::Values(Effect::BOTH), Some(old), Some(new));
    }
    if comparison.differences.is_empty() {
        // The difference is in a part that has no meaning.
        comparison.differ(path, Meaning::Text, Some(old), Some(new));
    }
    let Comparison { changes_default, differences, .. } = comparison;
    SchemaChange { effect, changes_default, differences }
}

/// True for a document of a draft in which a reference replaces the keywords beside it.
fn has_old_draft(root: &Value) -> bool {
    let dialect = root.get("$schema").and_then(Value::as_str);
    dialect.is_some_and(|dialect| !dialect.contains("2020-12") && !dialect.contains("2019-09"))
}

/// True if a schema has a keyword whose effect depends on places that are not compared with it.
fn reaches_far(schema: &Value, is_root: bool, depth: usize) -> bool {
    const FAR: [&str; 11] = [
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveAnchor",
        "$recursiveRef",
        "$vocabulary",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$id",
        "$schema",
        "id",
    ];
    let Value::Object(entries) = schema else { return false };
    let is_far = |keyword: &str| FAR.contains(&keyword) && !(is_root && matches!(keyword, "$id" | "$schema" | "id"));
    depth > DEPTH
        || entries.keys().any(|keyword| is_far(keyword))
        || entries.iter().any(|(keyword, value)| {
            let inside = |schema: &Value| reaches_far(schema, false, depth + 1);
            match (shape(keyword, value), value) {
                (Shape::Schema, schema) => inside(schema),
                (Shape::List, Value::Array(schemas)) => schemas.iter().any(inside),
                (Shape::Map, Value::Object(schemas)) => schemas.values().any(inside),
                _ => false,
            }
        })
}

/// True if a name must be sent that the root does not list, so that it is not clear whether it may be sent.
fn requires_undescribed(root: &Value) -> bool {
    let Some(properties) = root.get("properties") else { return false };
    let names = names(root.get("required")).unwrap_or_default();
    names.into_iter().any(|name| properties.get(name).is_none())
}

/// The form in which a keyword holds other schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Schema,
    List,
    Map,
    Plain,
}

fn shape(keyword: &str, value: &Value) -> Shape {
    match keyword {
        "items" if value.is_array() => Shape::List,
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Shape::Schema,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::List,
        "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" | "properties" => {
            Shape::Map
        }
        _ => Shape::Plain,
    }
}

/// True for a keyword that describes a value without restricting it.
fn is_text(keyword: &str) -> bool {
    matches!(keyword, "title" | "description" | "$comment" | "examples" | "deprecated" | "readOnly" | "writeOnly")
}

/// True for a keyword that does not restrict the values at its place.
fn is_silent(keyword: &str) -> bool {
    is_text(keyword) || matches!(keyword, "default" | "$defs" | "$schema" | "definitions")
}

/// True if a schema accepts every value.
fn accepts_all(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(entries) => entries.keys().all(|keyword| is_silent(keyword)),
        _ => false,
    }
}

/// True if a keyword is the only one that restricts values.
fn is_only(entries: &Map<String, Value>, keyword: &str) -> bool {
    entries.contains_key(keyword) && entries.keys().all(|key| key == keyword || is_silent(key))
}

static TRUE: Value = Value::Bool(true);
static FALSE: Value = Value::Bool(false);

/// The comparison of two documents.
struct Comparison<'a> {
    old: &'a Value,
    new: &'a Value,
    base: &'a str,
    ignores_siblings: bool,
    differences: Vec<SchemaDifference>,
    changes_default: bool,
    /// The effects of pairs of definitions; none for a pair that is being compared, whose effect is counted there.
    known: HashMap<(String, String), Option<Effect>>,
    /// True while only the effect counts, and not as part of the whole: then no effect may be left to another place.
    is_deciding: bool,
    steps: usize,
}

impl<'a> Comparison<'a> {
    fn differ(&mut self, path: &str, meaning: Meaning, before: Option<&Value>, after: Option<&Value>) -> Effect {
        let effect = if let Meaning::Values(effect) = meaning { effect } else { Effect::NONE };
        self.changes_default |= meaning == Meaning::Default;
        if !self.is_deciding && self.differences.len() < MOST_DIFFERENCES {
            let meaning = if meaning == Meaning::Values(Effect::NONE) { Meaning::Text } else { meaning };
            let (before, after) = (before.cloned(), after.cloned());
            self.differences.push(SchemaDifference { path: path.to_owned(), meaning, before, after });
        }
        effect
    }

    /// The effect of a change, without recording differences.
    fn decide(&mut self, old: &Value, new: &Value, depth: usize) -> Effect {
        let was_deciding = std::mem::replace(&mut self.is_deciding, true);
        let effect = self.schema(old, new, "", depth, false);
        self.is_deciding = was_deciding;
        effect
    }

    /// Compares two schemas. `is_closed` is true for a root that refuses names which it does not list.
    fn schema(&mut self, old: &Value, new: &Value, path: &str, depth: usize, is_closed: bool) -> Effect {
        self.steps += 1;
        if self.steps > STEPS || depth > DEPTH {
            return self.differ(path, Meaning::Values(Effect::BOTH), Some(old), Some(new));
        }
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => self.entries(old, new, path, depth, is_closed),
            _ if old == new => Effect::NONE,
            _ if accepts_all(old) && accepts_all(new) => self.differ(path, Meaning::Text, Some(old), Some(new)),
            _ if *old == FALSE || accepts_all(new) => {
                self.differ(path, Meaning::Values(Effect::MORE), Some(old), Some(new))
            }
            _ if *new == FALSE || accepts_all(old) => {
                self.differ(path, Meaning::Values(Effect::LESS), Some(old), Some(new))
            }
            _ => self.differ(path, Meaning::Values(Effect::BOTH), Some(old), Some(new)),
        }
    }

    fn entries(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        path: &str,
        depth: usize,
        is_closed: bool,
    ) -> Effect {
        self.texts(old, new, path);
        if !self.ignores_siblings {
            return self.restrictions(old, new, path, depth, is_closed);
        }
        let alone = |entries: &Map<String, Value>| match entries.get("$ref") {
            Some(reference) => Map::from_iter([("$ref".to_owned(), reference.clone())]),
            None => entries.clone(),
        };
        self.restrictions(&alone(old), &alone(new), path, depth, is_closed)
    }

    /// Compares the keywords that describe values without restricting them.
    fn texts(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, path: &str) {
        for keyword in keys(old, new).filter(|keyword| is_silent(keyword)) {
            let (before, after) = (old.get(keyword), new.get(keyword));
            // The draft of the document is compared first, and its definitions where they are used.
            if before == after || path == self.base && matches!(keyword, "$defs" | "$schema" | "definitions") {
                continue;
            }
            let meaning = if keyword == "default" { Meaning::Default } else { Meaning::Text };
            self.differ(&at(path, keyword), meaning, before, after);
        }
    }

    fn restrictions(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        path: &str,
        depth: usize,
        is_closed: bool,
    ) -> Effect {
        // A root that refuses other names is compared keyword by keyword, because its parts do not refuse them.
        let is_one = |keyword: &str| {
            !is_closed
                && is_only(old, keyword) != is_only(new, keyword)
                && old.contains_key(keyword) != new.contains_key(keyword)
        };
        if is_one("$ref") {
            return self.followed(old, new, path, depth);
        }
        if is_one("anyOf") {
            return self.alternatives(old, new, path, depth);
        }
        let mut effect = Effect::NONE;
        let (mut objects, mut arrays, mut contains, mut listed) = (false, false, false, false);
        for keyword in keys(old, new).filter(|keyword| !is_silent(keyword)) {
            let change = match keyword {
                "properties" | "patternProperties" | "additionalProperties" => {
                    if std::mem::replace(&mut objects, true) {
                        continue;
                    }
                    self.objects(old, new, path, depth, is_closed)
                }
                "items" | "prefixItems" | "additionalItems" => {
                    if std::mem::replace(&mut arrays, true) {
                        continue;
                    }
                    self.arrays(old, new, path, depth)
                }
                "contains" | "minContains" | "maxContains" => {
                    if std::mem::replace(&mut contains, true) {
                        continue;
                    }
                    self.contained(old, new, path, depth)
                }
                "enum" | "const" => {
                    if std::mem::replace(&mut listed, true) {
                        continue;
                    }
                    self.listed(old, new, path)
                }
                _ => self.keyword(keyword, old.get(keyword), new.get(keyword), &at(path, keyword), depth),
            };
            effect = effect.or(change);
        }
        effect
    }

    /// Compares the values of a keyword that does not depend on others.
    fn keyword(&mut self, keyword: &str, old: Option<&Value>, new: Option<&Value>, path: &str, depth: usize) -> Effect {
        match keyword {
            "$ref" => return self.reference(old, new, path, depth),
            "anyOf" | "allOf" => return self.branches(keyword, old, new, path, depth),
            "propertyNames" => return self.part(old, new, path, depth),
            "dependentSchemas" => return self.parts(old, new, path, depth),
            _ if old == new && old.is_some_and(|value| shape(keyword, value) == Shape::Plain) => return Effect::NONE,
            _ => {}
        }
        let effect = match keyword {
            "type" => types(old, new),
            "required" => names(old).zip(names(new)).map(|(old, new)| Effect::of_sets(&new, &old)),
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => bound(old, new, true),
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => bound(old, new, false),
            "multipleOf" => multiple(old, new),
            "uniqueItems" => flag(old).zip(flag(new)).map(|(old, new)| match (old, new) {
                (false, true) => Effect::LESS,
                (true, false) => Effect::MORE,
                _ => Effect::NONE,
            }),
            "dependentRequired" => dependent(old, new),
            "pattern" | "format" => Some(Effect::of_restriction(old, new)),
            "oneOf" | "not" if old.is_none() || new.is_none() => Some(Effect::of_restriction(old, new)),
            _ => old.zip(new).filter(|(old, new)| self.is_same_keyword(keyword, old, new)).map(|_| Effect::NONE),
        };
        if old == new && effect == Some(Effect::NONE) {
            return Effect::NONE;
        }
        self.differ(path, Meaning::Values(effect.unwrap_or(Effect::BOTH)), old, new)
    }

    /// Compares a schema that is missing if it accepts everything.
    fn part(&mut self, old: Option<&Value>, new: Option<&Value>, path: &str, depth: usize) -> Effect {
        self.schema(old.unwrap_or(&TRUE), new.unwrap_or(&TRUE), path, depth + 1, false)
    }

    /// Compares schemas by their names; a missing one accepts everything.
    fn parts(&mut self, old: Option<&Value>, new: Option<&Value>, path: &str, depth: usize) -> Effect {
        let (Some(old), Some(new)) = (entries_of(old), entries_of(new)) else {
            return self.unrelated("", old, new, path);
        };
        keys(old, new).fold(Effect::NONE, |effect, name| {
            effect.or(self.part(old.get(name), new.get(name), &at(path, name), depth))
        })
    }

    /// Compares the properties of objects. A name that one side does not list is additional there.
    fn objects<'e>(
        &mut self,
        old: &'e Map<String, Value>,
        new: &'e Map<String, Value>,
        path: &str,
        depth: usize,
        is_closed: bool,
    ) -> Effect {
        let pair = |keyword: &str| (old.get(keyword), new.get(keyword));
        let read = |keyword: &str| entries_of(old.get(keyword)).zip(entries_of(new.get(keyword)));
        let (Some((listed, now)), Some((patterns, now_patterns))) = (read("properties"), read("patternProperties"))
        else {
            return ["properties", "patternProperties", "additionalProperties"].into_iter().fold(
                Effect::NONE,
                |effect, keyword| {
                    let (before, after) = pair(keyword);
                    effect.or(self.unrelated(keyword, before, after, &at(path, keyword)))
                },
            );
        };
        let rest = |entries: &'e Map<String, Value>| -> &'e Value {
            let refuses = is_closed && entries.contains_key("properties");
            entries.get("additionalProperties").unwrap_or(if refuses { &FALSE } else { &TRUE })
        };
        let (rest_before, rest_after) = (rest(old), rest(new));
        let properties = at(path, "properties");
        let mut effect = Effect::NONE;
        for name in keys(listed, now) {
            let path = at(&properties, name);
            effect = effect.or(match (listed.get(name), now.get(name)) {
                (Some(old), Some(new)) => self.schema(old, new, &path, depth + 1, false),
                // Which patterns match the name is not decided here.
                (before, after) if !patterns.is_empty() || !now_patterns.is_empty() => {
                    self.differ(&path, Meaning::Values(Effect::BOTH), before, after)
                }
                (before, after) => {
                    let change = self.decide(before.unwrap_or(rest_before), after.unwrap_or(rest_after), depth + 1);
                    self.differ(&path, Meaning::Values(change), before, after)
                }
            });
        }
        let (before, after) = pair("patternProperties");
        let place = at(path, "patternProperties");
        // Another pattern also changes which names are additional.
        let is_kept = keys(patterns, now_patterns).all(|it| patterns.contains_key(it) && now_patterns.contains_key(it));
        effect = effect.or(if is_kept {
            self.parts(before, after, &place, depth)
        } else {
            self.differ(&place, Meaning::Values(Effect::BOTH), before, after)
        });
        effect.or(self.schema(rest_before, rest_after, &at(path, "additionalProperties"), depth + 1, false))
    }

    /// Compares the items of arrays. An item that one side does not list is one of the rest there.
    fn arrays(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, path: &str, depth: usize) -> Effect {
        let is_legacy = |entries: &Map<String, Value>| {
            entries.get("items").is_some_and(Value::is_array) || entries.contains_key("additionalItems")
        };
        if is_legacy(old) || is_legacy(new) {
            return ["items", "additionalItems", "prefixItems"].into_iter().fold(Effect::NONE, |effect, keyword| {
                effect.or(self.unrelated(keyword, old.get(keyword), new.get(keyword), &at(path, keyword)))
            });
        }
        let (Some(before), Some(after)) = (list_of(old.get("prefixItems")), list_of(new.get("prefixItems"))) else {
            return self.unrelated(
                "prefixItems",
                old.get("prefixItems"),
                new.get("prefixItems"),
                &at(path, "prefixItems"),
            );
        };
        let (rest_before, rest_after) = (old.get("items").unwrap_or(&TRUE), new.get("items").unwrap_or(&TRUE));
        let mut effect = self.part(old.get("items"), new.get("items"), &at(path, "items"), depth);
        for index in 0..before.len().max(after.len()) {
            let path = at(&at(path, "prefixItems"), &index.to_string());
            effect = effect.or(match (before.get(index), after.get(index)) {
                (Some(old), Some(new)) => self.schema(old, new, &path, depth + 1, false),
                (old, new) => {
                    let change = self.decide(old.unwrap_or(rest_before), new.unwrap_or(rest_after), depth + 1);
                    self.differ(&path, Meaning::Values(change), old, new)
                }
            });
        }
        effect
    }

    /// Compares the number of items that match a schema.
    fn contained(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, path: &str, depth: usize) -> Effect {
        let path_of = |keyword: &str| at(path, keyword);
        let (before, after) = (old.get("contains"), new.get("contains"));
        let limits = |comparison: &mut Self, is_used: bool| {
            [("minContains", true), ("maxContains", false)].into_iter().fold(
                Effect::NONE,
                |effect, (keyword, is_lower)| {
                    let (before, after) = (old.get(keyword), new.get(keyword));
                    if before == after {
                        return effect;
                    }
                    let one = Value::from(1);
                    let implied = if is_lower { Some(&one) } else { None };
                    let change = bound(before.or(implied), after.or(implied), is_lower).unwrap_or(Effect::BOTH);
                    let change = if is_used { change } else { Effect::NONE };
                    effect.or(comparison.differ(&path_of(keyword), Meaning::Values(change), before, after))
                },
            )
        };
        let (Some(schema), Some(now)) = (before, after) else {
            let effect = limits(self, false);
            let change = Effect::of_restriction(before, after);
            return if before == after {
                effect
            } else {
                effect.or(self.differ(&path_of("contains"), Meaning::Values(change), before, after))
            };
        };
        let effect = limits(self, true);
        if old.contains_key("maxContains") || new.contains_key("maxContains") {
            return effect.or(self.unrelated("contains", before, after, &path_of("contains")));
        }
        effect.or(self.schema(schema, now, &path_of("contains"), depth + 1, false))
    }

    /// Compares the listed values.
    fn listed(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, path: &str) -> Effect {
        let (before, after) = (listed_values(old), listed_values(new));
        let effect = match (&before, &after) {
            (Listed::Values(old), Listed::Values(new)) => Effect::of_sets(old, new),
            (Listed::Anything, Listed::Values(_)) => Effect::LESS,
            (Listed::Values(_), Listed::Anything) => Effect::MORE,
            (Listed::Anything, Listed::Anything) => Effect::NONE,
            (Listed::Unclear, _) | (_, Listed::Unclear) => Effect::BOTH,
        };
        let mut total = Effect::NONE;
        for keyword in ["enum", "const"] {
            let (before, after) = (old.get(keyword), new.get(keyword));
            if before != after {
                total = total.or(self.differ(&at(path, keyword), Meaning::Values(effect), before, after));
            }
        }
        total
    }

    /// Compares lists of schemas of which all or any must accept a value.
    fn branches(
        &mut self,
        keyword: &str,
        old: Option<&Value>,
        new: Option<&Value>,
        path: &str,
        depth: usize,
    ) -> Effect {
        let (Some(Value::Array(before)), Some(Value::Array(after))) = (old, new) else {
            let is_list = |value: Option<&Value>| value.is_none_or(Value::is_array);
            let effect = if is_list(old) && is_list(new) { Effect::of_restriction(old, new) } else { Effect::BOTH };
            return if old == new { Effect::NONE } else { self.differ(path, Meaning::Values(effect), old, new) };
        };
        if before.len() == after.len() {
            let (found, known) = (self.differences.len(), self.known.clone());
            let effect = self.in_order(before, after, path, depth);
            if effect != Effect::BOTH {
                return effect;
            }
            let crossed = self.crossed(keyword, before, after, depth);
            if crossed == Effect::BOTH {
                return effect;
            }
            // Neither the differences nor what was assumed for them counts.
            self.differences.truncate(found);
            self.known = known;
            return self.differ(path, Meaning::Values(crossed), old, new);
        }
        let effect = self.crossed(keyword, before, after, depth);
        self.differ(path, Meaning::Values(effect), old, new)
    }

    fn in_order(&mut self, old: &[Value], new: &[Value], path: &str, depth: usize) -> Effect {
        let pairs = old.iter().zip(new).enumerate();
        pairs.fold(Effect::NONE, |effect, (index, (old, new))| {
            effect.or(self.schema(old, new, &at(path, &index.to_string()), depth + 1, false))
        })
    }

    /// The effect if each branch is compared with each.
    fn crossed(&mut self, keyword: &str, old: &[Value], new: &[Value], depth: usize) -> Effect {
        if old.len().saturating_mul(new.len()) > STEPS {
            return Effect::BOTH;
        }
        let mut effects = vec![vec![Effect::BOTH; new.len()]; old.len()];
        for (row, old) in effects.iter_mut().zip(old) {
            for (effect, new) in row.iter_mut().zip(new) {
                *effect = self.decide(old, new, depth + 1);
            }
        }
        let (rows, columns) = (0..old.len(), 0..new.len());
        if keyword == "anyOf" {
            // Each old branch is within a new one; each new branch is within an old one.
            let kept = rows.clone().all(|row| columns.clone().any(|column| !effects[row][column].accepts_less));
            let known = columns.clone().all(|column| rows.clone().any(|row| !effects[row][column].accepts_more));
            return Effect { accepts_more: !known, accepts_less: !kept };
        }
        // Each new condition follows from an old one; each old condition follows from a new one.
        let kept = columns.clone().all(|column| rows.clone().any(|row| !effects[row][column].accepts_less));
        let known = rows.clone().all(|row| columns.clone().any(|column| !effects[row][column].accepts_more));
        Effect { accepts_more: !known, accepts_less: !kept }
    }

    /// Compares a schema with a union: the schema is a union of one.
    fn alternatives(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, path: &str, depth: usize) -> Effect {
        let branches = |entries: &Map<String, Value>| match entries.get("anyOf") {
            Some(Value::Array(branches)) => branches.clone(),
            Some(_) => Vec::new(),
            None => vec![Value::Object(entries.clone())],
        };
        let effect = self.crossed("anyOf", &branches(old), &branches(new), depth);
        let (old, new) = (Value::Object(old.clone()), Value::Object(new.clone()));
        self.differ(path, Meaning::Values(effect), Some(&old), Some(&new))
    }

    /// Compares a reference with a schema: the reference stands for its definition.
    fn followed(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, path: &str, depth: usize) -> Effect {
        let (old_root, new_root) = (self.old, self.new);
        let (before, after) = (Value::Object(old.clone()), Value::Object(new.clone()));
        let meant = |root, entries: &Map<String, Value>| entries.get("$ref").map(|it| resolve(root, it).map(|it| it.1));
        let effect = match (meant(old_root, old), meant(new_root, new)) {
            (Some(Some(meant)), _) => self.decide(meant, &after, depth + 1),
            (_, Some(Some(meant))) => self.decide(&before, meant, depth + 1),
            _ => Effect::BOTH,
        };
        self.differ(path, Meaning::Values(effect), Some(&before), Some(&after))
    }

    /// Compares the definitions that two references lead to.
    fn reference(&mut self, old: Option<&Value>, new: Option<&Value>, path: &str, depth: usize) -> Effect {
        let (Some(before), Some(after)) = (old, new) else {
            return self.differ(path, Meaning::Values(Effect::of_restriction(old, new)), old, new);
        };
        let found = resolve(self.old, before).zip(resolve(self.new, after));
        let Some(((old_place, old_schema), (new_place, new_schema))) = found else {
            return if before == after {
                Effect::NONE
            } else {
                self.differ(path, Meaning::Values(Effect::BOTH), old, new)
            };
        };
        if before != after {
            self.differ(path, Meaning::Text, old, new);
        }
        if self.is_deciding {
            return if self.is_same(old_schema, new_schema) { Effect::NONE } else { Effect::BOTH };
        }
        let place = format!("{}{new_place}", self.base);
        let pair = (old_place, new_place);
        match self.known.get(&pair) {
            Some(effect) => effect.unwrap_or_default(),
            None => {
                self.known.insert(pair.clone(), None);
                let effect = self.schema(old_schema, new_schema, &place, depth + 1, false);
                self.known.insert(pair, Some(effect));
                effect
            }
        }
    }

    /// Records the definitions that differ and are not used.
    fn definitions(&mut self) {
        for keyword in ["$defs", "definitions"] {
            let (Some(old), Some(new)) = (entries_of(self.old.get(keyword)), entries_of(self.new.get(keyword))) else {
                self.differ(&at(self.base, keyword), Meaning::Text, self.old.get(keyword), self.new.get(keyword));
                continue;
            };
            for name in keys(old, new).filter(|name| old.get(*name) != new.get(*name)) {
                let path = at(&at(self.base, keyword), name);
                let inside = format!("{path}/");
                let is_recorded = |it: &SchemaDifference| it.path == path || it.path.starts_with(&inside);
                if !self.differences.iter().any(is_recorded) {
                    self.differ(&path, Meaning::Text, old.get(name), new.get(name));
                }
            }
        }
    }

    /// Compares a keyword whose changes are not understood.
    fn unrelated(&mut self, keyword: &str, old: Option<&Value>, new: Option<&Value>, path: &str) -> Effect {
        let is_same = match (old, new) {
            (Some(old), Some(new)) => self.is_same_keyword(keyword, old, new),
            (None, None) => true,
            _ => false,
        };
        match (is_same, old == new) {
            (true, true) => Effect::NONE,
            (true, false) => self.differ(path, Meaning::Text, old, new),
            (false, _) => self.differ(path, Meaning::Values(Effect::BOTH), old, new),
        }
    }

    /// True if the values of a keyword differ only in texts.
    fn is_same_keyword(&mut self, keyword: &str, old: &Value, new: &Value) -> bool {
        self.look_for_difference(|search| search.keyword(keyword, old, new, 0))
    }

    /// True if two schemas differ only in texts, also in the definitions that they refer to.
    fn is_same(&mut self, old: &Value, new: &Value) -> bool {
        self.look_for_difference(|search| search.schema(old, new, 0))
    }

    fn look_for_difference(&mut self, look: impl FnOnce(&mut Sameness<'a>) -> bool) -> bool {
        let mut search = Sameness { old: self.old, new: self.new, assumed: HashSet::new(), steps: self.steps };
        let is_same = look(&mut search);
        self.steps = search.steps;
        is_same
    }
}

/// The search for a difference between two schemas other than in texts.
struct Sameness<'a> {
    old: &'a Value,
    new: &'a Value,
    /// The pairs of definitions that are compared or were: if one of them differs, the whole does.
    assumed: HashSet<(String, String)>,
    /// The steps of the whole comparison.
    steps: usize,
}

impl Sameness<'_> {
    fn schema(&mut self, old: &Value, new: &Value, depth: usize) -> bool {
        self.steps += 1;
        if depth > DEPTH || self.steps > STEPS {
            return false;
        }
        let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
        let mut keywords = keys(old, new).filter(|keyword| !is_silent(keyword));
        keywords.all(|keyword| match (old.get(keyword), new.get(keyword)) {
            (Some(old), Some(new)) => self.keyword(keyword, old, new, depth),
            _ => false,
        })
    }

    fn keyword(&mut self, keyword: &str, old: &Value, new: &Value, depth: usize) -> bool {
        if keyword == "$ref" {
            let Some((old, new)) = resolve(self.old, old).zip(resolve(self.new, new)) else { return old == new };
            return !self.assumed.insert((old.0, new.0)) || self.schema(old.1, new.1, depth + 1);
        }
        match (shape(keyword, old), old, new) {
            (Shape::Schema, old, new) => self.schema(old, new, depth + 1),
            (Shape::List, Value::Array(old), Value::Array(new)) => {
                old.len() == new.len() && old.iter().zip(new).all(|(old, new)| self.schema(old, new, depth + 1))
            }
            (Shape::Map, Value::Object(old), Value::Object(new)) => {
                keys(old, new).all(|name| match (old.get(name), new.get(name)) {
                    (Some(old), Some(new)) => self.schema(old, new, depth + 1),
                    _ => false,
                })
            }
            (_, old, new) => old == new,
        }
    }
}

/// The place and the schema that the value of a `$ref` leads to in its own document.
fn resolve<'r>(root: &'r Value, reference: &Value) -> Option<(String, &'r Value)> {
    let place = pointer(&Map::from_iter([("$ref".to_owned(), reference.clone())]))?;
    let found = root.pointer(&place)?;
    Some((place, found))
}

/// The keys of two objects, each once.
fn keys<'k>(old: &'k Map<String, Value>, new: &'k Map<String, Value>) -> impl Iterator<Item = &'k str> {
    old.keys().chain(new.keys().filter(|key| !old.contains_key(*key))).map(String::as_str)
}

fn at(path: &str, key: &str) -> String {
    format!("{path}/{}", escaped(key))
}

/// The entries of an object, none if it is missing; `None` for another value.
fn entries_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    static NO_ENTRIES: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    value.map_or(Some(&*NO_ENTRIES), Value::as_object)
}

/// The items of a list, none if it is missing; `None` for another value.
fn list_of(value: Option<&Value>) -> Option<&[Value]> {
    value.map_or(Some(&[]), |value| value.as_array().map(Vec::as_slice))
}

/// The names in a list; `None` if it is not a list of names.
fn names(value: Option<&Value>) -> Option<BTreeSet<&str>> {
    list_of(value)?.iter().map(Value::as_str).collect()
}

fn flag(value: Option<&Value>) -> Option<bool> {
    value.map_or(Some(false), Value::as_bool)
}

fn types<'v>(old: Option<&'v Value>, new: Option<&'v Value>) -> Option<Effect> {
    const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
    let read = |value: Option<&'v Value>| -> Option<BTreeSet<&'v str>> {
        let mut names = match value {
            None => BTreeSet::from(TYPES),
            Some(Value::String(name)) => BTreeSet::from([name.as_str()]),
            Some(value) => names(Some(value))?,
        };
        if names.contains("number") {
            names.insert("integer");
        }
        names.iter().all(|name| TYPES.contains(name)).then_some(names)
    };
    Some(Effect::of_sets(&read(old)?, &read(new)?))
}

fn bound(old: Option<&Value>, new: Option<&Value>, is_lower: bool) -> Option<Effect> {
    let read = |value: Option<&Value>| match value {
        None => Some(None),
        Some(Value::Number(number)) => Some(Some(Decimal::of(number))),
        Some(_) => None,
    };
    Some(match (read(old)?, read(new)?) {
        (None, None) => Effect::NONE,
        (None, Some(_)) => Effect::LESS,
        (Some(_), None) => Effect::MORE,
        (Some(old), Some(new)) if old == new => Effect::NONE,
        (Some(old), Some(new)) => {
            if (new > old) == is_lower {
                Effect::LESS
            } else {
                Effect::MORE
            }
        }
    })
}

fn multiple(old: Option<&Value>, new: Option<&Value>) -> Option<Effect> {
    let (Some(before), Some(after)) = (old, new) else { return Some(Effect::of_restriction(old, new)) };
    let (before, after) = (before.as_u64()?, after.as_u64()?);
    if before.checked_rem(after)? == 0 {
        return Some(if before == after { Effect::NONE } else { Effect::MORE });
    }
    (after.checked_rem(before)? == 0).then_some(Effect::LESS)
}

fn dependent(old: Option<&Value>, new: Option<&Value>) -> Option<Effect> {
    let (old, new) = (entries_of(old)?, entries_of(new)?);
    keys(old, new).try_fold(Effect::NONE, |effect, name| {
        let (old, new) = (names(old.get(name))?, names(new.get(name))?);
        Some(effect.or(Effect::of_sets(&new, &old)))
    })
}

/// The values that a schema lists, by their canonical text.
enum Listed {
    Anything,
    Values(BTreeSet<String>),
    Unclear,
}

fn listed_values(schema: &Map<String, Value>) -> Listed {
    match (schema.get("enum"), schema.get("const")) {
        (None, None) => Listed::Anything,
        (Some(Value::Array(members)), None) => Listed::Values(members.iter().map(canonical).collect()),
        (None, Some(member)) => Listed::Values(BTreeSet::from([canonical(member)])),
        _ => Listed::Unclear,
    }
}
