//! The comparison of two JSON Schemas by the values that they accept.
//!
//! Each keyword restricts the values on its own, so that a schema accepts more if every changed keyword does. The keywords
//! for which this does not hold, or that are unknown here, count as incompatible when they change. The result is an
//! upper bound: a change that is said to accept everything that was accepted before does so, and one that is said to be
//! incompatible may be harmless.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::effect::{
    Effect, Listed, bound, dependent, entries_of, flag, keys, list_of, listed_values, multiple, names, types,
};
use super::vocabulary::{
    DEPTH, STEPS, Sameness, Shape, accepts_all, has_old_draft, is_only, is_silent, reaches_far, requires_undescribed,
    resolve, shape,
};
use crate::schema::view::escaped;

/// The most differences that are recorded.
const MOST_DIFFERENCES: usize = 200;

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
    let ignores_siblings = [old, new].into_iter().any(has_old_draft);
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
            (Value::Object(old), Value::Object(new)) => {
                self.texts(old, new, path);
                if self.ignores_siblings {
                    self.restrictions(&alone(old), &alone(new), path, depth, is_closed)
                } else {
                    self.restrictions(old, new, path, depth, is_closed)
                }
            }
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
            "propertyNames" => return self.part((old, new), (&TRUE, &TRUE), path, depth),
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

    /// Compares two schemas, either of which may be missing: then another stands in for it.
    fn part(
        &mut self,
        (old, new): (Option<&Value>, Option<&Value>),
        (instead_of_old, instead_of_new): (&Value, &Value),
        path: &str,
        depth: usize,
    ) -> Effect {
        if let (Some(old), Some(new)) = (old, new) {
            return self.schema(old, new, path, depth + 1, false);
        }
        let effect = self.decide(old.unwrap_or(instead_of_old), new.unwrap_or(instead_of_new), depth + 1);
        if old.is_none() && new.is_none() && effect == Effect::NONE {
            return effect;
        }
        self.differ(path, Meaning::Values(effect), old, new)
    }

    /// Compares schemas by their names; a missing one accepts everything.
    fn parts(&mut self, old: Option<&Value>, new: Option<&Value>, path: &str, depth: usize) -> Effect {
        let (Some(old), Some(new)) = (entries_of(old), entries_of(new)) else {
            return self.unrelated("", old, new, path);
        };
        keys(old, new).fold(Effect::NONE, |effect, name| {
            effect.or(self.part((old.get(name), new.get(name)), (&TRUE, &TRUE), &at(path, name), depth))
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
        let rests = (rest(old), rest(new));
        let properties = at(path, "properties");
        let mut effect = Effect::NONE;
        for name in keys(listed, now) {
            let path = at(&properties, name);
            let both = (listed.get(name), now.get(name));
            // Which patterns match the name is not decided here.
            let is_unclear = !(patterns.is_empty() && now_patterns.is_empty()) && both.0.is_some() != both.1.is_some();
            effect = effect.or(if is_unclear {
                self.differ(&path, Meaning::Values(Effect::BOTH), both.0, both.1)
            } else {
                self.part(both, rests, &path, depth)
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
        effect.or(self.part(pair("additionalProperties"), rests, &at(path, "additionalProperties"), depth))
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
        let mut effect = self.part((old.get("items"), new.get("items")), (&TRUE, &TRUE), &at(path, "items"), depth);
        for index in 0..before.len().max(after.len()) {
            let path = at(&at(path, "prefixItems"), &index.to_string());
            effect =
                effect.or(self.part((before.get(index), after.get(index)), (rest_before, rest_after), &path, depth));
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
        if let Some(effect) = self.known.get(&pair) {
            return effect.unwrap_or_default();
        }
        self.known.insert(pair.clone(), None);
        let effect = self.schema(old_schema, new_schema, &place, depth + 1, false);
        self.known.insert(pair, Some(effect));
        effect
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

/// A schema without the keywords beside a reference, which older drafts ignore.
fn alone(entries: &Map<String, Value>) -> Map<String, Value> {
    match entries.get("$ref") {
        Some(reference) => Map::from_iter([("$ref".to_owned(), reference.clone())]),
        None => entries.clone(),
    }
}

fn at(path: &str, key: &str) -> String {
    format!("{path}/{}", escaped(key))
}
