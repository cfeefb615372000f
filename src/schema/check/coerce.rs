//! Coercion: values that mean the right thing in the wrong type, such as `"42"` for the integer 42.
//!
//! Only the declared type decides, a value that already fits is left as it is, and nothing is changed in place.

use serde_json::{Map, Number, Value};

use super::fast::KindSet;
use super::problem::float_text;
use super::validator::{Budget, SchemaValidator};
use super::value::{Integer, JsonLike, ValueKind};
use crate::json::parse;
use crate::schema::view;

/// The depth to which values are followed.
const DEPTH: usize = 128;

/// A value of which changed copies can be built.
pub trait Rebuild: JsonLike + Clone {
    /// A value of the same representation; `None` if it cannot represent it.
    fn build(&self, value: &Value) -> Option<Self>;

    /// A copy of this array with some items replaced.
    fn with_items(&self, items: Vec<(usize, Self)>) -> Option<Self>;

    /// A copy of this object with some entries replaced.
    fn with_entries(&self, entries: Vec<(String, Self)>) -> Option<Self>;
}

impl Rebuild for Value {
    fn build(&self, value: &Value) -> Option<Self> {
        Some(value.clone())
    }

    fn with_items(&self, items: Vec<(usize, Self)>) -> Option<Self> {
        let mut copy = self.as_array()?.clone();
        for (index, item) in items {
            *copy.get_mut(index)? = item;
        }
        Some(Value::Array(copy))
    }

    fn with_entries(&self, entries: Vec<(String, Self)>) -> Option<Self> {
        let mut copy = self.as_object()?.clone();
        copy.extend(entries);
        Some(Value::Object(copy))
    }
}

/// A schema of the document and its JSON pointer.
#[derive(Clone)]
struct Site<'s> {
    schema: &'s Value,
    pointer: String,
}

impl<'s> Site<'s> {
    /// The schema under a keyword.
    fn keyword(&self, keyword: &str) -> Option<Site<'s>> {
        let schema = self.schema.get(keyword)?;
        Some(Site { schema, pointer: format!("{}/{keyword}", self.pointer) })
    }

    fn item(&self, index: usize) -> Option<Site<'s>> {
        Some(Site { schema: self.schema.get(index)?, pointer: format!("{}/{index}", self.pointer) })
    }

    fn entry(&self, name: &str) -> Option<Site<'s>> {
        let schema = self.schema.get(name)?;
        Some(Site { schema, pointer: format!("{}/{}", self.pointer, view::escaped(name)) })
    }
}

/// Coerces a value by the whole schema of the validator; `None` if nothing changes.
pub(crate) fn coerce<S: Rebuild>(validator: &SchemaValidator<S::Form>, value: &S) -> Option<S> {
    let root = validator.root();
    let coercer = Coercer { root, validator, budget: Budget::for_value(value) };
    coercer.coerce(&Site { schema: root, pointer: String::new() }, value, 0)
}

struct Coercer<'s, S: JsonLike> {
    root: &'s Value,
    validator: &'s SchemaValidator<S::Form>,
    budget: Budget,
}

impl<'s, S: Rebuild> Coercer<'s, S> {
    fn coerce(&self, site: &Site<'s>, value: &S, depth: usize) -> Option<S> {
        let schema = site.schema.as_object().filter(|_| depth < DEPTH)?;
        let mut changed: Option<S> = None;
        let mut step = |make: &dyn Fn(&S) -> Option<S>| {
            if let Some(next) = make(changed.as_ref().unwrap_or(value)) {
                changed = Some(next);
            }
        };
        if let Some(pointer) = view::pointer(schema)
            && let Some(schema) = self.root.pointer(&pointer)
        {
            let target = Site { schema, pointer };
            step(&|value| self.coerce(&target, value, depth + 1));
        }
        if let Some(members) = view::members(schema) {
            step(&|value| to_member(value, members));
        } else if let Some(declared) = schema.get("type") {
            step(&|value| to_type(value, declared));
        }
        if let Some(parts) = site.keyword("allOf") {
            let mut index = 0;
            while let Some(part) = parts.item(index) {
                step(&|value| self.coerce(&part, value, depth + 1));
                index += 1;
            }
        }
        for union in ["anyOf", "oneOf"] {
            if let Some(branches) = site.keyword(union) {
                step(&|value| self.to_branch(&branches, value, depth));
            }
        }
        step(&|value| match value.kind() {
            ValueKind::Array => self.items(site, schema, value, depth),
            ValueKind::Object => self.entries(site, schema, value, depth),
            _ => None,
        });
        changed
    }

