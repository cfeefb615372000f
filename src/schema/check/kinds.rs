//! Sets of kinds, as `type` declares them.

use super::subject::Kind;

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// All that JSON has.
    pub const ALL: Kinds = Kinds(0x7f);
    /// None.
    pub const NONE: Kinds = Kinds(0);
    pub(super) const STRING: Kinds = Kinds::of(Kind::String);
    pub(super) const INTEGER: Kinds = Kinds::of(Kind::Int);
    pub(super) const NUMBER: Kinds = Kinds::of(Kind::Int).or(Kinds::of(Kind::Float));
    pub(super) const BOOLEAN: Kinds = Kinds::of(Kind::Bool);
    pub(super) const ARRAY: Kinds = Kinds::of(Kind::Array);
    pub(super) const OBJECT: Kinds = Kinds::of(Kind::Object);

    /// The kinds that a `type` names, `None` if it names none.
    #[must_use]
    pub fn named(name: &str) -> Option<Kinds> {
        Some(match name {
            "null" => Kinds::of(Kind::Null),
            "boolean" => Kinds::BOOLEAN,
            "integer" => Kinds::INTEGER,
            "number" => Kinds::NUMBER,
            "string" => Kinds::STRING,
            "array" => Kinds::ARRAY,
            "object" => Kinds::OBJECT,
            _ => return None,
        })
    }

    /// One kind alone.
    #[must_use]
    pub const fn of(kind: Kind) -> Kinds {
        Kinds(match kind {
            Kind::Null => 1,
            Kind::Bool => 2,
            Kind::Int => 4,
            Kind::Float => 8,
            Kind::String => 16,
            Kind::Array => 32,
            Kind::Object => 64,
            Kind::Other => 0,
        })
    }

    /// Both sets together.
    #[must_use]
    pub const fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// This set without the other.
    #[must_use]
    pub const fn without(self, other: Kinds) -> Kinds {
        Kinds(self.0 & !other.0)
    }

    /// Whether the kind is in the set.
    #[must_use]
    #[inline]
    pub const fn has(self, kind: Kind) -> bool {
        self.0 & Kinds::of(kind).0 != 0
    }

    /// Whether the sets have a kind in common.
    #[must_use]
    pub const fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}
