//! The accepts-only test that most calls are decided by.
//!
//! What [`Quick`] accepts is valid. What it does not accept is undecided: the judge is asked, and it explains.

use std::sync::{Arc, Weak};

use super::{
    bounds::Bounds,
    kinds::Kinds,
    subject::{Integer, Kind, Subject},
    unique::are_unique_scalars,
};

/// How many containers and references deep a test may go before it declines.
const DEPTH: u32 = 256;

/// How much may be spent on alternatives that fail in one test. Failures of nested unions can double at every level, and the judge, which
/// remembers what it has seen, is better at them.
const SPENT: u32 = 1 << 19;
/// What the failure of an alternative costs for a scalar, and for a container.
const CHEAP: u32 = 1;
const DEAR: u32 = 64;

/// A schema, compiled once to answer quickly whether a value certainly fits.
#[derive(Debug)]
pub enum Quick {
    /// Never accepts: the judge has to be asked.
    Ask,
    /// Accepts everything.
    Any,
    /// Accepts any text.
    Text,
    /// Accepts any integer.
    Integer,
    /// Accepts integers and finite numbers.
    Number,
    /// Accepts `true` and `false`.
    Boolean,
    /// Accepts what is of one of these kinds.
    Kinds(Kinds),
    /// Accepts the listed texts.
    Words(Box<[Box<str>]>),
    /// Accepts the listed scalars.
    Scalars(Box<[Scalar]>),
    /// Accepts by kind, and then by what is asked of that kind.
    Limits(Box<Limits>),
    /// Accepts arrays.
    Items(Box<Items>),
    /// Accepts objects.
    Fields(Box<Fields>),
    /// Accepts what one of them accepts.
    Either(Box<[Quick]>),
    /// Accepts what all of them accept.
    Both(Box<[Quick]>),
    /// A definition.
    Shared(Arc<Quick>),
    /// A definition that is being entered again.
    Again(Weak<Quick>),
}

/// A scalar that an `enum` or a `const` lists.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer, or a number that is integral.
    Int(i64),
    /// A fraction.
    Float(f64),
    /// A text.
    Text(Box<str>),
}

/// What is asked of scalars beyond their kind, and of the sizes of containers.
#[derive(Debug)]
pub struct Limits {
    pub(super) kinds: Kinds,
    pub(super) bounds: Bounds,
    pub(super) text: Size,
    pub(super) items: Size,
    pub(super) entries: Size,
}

/// A smallest and a largest size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub(super) least: usize,
    pub(super) most: usize,
}

impl Size {
    /// Any size.
    pub const FREE: Size = Size { least: 0, most: usize::MAX };

    #[inline]
    fn holds(self, measure: impl FnOnce() -> usize) -> bool {
        self == Size::FREE || (self.least..=self.most).contains(&measure())
    }
}

/// What is asked of the items of an array.
#[derive(Debug)]
pub struct Items {
    pub(super) size: Size,
    pub(super) first: Box<[Quick]>,
    pub(super) rest: Quick,
    pub(super) unique: bool,
}

/// What is asked of the entries of an object.
#[derive(Debug)]
pub struct Fields {
    pub(super) size: Size,
    pub(super) named: Box<[Field]>,
    /// The fields by name, for entries that come in another order than the fields.
    pub(super) order: Box<[u32]>,
    pub(super) required: usize,
    /// What is asked of other entries.
    pub(super) rest: Quick,
}

/// One property.
#[derive(Debug)]
pub struct Field {
    /// The key.
    pub name: Box<str>,
    /// Whether the object must have it.
    pub required: bool,
    /// What its value is held to.
    pub quick: Quick,
}

impl Quick {
    /// Whether the value certainly fits.
    #[inline]
    #[must_use]
    pub fn accepts<S: Subject>(&self, value: &S) -> bool {
        match self {
            Quick::Ask => false,
            Quick::Any => true,
            Quick::Text => value.kind() == Kind::String,
            Quick::Integer => value.kind() == Kind::Int,
            Quick::Number => matches!(value.kind(), Kind::Int | Kind::Float),
            Quick::Boolean => value.kind() == Kind::Bool,
            _ => self.accepts_within(value, DEPTH, &mut { SPENT }),
        }
    }

