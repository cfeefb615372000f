//! What a narrow dialect has words for.

use serde_json::Value;

/// The rules of a narrow dialect.
#[allow(clippy::struct_excessive_bools, reason = "each is one rule of a provider, independent of the others")]
pub(super) struct Rules {
    /// Parts may be defined once and referred to, also by themselves.
    pub(super) has_references: bool,
    /// Every field must be sent, and no others; what may be left out is `null` instead.
    pub(super) requires_all: bool,
    /// `null` is a type; else it is said by `nullable`.
    pub(super) has_null: bool,
    /// An `enum` is of texts that are not empty.
    pub(super) lists_texts_only: bool,
    /// Nothing may stand beside `anyOf`.
    pub(super) isolates_unions: bool,
    /// An object may be without properties also below the root.
    pub(super) has_empty_objects: bool,
    /// How deep objects and arrays may be nested.
    pub(super) depth: usize,
    /// How many properties there may be in all.
    pub(super) properties: usize,
    /// How many values all enumerations may have together.
    pub(super) listed: usize,
    /// How long all names and listed values may be together.
    pub(super) characters: usize,
    /// Whether a property may have this name.
    pub(super) is_name: fn(&str) -> bool,
    /// Whether a keyword may be said of a type.
    pub(super) keeps: fn(kind: &str, keyword: &str, value: &Value) -> bool,
}

/// An enumeration of texts of more values than this may not be long.
pub(super) const MANY_LISTED: usize = 250;
/// How long such an enumeration may be, in bytes.
pub(super) const LONGEST_LISTED: usize = 15_000;