    /// Leaves a value that fits a branch as it is; else coerces it to the first branch that it then fits.
    fn to_branch(&self, branches: &Site<'s>, value: &S, depth: usize) -> Option<S> {
        let branches: Vec<Site<'s>> = (0..).map_while(|index| branches.item(index)).collect();
        // Nested unions could multiply the work at every level.
        if !self.budget.take(branches.len(), value) {
            return None;
        }
        if branches.iter().any(|branch| self.validator.is_valid_at(&branch.pointer, value)) {
            return None;
        }
        branches.iter().find_map(|branch| {
            let coerced = self.coerce(branch, value, depth + 1)?;
            let admitted = self.budget.take(1, &coerced) && self.validator.is_valid_at(&branch.pointer, &coerced);
            admitted.then_some(coerced)
        })
    }

    fn items(&self, site: &Site<'s>, schema: &Map<String, Value>, value: &S, depth: usize) -> Option<S> {
        let (first, rest) = view::item_keywords(schema);
        let (first, rest) = (site.keyword(first), site.keyword(rest));
        if first.is_none() && rest.is_none() {
            return None;
        }
        let mut changes = Vec::new();
        let mut index = 0;
        value.every_item(|item| {
            let place = first.as_ref().and_then(|first| first.item(index));
            let coerced = place.as_ref().or(rest.as_ref()).and_then(|site| self.coerce(site, item, depth + 1));
            changes.extend(coerced.map(|coerced| (index, coerced)));
            index += 1;
            true
        });
        if changes.is_empty() { None } else { value.with_items(changes) }
    }

    fn entries(&self, site: &Site<'s>, schema: &Map<String, Value>, value: &S, depth: usize) -> Option<S> {
        let properties = site.keyword("properties");
        // With patterns it is not known here which entries are the additional ones.
        let patterns = schema.contains_key("patternProperties");
        let rest = if patterns { None } else { site.keyword("additionalProperties") };
        if properties.is_none() && rest.is_none() {
            return None;
        }
        let mut changes = Vec::new();
        value.every_entry(|key, entry| {
            if let Some(key) = key {
                let property = properties.as_ref().and_then(|properties| properties.entry(key));
                let coerced = property.as_ref().or(rest.as_ref()).and_then(|site| self.coerce(site, entry, depth + 1));
                changes.extend(coerced.map(|coerced| (key.to_owned(), coerced)));
            }
            true
        });
        if changes.is_empty() { None } else { value.with_entries(changes) }
    }
}

/// The most digits that are parsed as an integer or written as text, as in Python: more take quadratic time.
pub(super) const DIGITS: usize = 4300;

/// The only member that a value can be coerced to.
pub(super) fn to_member<S: Rebuild>(value: &S, members: &[Value]) -> Option<S> {
    if members.iter().any(|member| same(value, member)) {
        return None;
    }
    let mut reached = members.iter().filter(|member| {
        let name = match member.kind() {
            ValueKind::Null => "null",
            ValueKind::Bool => "boolean",
            ValueKind::Int => "integer",
            ValueKind::Float => "number",
            ValueKind::String => "string",
            ValueKind::Array | ValueKind::Object | ValueKind::Other => return false,
        };
        scalar(value, name).is_some_and(|scalar| same(&scalar, member))
    });
    let member = reached.next()?;
    if reached.next().is_some() { None } else { value.build(member) }
}

/// True if a value is a scalar and equal to a member.
fn same<S: JsonLike>(value: &S, member: &Value) -> bool {
    match (value.kind(), member.kind()) {
        (ValueKind::Null, ValueKind::Null) => true,
        (ValueKind::Bool, ValueKind::Bool) => value.is_true() == member.is_true(),
        (ValueKind::Int, ValueKind::Int) => match (value.integer(), member.integer()) {
            (Integer::Small(one), Integer::Small(other)) => one == other,
            (one, other) => one == other && value.digits(DIGITS) == member.digits(DIGITS),
        },
        (ValueKind::String, ValueKind::String) => value.text() == member.text(),
        (ValueKind::Int | ValueKind::Float, ValueKind::Int | ValueKind::Float) => {
            let float = |digits: Option<String>| digits.and_then(|digits| digits.parse::<f64>().ok());
            let one = value.float().or_else(|| float(value.digits(DIGITS)));
            let other = member.float().or_else(|| float(member.digits(DIGITS)));
            one.is_some() && one == other
        }
        _ => false,
    }
}

