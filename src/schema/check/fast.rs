//! The accept-only check that decides most calls.
//!
//! What a [`FastCheck`] accepts is valid. What it does not accept is undecided: the validator decides, and the problems are explained.

use std::sync::{Arc, Weak};

use super::bounds::Bounds;
use super::format::{FormatRules, TextFormat};
use super::unique::are_unique_scalars;
use super::value::{Integer, JsonLike, ValueKind};

/// The number of nested containers and references at which a check declines.
const DEPTH: u32 = 256;

/// The cost of failed alternatives at which a check declines. Failures of nested unions can double at every level, and the validator,
/// which remembers what it has seen, is better at them.
const BUDGET: u32 = 1 << 19;
/// The cost of a failed alternative for a scalar, and for a container.
const SCALAR_COST: u32 = 1;
const CONTAINER_COST: u32 = 64;

/// A schema, compiled once to find out quickly whether a value certainly fits.
#[derive(Debug)]
pub(crate) enum FastCheck {
    /// Never accepts: the validator decides.
    Undecided,
    /// Accepts everything.
    Anything,
    /// Accepts any string.
    String,
    /// Accepts any integer.
    Integer,
    /// Accepts integers and finite numbers.
    Number,
    /// Accepts `true` and `false`.
    Boolean,
    /// Accepts values of these kinds.
    Kinds(KindSet),
    /// Accepts strings of a format.
    Formatted(TextFormat, FormatRules),
    /// Accepts the listed strings.
    Strings(Box<[Box<str>]>),
    /// Accepts the listed scalars.
    Scalars(Box<[Scalar]>),
    /// Accepts by kind, and then by the limits on that kind.
    Limits(Box<FastLimits>),
    /// Accepts arrays.
    Array(Box<FastArray>),
    /// Accepts objects.
    Object(Box<FastObject>),
    /// Accepts values that one of them accepts.
    AnyOf(Box<[FastCheck]>),
    /// Accepts values that all of them accept.
    AllOf(Box<[FastCheck]>),
    /// A definition.
    Shared(Arc<FastCheck>),
    /// A definition that refers to itself.
    Recursive(Weak<FastCheck>),
}

/// A scalar that an `enum` or a `const` lists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer, or a float without fraction.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(Box<str>),
}

/// Limits on scalars beyond their kind, and on the sizes of containers.
#[derive(Debug)]
pub(crate) struct FastLimits {
    pub(super) kinds: KindSet,
    pub(super) bounds: Bounds,
    pub(super) text: SizeRange,
    pub(super) items: SizeRange,
    pub(super) entries: SizeRange,
}

/// A smallest and a largest size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeRange {
    pub(super) least: usize,
    pub(super) most: usize,
}

impl SizeRange {
    /// Any size.
    pub(super) const FREE: SizeRange = SizeRange { least: 0, most: usize::MAX };

    #[inline]
    fn contains(self, measure: impl FnOnce() -> usize) -> bool {
        self == SizeRange::FREE || (self.least..=self.most).contains(&measure())
    }
}

/// The checks of an array and of its items.
#[derive(Debug)]
pub(crate) struct FastArray {
    pub(super) size: SizeRange,
    pub(super) first: Box<[FastCheck]>,
    pub(super) rest: FastCheck,
    pub(super) unique: bool,
}

/// The checks of an object and of its entries.
#[derive(Debug)]
pub(crate) struct FastObject {
    pub(super) size: SizeRange,
    pub(super) named: Box<[FastField]>,
    /// The indices of the fields sorted by name, for entries that come in another order.
    pub(super) order: Box<[u32]>,
    pub(super) required: usize,
    /// The check of other entries.
    pub(super) rest: FastCheck,
}

/// One property.
#[derive(Debug)]
pub(crate) struct FastField {
    /// The key.
    pub(crate) name: Box<str>,
    /// True if the object must have it.
    pub(crate) required: bool,
    /// The check of its value.
    pub(crate) check: FastCheck,
}

