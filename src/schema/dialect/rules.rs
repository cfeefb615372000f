//! What a narrow dialect has words for.

use serde_json::Value;

/// The rules of a narrow dialect.
#[allow(clippy::struct_excessive_bools, reason = "each is one rule of a provider, independent of the others")]
pub(crate) struct Rules {
    /// Parts may be defined once and referred to, also by themselves.
    pub(crate) has_references: bool,
    /// Every field must be sent, and no others; what may be left out is `null` instead.
    pub(crate) requires_all: bool,
    /// `null` is a type; else it is said by `nullable`.
    pub(crate) has_null: bool,
    /// An `enum` is of texts that are not empty.
    pub(crate) lists_texts_only: bool,
    /// Nothing may stand beside `anyOf`.
    pub(crate) isolates_unions: bool,
    /// An object may be without properties also below the root.
    pub(crate) has_empty_objects: bool,
    /// How deep objects and arrays may be nested.
    pub(crate) depth: usize,
    /// How many properties there may be in all.
    pub(crate) properties: usize,
    /// How many values all enumerations may have together.
    pub(crate) listed: usize,
    /// How long all names and listed values may be together.
    pub(crate) characters: usize,
    /// Whether a property may have this name.
    pub(crate) is_name: fn(&str) -> bool,
    /// Whether a keyword may be said of a type.
    pub(crate) keeps: fn(kind: &str, keyword: &str, value: &Value) -> bool,
}

/// An enumeration of texts of more values than this may not be long.
pub(super) const MANY_LISTED: usize = 250;
/// How long such an enumeration may be, in bytes.
pub(super) const LONGEST_LISTED: usize = 15_000;