/// Coerces a value by the keyword `type`.
fn to_type<S: Rebuild>(value: &S, declared: &Value) -> Option<S> {
    match declared {
        Value::String(name) => to_types(value, &[name]),
        Value::Array(names) => to_types(value, &names.iter().filter_map(Value::as_str).collect::<Vec<_>>()),
        _ => None,
    }
}

/// Coerces a value that has none of the declared types to the first of them that is possible.
pub(super) fn to_types<S: Rebuild>(value: &S, names: &[&str]) -> Option<S> {
    let kind = value.kind();
    let is_of = |name: &str| KindSet::named(name).is_some_and(|kinds| kinds.has(kind));
    if names.iter().any(|name| is_of(name)) {
        return None;
    }
    // Already an integer to JSON Schema, so it is not coerced to another type.
    if kind == ValueKind::Float && names.contains(&"integer") && value.float().is_some_and(|float| float.fract() == 0.0)
    {
        return value.build(&scalar(value, "integer")?);
    }
    names.iter().find_map(|name| value.build(&scalar(value, name).or_else(|| container(value, name))?))
}

/// Converts a scalar to another type, by the rules of that type.
fn scalar<S: JsonLike>(value: &S, name: &str) -> Option<Value> {
    match (name, value.kind()) {
        ("integer", ValueKind::String) => integer_text(value.text()?.trim()).map(Value::Number),
        ("integer", ValueKind::Float) => {
            // Beyond, one float stands for many integers.
            let exact = |float: &f64| float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
            let float = value.float().filter(exact)?;
            #[allow(clippy::cast_possible_truncation)]
            Some(Value::from(float as i64))
        }
        ("number", ValueKind::String) => number_text(value.text()?.trim()).map(Value::Number),
        ("boolean", ValueKind::String) => match value.text()? {
            text if text.eq_ignore_ascii_case("true") => Some(Value::Bool(true)),
            text if text.eq_ignore_ascii_case("false") => Some(Value::Bool(false)),
            _ => None,
        },
        ("boolean", ValueKind::Int) => match value.integer() {
            Integer::Small(0) => Some(Value::Bool(false)),
            Integer::Small(1) => Some(Value::Bool(true)),
            _ => None,
        },
        ("string", ValueKind::Bool) => Some(Value::from(if value.is_true() { "true" } else { "false" })),
        ("string", ValueKind::Int) => value.digits(DIGITS).map(Value::String),
        ("string", ValueKind::Float) => value.float().map(|float| Value::String(float_text(float))),
        ("null", ValueKind::String) => {
            let text = value.text()?;
            let is_null = text.is_empty() || text.eq_ignore_ascii_case("null") || text.eq_ignore_ascii_case("none");
            is_null.then_some(Value::Null)
        }
        _ => None,
    }
}

/// Parses JSON text of an array or an object.
fn container<S: JsonLike>(value: &S, name: &str) -> Option<Value> {
    let opening = match name {
        "array" => '[',
        "object" => '{',
        _ => return None,
    };
    if value.kind() != ValueKind::String {
        return None;
    }
    let text = value.text()?.trim();
    if !text.starts_with(opening) {
        return None;
    }
    // With a duplicate key it is unknown which value is meant.
    parse::parse(text).ok().and_then(|(value, has_duplicates)| if has_duplicates { None } else { Some(value) })
}

/// Parses decimal digits with or without a sign.
fn integer_text(text: &str) -> Option<Number> {
    let (minus, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || digits.len() > DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = match digits.trim_start_matches('0') {
        "" => return Some(Number::from(0)),
        digits => digits,
    };
    if minus { format!("-{digits}").parse().ok() } else { digits.parse().ok() }
}

/// Parses a finite number with a fraction, an exponent, both or neither.
fn number_text(text: &str) -> Option<Number> {
    if let Some(integer) = integer_text(text) {
        return Some(integer);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(whole, rest)| (whole, Some(rest)));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() > DIGITS || !digits(whole) || !fraction.is_none_or(digits) || !exponent.is_none_or(digits) {
        return None;
    }
    Number::from_f64(text.parse::<f64>().ok()?)
}