impl FastCheck {
    /// True if the value certainly fits.
    #[inline]
    pub(crate) fn accepts<S: JsonLike>(&self, value: &S) -> bool {
        match self {
            FastCheck::Undecided => false,
            FastCheck::Anything => true,
            FastCheck::String => value.kind() == ValueKind::String,
            FastCheck::Integer => value.kind() == ValueKind::Int,
            FastCheck::Number => matches!(value.kind(), ValueKind::Int | ValueKind::Float),
            FastCheck::Boolean => value.kind() == ValueKind::Bool,
            _ => self.accepts_within::<S, false>(value, DEPTH, &mut { BUDGET }),
        }
    }

    /// The name of the one type of scalars that it accepts, if that and limits are all that the schema says.
    pub(super) fn scalar_type(&self) -> Option<&'static str> {
        let kinds = match self {
            FastCheck::String => KindSet::STRING,
            FastCheck::Integer => KindSet::INTEGER,
            FastCheck::Number => KindSet::NUMBER,
            FastCheck::Boolean => KindSet::BOOLEAN,
            FastCheck::Limits(limits) => limits.kinds,
            _ => return None,
        };
        ["string", "integer", "number", "boolean"].into_iter().find(|name| KindSet::named(name) == Some(kinds))
    }

    /// The same for values that are of the declared classes too: an integer does not fit a number with a fraction, nor a tuple an
    /// array.
    pub(crate) fn accepts_exactly<S: JsonLike>(&self, value: &S) -> bool {
        self.accepts_within::<S, true>(value, DEPTH, &mut { BUDGET })
    }

    fn accepts_within<S: JsonLike, const EXACT: bool>(&self, value: &S, depth: u32, budget: &mut u32) -> bool {
        match self {
            FastCheck::Undecided => false,
            FastCheck::Anything => true,
            FastCheck::String => value.kind() == ValueKind::String,
            FastCheck::Integer => value.kind() == ValueKind::Int,
            FastCheck::Number => KindSet::NUMBER.accepts::<EXACT>(value.kind()),
            FastCheck::Boolean => value.kind() == ValueKind::Bool,
            FastCheck::Kinds(kinds) => kinds.accepts::<EXACT>(value.kind()),
            FastCheck::Strings(strings) => {
                value.kind() == ValueKind::String
                    && value.text().is_some_and(|text| strings.iter().any(|string| **string == *text))
            }
            FastCheck::Formatted(format, rules) => {
                value.kind() == ValueKind::String && value.text().is_some_and(|text| format.accepts(text, *rules))
            }
            FastCheck::Scalars(scalars) => {
                let kind = value.kind();
                scalars.iter().any(|scalar| scalar.equals(kind, value))
            }
            FastCheck::Limits(limits) => limits.accepts::<S, EXACT>(value),
            FastCheck::Array(array) => array.accepts::<S, EXACT>(value, depth, budget),
            FastCheck::Object(object) => object.accepts::<S, EXACT>(value, depth, budget),
            FastCheck::AnyOf(branches) => {
                let cost = if matches!(value.kind(), ValueKind::Array | ValueKind::Object) {
                    CONTAINER_COST
                } else {
                    SCALAR_COST
                };
                branches.iter().any(|branch| {
                    let accepted = *budget > 0 && branch.accepts_within::<S, EXACT>(value, depth, budget);
                    if !accepted {
                        *budget = budget.saturating_sub(cost);
                    }
                    accepted
                })
            }
            FastCheck::AllOf(parts) => parts.iter().all(|part| part.accepts_within::<S, EXACT>(value, depth, budget)),
            FastCheck::Shared(target) => depth > 0 && target.accepts_within::<S, EXACT>(value, depth - 1, budget),
            FastCheck::Recursive(target) => {
                let target = target.upgrade().filter(|_| depth > 0);
                target.is_some_and(|target| target.accepts_within::<S, EXACT>(value, depth - 1, budget))
            }
        }
    }
}