    fn accepts_within<S: Subject>(&self, value: &S, depth: u32, budget: &mut u32) -> bool {
        match self {
            Quick::Ask => false,
            Quick::Any => true,
            Quick::Text => value.kind() == Kind::String,
            Quick::Integer => value.kind() == Kind::Int,
            Quick::Number => matches!(value.kind(), Kind::Int | Kind::Float),
            Quick::Boolean => value.kind() == Kind::Bool,
            Quick::Kinds(kinds) => kinds.has(value.kind()),
            Quick::Words(words) => {
                value.kind() == Kind::String
                    && value.text().is_some_and(|text| words.iter().any(|word| **word == *text))
            }
            Quick::Scalars(scalars) => {
                let kind = value.kind();
                scalars.iter().any(|scalar| scalar.equals(kind, value))
            }
            Quick::Limits(limits) => limits.accepts(value),
            Quick::Items(items) => items.accepts(value, depth, budget),
            Quick::Fields(fields) => fields.accepts(value, depth, budget),
            Quick::Either(branches) => {
                let cost = if matches!(value.kind(), Kind::Array | Kind::Object) { DEAR } else { CHEAP };
                branches.iter().any(|branch| {
                    let accepted = *budget > 0 && branch.accepts_within(value, depth, budget);
                    if !accepted {
                        *budget = budget.saturating_sub(cost);
                    }
                    accepted
                })
            }
            Quick::Both(parts) => parts.iter().all(|part| part.accepts_within(value, depth, budget)),
            Quick::Shared(target) => depth > 0 && target.accepts_within(value, depth - 1, budget),
            Quick::Again(target) => {
                depth > 0 && target.upgrade().is_some_and(|target| target.accepts_within(value, depth - 1, budget))
            }
        }
    }
}

impl Scalar {
    fn equals<S: Subject>(&self, kind: Kind, value: &S) -> bool {
        match self {
            Scalar::Null => kind == Kind::Null,
            Scalar::Bool(expected) => kind == Kind::Bool && value.is_true() == *expected,
            Scalar::Int(expected) => kind == Kind::Int && value.integer() == Integer::Small(*expected),
            #[allow(clippy::float_cmp)] // Equality of what was written is what is asked for.
            Scalar::Float(expected) => kind == Kind::Float && value.float().is_some_and(|value| value == *expected),
            Scalar::Text(expected) => kind == Kind::String && value.text().is_some_and(|text| *text == **expected),
        }
    }

    /// The kind of the scalar.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Scalar::Null => Kind::Null,
            Scalar::Bool(_) => Kind::Bool,
            Scalar::Int(_) => Kind::Int,
            Scalar::Float(_) => Kind::Float,
            Scalar::Text(_) => Kind::String,
        }
    }
}

impl Limits {
    fn accepts<S: Subject>(&self, value: &S) -> bool {
        let kind = value.kind();
        self.kinds.has(kind)
            && match kind {
                Kind::Int | Kind::Float => self.bounds.is_empty() || self.bounds.hold(kind, value),
                Kind::String => self.text.holds(|| value.length()),
                Kind::Array => self.items.holds(|| value.length()),
                Kind::Object => self.entries.holds(|| value.length()),
                Kind::Null | Kind::Bool => true,
                Kind::Other => false,
            }
    }
}

impl Items {
    /// Up to how many items are compared with one another, which is quicker than to make a set of a few.
    const COMPARED: usize = 32;

    fn accepts<S: Subject>(&self, value: &S, depth: u32, budget: &mut u32) -> bool {
        if value.kind() != Kind::Array || depth == 0 || !self.size.holds(|| value.length()) {
            return false;
        }
        let mut first = self.first.iter();
        value.every_item(|item| first.next().unwrap_or(&self.rest).accepts_within(item, depth - 1, budget))
            && (!self.unique || Items::are_unique(value))
    }

    fn are_unique<S: Subject>(value: &S) -> bool {
        if value.length() > Items::COMPARED {
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
            fresh && matches!(item.kind(), Kind::Int | Kind::String)
        })
    }
}

/// Whether two values are certainly not the same; knows integers and texts only.
fn certainly_differ<S: Subject>(one: &S, other: &S) -> bool {
    match (one.kind(), other.kind()) {
        (Kind::Int, Kind::Int) => match (one.integer(), other.integer()) {
            (Integer::Small(one), Integer::Small(other)) => one != other,
            _ => false,
        },
        (Kind::String, Kind::String) => match (one.text(), other.text()) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        },
        (Kind::Int, Kind::String) | (Kind::String, Kind::Int) => true,
        _ => false,
    }
}

impl Fields {
    /// The field of a name. `hint` is where it is if the entries come in the order of the fields.
    #[inline]
    pub(super) fn find(&self, name: &str, hint: usize) -> Option<usize> {
        if self.named.get(hint).is_some_and(|field| *field.name == *name) {
            return Some(hint);
        }
        let at = self.order.binary_search_by(|index| (*self.named[*index as usize].name).cmp(name));
        at.ok().map(|at| self.order[at] as usize)
    }

    fn accepts<S: Subject>(&self, value: &S, depth: u32, budget: &mut u32) -> bool {
        if value.kind() != Kind::Object || depth == 0 || !self.size.holds(|| value.length()) {
            return false;
        }
        let (mut hint, mut present) = (0, 0);
        let fit = value.every_entry(|key, entry| {
            let Some(key) = key else { return false };
            let quick = match self.find(key, hint) {
                Some(index) => {
                    let field = &self.named[index];
                    hint = index + 1;
                    present += usize::from(field.required);
                    &field.quick
                }
                None => &self.rest,
            };
            quick.accepts_within(entry, depth - 1, budget)
        });
        fit && present == self.required
    }
}