impl Scalar {
    fn equals<S: JsonLike>(&self, kind: ValueKind, value: &S) -> bool {
        match self {
            Scalar::Null => kind == ValueKind::Null,
            Scalar::Bool(expected) => kind == ValueKind::Bool && value.is_true() == *expected,
            Scalar::Int(expected) => kind == ValueKind::Int && value.integer() == Integer::Small(*expected),
            #[allow(clippy::float_cmp)] // Equality of what was written is what is asked for.
            Scalar::Float(expected) => {
                kind == ValueKind::Float && value.float().is_some_and(|value| value == *expected)
            }
            Scalar::String(expected) => {
                kind == ValueKind::String && value.text().is_some_and(|text| *text == **expected)
            }
        }
    }

    /// The kind of the scalar.
    pub(super) fn kind(&self) -> ValueKind {
        match self {
            Scalar::Null => ValueKind::Null,
            Scalar::Bool(_) => ValueKind::Bool,
            Scalar::Int(_) => ValueKind::Int,
            Scalar::Float(_) => ValueKind::Float,
            Scalar::String(_) => ValueKind::String,
        }
    }
}

impl FastLimits {
    fn accepts<S: JsonLike, const EXACT: bool>(&self, value: &S) -> bool {
        let kind = value.kind();
        self.kinds.accepts::<EXACT>(kind)
            && match kind {
                ValueKind::Int | ValueKind::Float => self.bounds.is_empty() || self.bounds.hold(kind, value),
                ValueKind::String => self.text.contains(|| value.length()),
                ValueKind::Array => self.items.contains(|| value.length()),
                ValueKind::Object => self.entries.contains(|| value.length()),
                ValueKind::Null | ValueKind::Bool => true,
                ValueKind::Other => false,
            }
    }
}

impl FastArray {
    /// The number of items up to which they are compared pairwise, which is faster than a set.
    const COMPARED: usize = 32;

    fn accepts<S: JsonLike, const EXACT: bool>(&self, value: &S, depth: u32, budget: &mut u32) -> bool {
        if value.kind() != ValueKind::Array || depth == 0 || !self.size.contains(|| value.length()) {
            return false;
        }
        if EXACT && !value.is_list() {
            return false;
        }
        let mut first = self.first.iter();
        let check = |item: &S| first.next().unwrap_or(&self.rest).accepts_within::<S, EXACT>(item, depth - 1, budget);
        value.every_item(check) && (!self.unique || FastArray::are_unique(value))
    }

    fn are_unique<S: JsonLike>(value: &S) -> bool {
        if value.length() > FastArray::COMPARED {
            return are_unique_scalars(value);
        }
        let mut position = 0;
        value.every_item(|item| {
            let mut before = position;
            position += 1;
            let fresh = value.every_item(|other| {
                let earlier = before > 0;
                before = usize::saturating_sub(before, 1);
                !earlier || certainly_differ(item, other)
            });
            fresh && matches!(item.kind(), ValueKind::Int | ValueKind::String)
        })
    }
}

/// True if two values certainly differ; compares integers and strings only.
fn certainly_differ<S: JsonLike>(one: &S, other: &S) -> bool {
    match (one.kind(), other.kind()) {
        (ValueKind::Int, ValueKind::Int) => match (one.integer(), other.integer()) {
            (Integer::Small(one), Integer::Small(other)) => one != other,
            _ => false,
        },
        (ValueKind::String, ValueKind::String) => match (one.text(), other.text()) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        },
        (ValueKind::Int, ValueKind::String) | (ValueKind::String, ValueKind::Int) => true,
        _ => false,
    }
}

impl FastObject {
    /// The index of a field. `hint` is its index if the entries come in the order of the fields.
    #[inline]
    pub(super) fn find(&self, name: &str, hint: usize) -> Option<usize> {
        if self.named.get(hint).is_some_and(|field| *field.name == *name) {
            return Some(hint);
        }
        let at = self.order.binary_search_by(|index| (*self.named[*index as usize].name).cmp(name));
        at.ok().map(|at| self.order[at] as usize)
    }

    fn accepts<S: JsonLike, const EXACT: bool>(&self, value: &S, depth: u32, budget: &mut u32) -> bool {
        if value.kind() != ValueKind::Object || depth == 0 || !self.size.contains(|| value.length()) {
            return false;
        }
        let (mut hint, mut present) = (0, 0);
        let fit = value.every_entry(|key, entry| {
            let Some(key) = key else { return false };
            let check = match self.find(key, hint) {
                Some(index) => {
                    let field = &self.named[index];
                    hint = index + 1;
                    present += usize::from(field.required);
                    &field.check
                }
                None => &self.rest,
            };
            check.accepts_within::<S, EXACT>(entry, depth - 1, budget)
        });
        fit && present == self.required
    }
}

/// A set of value kinds, as `type` declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KindSet(u8);

impl KindSet {
    /// All kinds of JSON.
    pub(crate) const ALL: KindSet = KindSet(0x7f);
    /// The empty set.
    pub(crate) const NONE: KindSet = KindSet(0);
    pub(crate) const NULL: KindSet = KindSet::of(ValueKind::Null);
    pub(crate) const STRING: KindSet = KindSet::of(ValueKind::String);
    pub(crate) const INTEGER: KindSet = KindSet::of(ValueKind::Int);
    pub(crate) const NUMBER: KindSet = KindSet::of(ValueKind::Int).or(KindSet::of(ValueKind::Float));
    pub(crate) const BOOLEAN: KindSet = KindSet::of(ValueKind::Bool);
    pub(crate) const ARRAY: KindSet = KindSet::of(ValueKind::Array);
    pub(crate) const OBJECT: KindSet = KindSet::of(ValueKind::Object);

    /// The kinds of a type name; `None` if the name is unknown.
    pub(crate) fn named(name: &str) -> Option<KindSet> {
        Some(match name {
            "null" => KindSet::NULL,
            "boolean" => KindSet::BOOLEAN,
            "integer" => KindSet::INTEGER,
            "number" => KindSet::NUMBER,
            "string" => KindSet::STRING,
            "array" => KindSet::ARRAY,
            "object" => KindSet::OBJECT,
            _ => return None,
        })
    }

    /// A single kind.
    pub(crate) const fn of(kind: ValueKind) -> KindSet {
        KindSet(match kind {
            ValueKind::Null => 1,
            ValueKind::Bool => 2,
            ValueKind::Int => 4,
            ValueKind::Float => 8,
            ValueKind::String => 16,
            ValueKind::Array => 32,
            ValueKind::Object => 64,
            ValueKind::Other => 0,
        })
    }

    /// The union of two sets.
    pub(crate) const fn or(self, other: KindSet) -> KindSet {
        KindSet(self.0 | other.0)
    }

    /// This set without the other.
    pub(crate) const fn without(self, other: KindSet) -> KindSet {
        KindSet(self.0 & !other.0)
    }

    /// True if the kind is in the set.
    #[inline]
    pub(crate) const fn has(self, kind: ValueKind) -> bool {
        self.0 & KindSet::of(kind).0 != 0
    }

    /// True if the kind is in the set; if it must be exact, an integer is not one of the numbers with a fraction.
    #[inline]
    const fn accepts<const EXACT: bool>(self, kind: ValueKind) -> bool {
        self.has(kind) && !(EXACT && matches!(kind, ValueKind::Int) && self.has(ValueKind::Float))
    }

    /// True if the sets have a kind in common.
    pub(crate) const fn meets(self, other: KindSet) -> bool {
        self.0 & other.0 != 0
    }
}
