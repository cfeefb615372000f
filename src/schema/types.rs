//! The types that a parameter can have, independent of any programming language, and the limits on them.

use crate::json::{Entries, Node};

/// The type of a parameter, or of a part of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Any value.
    Any,
    /// Only `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A number, or its exact text.
    Decimal,
    /// A number, or its text as a fraction.
    Fraction,
    /// Text.
    Text,
    /// Text in a named format.
    Formatted(StringFormat),
    /// Bytes, written as text.
    Bytes,
    /// One of the listed values.
    Literal(Vec<Node>),
    /// One of the values of a named enumeration.
    Enumeration {
        /// The values, in the order of their definition.
        values: Vec<Node>,
        /// The description of the enumeration.
        description: Option<String>,
    },
    /// Any number of values of one type.
    Array {
        /// The type of the values.
        items: Box<Type>,
        /// The kind of collection.
        kind: ArrayKind,
    },
    /// A fixed number of values, each with its own type.
    Tuple(Vec<Type>),
    /// Values by key.
    Map {
        /// The type of the keys.
        keys: Box<Type>,
        /// The type of the values.
        values: Box<Type>,
        /// True if a limit on its length counts its entries.
        countable: bool,
    },
    /// One of several types.
    Union(Vec<Type>),
    /// The type, or `null`.
    Nullable(Box<Type>),
    /// An object with named fields.
    Record(RecordType),
    /// An array whose positions have names.
    Row(Vec<Field>),
    /// A definition, by its place in the [`Definitions`](super::build::Definitions).
    Reference(usize),
    /// A definition that is written anew at each use, so that nothing depends on it: an enumeration inside another type.
    Repeated(usize),
    /// A type with limits that JSON Schema has keywords for.
    Limited {
        /// The type that is limited.
        inner: Box<Type>,
        /// The keywords and their values.
        limits: Entries,
    },
    /// A type checked by a further step, with the keys that describe the step.
    Keyed {
        /// The type underneath.
        inner: Box<Type>,
        /// The keys and their values.
        keys: Entries,
    },
    /// A type with annotations such as a description.
    Noted {
        /// The type underneath.
        inner: Box<Type>,
        /// The annotations.
        notes: Entries,
    },
    /// A type followed by a step that is not in the schema but hides the type from later limits.
    Stepped(Box<Type>),
    /// A definition that is kept even if nothing else refers to it.
    Kept(Box<Type>),
    /// A schema from elsewhere, with the definitions it refers to.
    Raw {
        /// The schema.
        schema: Entries,
        /// Its `$defs`.
        definitions: Entries,
    },
    /// A type that JSON Schema cannot express.
    Unsupported(Refusal),
}

/// The reason why a type has no schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The type, as its language writes it.
    pub annotation: String,
    /// The reason, and what to do about it.
    pub reason: String,
    /// True if the annotation is wrong, false if it is only a union member that JSON cannot express.
    pub mistake: bool,
}

/// The formats of strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringFormat {
    /// No `format` keyword: complex numbers.
    Plain,
    /// A calendar date.
    Date,
    /// A time of day.
    Time,
    /// A date and a time.
    DateTime,
    /// A span of time.
    Duration,
    /// Any other format, by name.
    Named(&'static str),
}

impl StringFormat {
    /// The value of the keyword `format`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Date => Some("date"),
            Self::Time => Some("time"),
            Self::DateTime => Some("date-time"),
            Self::Duration => Some("duration"),
            Self::Named(name) => Some(name),
        }
    }
}

/// The collections that JSON writes as an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayKind {
    /// An ordered collection.
    List,
    /// Any ordered collection, which keeps its own class.
    Sequence,
    /// A collection without duplicates.
    Set,
    /// Another collection, such as a queue or a stream.
    Other,
}

/// An object with named fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RecordType {
    /// The fields, in the order of their definition.
    pub fields: Vec<Field>,
    /// The description of the record.
    pub description: Option<String>,
    /// The rule for other fields.
    pub others: ExtraFields,
    /// True if it should no longer be used.
    pub deprecated: bool,
}

/// The rule for fields that a record does not name.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ExtraFields {
    /// Not stated.
    #[default]
    Unstated,
    /// They are not allowed.
    Forbidden,
    /// They have this type.
    Typed(Box<Type>),
}

/// A parameter of a tool, a field of a record, or a position of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its title, where titles are kept.
    pub title: Option<String>,
    /// Its type.
    pub accepts: Type,
    /// The rule for leaving it out.
    pub presence: Presence,
    /// Keys such as `description` that override those of the type.
    pub notes: Entries,
}

impl Field {
    /// A required field without notes.
    #[must_use]
    pub fn required(name: impl Into<String>, accepts: Type) -> Self {
        Self { name: name.into(), title: None, accepts, presence: Presence::Required, notes: Entries::new() }
    }
}

/// The rule for leaving a field out, and its default.
#[derive(Debug, Clone, PartialEq)]
pub enum Presence {
    /// It must be present.
    Required,
    /// It may be left out; its default is not JSON, or not shown.
    Optional,
    /// It may be left out and has this default.
    Default(Node),
}

impl Type {
    /// The `type` keyword of a type that is a plain JSON scalar.
    pub(super) fn plain_kind(&self) -> Option<&'static str> {
        Some(match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Text => "string",
            _ => return None,
        })
    }

    /// True if a JSON value of this type is what the annotation means, so that nothing has to be built from it.
    #[must_use]
    pub fn is_json_value(&self) -> bool {
        match self {
            Self::Any | Self::Null | Self::Boolean | Self::Integer | Self::Text => true,
            Self::Array { items, kind: ArrayKind::List | ArrayKind::Sequence } => items.is_json_value(),
            Self::Nullable(inner) | Self::Limited { inner, .. } | Self::Noted { inner, .. } => inner.is_json_value(),
            Self::Union(members) => members.iter().all(Self::is_json_value),
            _ => false,
        }
    }

    /// Adds the annotations that its schema can have.
    #[must_use]
    pub fn with_notes(self, mut notes: Entries) -> Self {
        notes.retain(|key, _| self.shows_note(key));
        if notes.is_empty() { self } else { Self::Noted { inner: Box::new(self), notes } }
    }

    /// True if its schema can have an annotation under `key`. The schema of a parameter or a field can have any.
    pub(super) fn shows_note(&self, key: &str) -> bool {
        match self {
            Self::Formatted(StringFormat::Named("path")) => key != "format",
            Self::Formatted(StringFormat::Named(name)) => *name == "uuid",
            _ => true,
        }
    }

    /// This type as a field or with annotations, where every definition is referred to.
    #[must_use]
    pub fn referred(self) -> Self {
        match self {
            Self::Repeated(index) => Self::Reference(index),
            other => other,
        }
    }

    /// True if this is a definition apart from `null` and keys, so that it has a title of its own.
    #[must_use]
    pub fn is_named(&self) -> bool {
        match self {
            Self::Reference(_) | Self::Repeated(_) => true,
            Self::Nullable(inner) | Self::Kept(inner) | Self::Keyed { inner, .. } | Self::Noted { inner, .. } => {
                inner.is_named()
            }
            _ => false,
        }
    }
}

/// The meaning of a class of Python's standard library in an annotation.
///
/// Classes are found by name, so that `decimal`, `uuid` and the like are never imported for a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum StdlibType {
    /// A type that takes no arguments.
    Plain(Type),
    /// An array of its only argument.
    Array(ArrayKind),
    /// A tuple of its arguments.
    Tuple,
    /// A map from its first argument to its second.
    Map {
        /// True if a limit on its length counts its entries.
        countable: bool,
    },
    /// A map from its only argument to a count.
    Counter,
    /// A class as a value.
    Class,
}

impl StdlibType {
    /// Returns the type of the class `name` in `module`.
    #[must_use]
    pub fn by_name(module: &str, name: &str) -> Option<Self> {
        let plain = match (module, name) {
            ("builtins", "list") | ("collections.abc", "MutableSequence") => return Some(Self::Array(ArrayKind::List)),
            ("builtins", "set" | "frozenset") | ("collections.abc", "Set" | "MutableSet") => {
                return Some(Self::Array(ArrayKind::Set));
            }
            ("collections.abc", "Sequence") => return Some(Self::Array(ArrayKind::Sequence)),
            ("collections", "deque") | ("collections.abc", "Iterable" | "Generator") => {
                return Some(Self::Array(ArrayKind::Other));
            }
            ("builtins", "tuple") => return Some(Self::Tuple),
            ("builtins", "dict")
            | ("collections", "OrderedDict")
            | ("collections.abc", "Mapping" | "MutableMapping") => {
                return Some(Self::Map { countable: true });
            }
            ("collections", "defaultdict") => return Some(Self::Map { countable: false }),
            ("collections", "Counter") => return Some(Self::Counter),
            ("builtins", "type") => return Some(Self::Class),
            ("builtins", "object") | ("typing" | "typing_extensions", "Any") | ("collections.abc", "Hashable") => {
                Type::Any
            }
            ("builtins", "NoneType") => Type::Null,
            ("builtins", "bool") => Type::Boolean,
            ("builtins", "int") => Type::Integer,
            ("builtins", "float") => Type::Number,
            ("builtins", "str") => Type::Text,
            ("builtins", "bytes") => Type::Bytes,
            ("decimal", "Decimal") => Type::Decimal,
            ("fractions", "Fraction") => Type::Fraction,
            _ => Type::Formatted(stdlib_format(module, name)?),
        };
        Some(Self::Plain(plain))
    }
}

/// The format of the text that a value of a standard library class is written as.
fn stdlib_format(module: &str, name: &str) -> Option<StringFormat> {
    Some(match (module, name) {
        ("builtins", "complex") => StringFormat::Plain,
        ("datetime", "datetime") => StringFormat::DateTime,
        ("datetime", "date") => StringFormat::Date,
        ("datetime", "time") => StringFormat::Time,
        ("datetime", "timedelta") => StringFormat::Duration,
        ("uuid", "UUID") => StringFormat::Named("uuid"),
        ("re", "Pattern") => StringFormat::Named("regex"),
        ("zoneinfo", "ZoneInfo") => StringFormat::Named("zoneinfo"),
        ("os", "PathLike")
        | (
            "pathlib" | "pathlib._local",
            "Path" | "PurePath" | "PosixPath" | "WindowsPath" | "PurePosixPath" | "PureWindowsPath",
        ) => StringFormat::Named("path"),
        ("ipaddress", "IPv4Address") => StringFormat::Named("ipv4"),
        ("ipaddress", "IPv4Interface") => StringFormat::Named("ipv4interface"),
        ("ipaddress", "IPv4Network") => StringFormat::Named("ipv4network"),
        ("ipaddress", "IPv6Address") => StringFormat::Named("ipv6"),
        ("ipaddress", "IPv6Interface") => StringFormat::Named("ipv6interface"),
        ("ipaddress", "IPv6Network") => StringFormat::Named("ipv6network"),
        _ => return None,
    })
}

/// A limit on the values of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Greater than.
    Above,
    /// Greater than or equal to.
    AtLeast,
    /// Less than.
    Below,
    /// Less than or equal to.
    AtMost,
    /// Divisible by.
    MultipleOf,
    /// At least this long.
    MinLength,
    /// At most this long.
    MaxLength,
    /// Matching a regular expression.
    Pattern,
}

impl Limit {
    /// Finds a limit by its name in annotations.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "gt" => Self::Above,
            "ge" => Self::AtLeast,
            "lt" => Self::Below,
            "le" => Self::AtMost,
            "multiple_of" => Self::MultipleOf,
            "min_length" => Self::MinLength,
            "max_length" => Self::MaxLength,
            "pattern" => Self::Pattern,
            _ => return None,
        })
    }

    fn is_length(self) -> bool {
        matches!(self, Self::MinLength | Self::MaxLength)
    }

    fn is_order(self) -> bool {
        matches!(self, Self::Above | Self::AtLeast | Self::Below | Self::AtMost)
    }

    /// The JSON Schema keyword for this limit on a value counted in `unit`.
    fn keyword(self, unit: Unit) -> &'static str {
        match (self, unit) {
            (Self::Above, _) => "exclusiveMinimum",
            (Self::AtLeast, _) => "minimum",
            (Self::Below, _) => "exclusiveMaximum",
            (Self::AtMost, _) => "maximum",
            (Self::MultipleOf, _) => "multipleOf",
            (Self::Pattern, _) => "pattern",
            (Self::MinLength, Unit::Characters) => "minLength",
            (Self::MaxLength, Unit::Characters) => "maxLength",
            (Self::MinLength, Unit::Items) => "minItems",
            (Self::MaxLength, Unit::Items) => "maxItems",
            (Self::MinLength, Unit::Entries) => "minProperties",
            (Self::MaxLength, Unit::Entries) => "maxProperties",
        }
    }

    /// The key under which this limit is shown on a type it does not fit, so that a reader still sees it.
    fn loose_key(self, innermost: &Type) -> &'static str {
        match self {
            Self::Above => "gt",
            Self::AtLeast => "ge",
            Self::Below => "lt",
            Self::AtMost => "le",
            Self::MultipleOf => "multiple_of",
            Self::Pattern => "pattern",
            Self::MinLength | Self::MaxLength => match innermost {
                Type::Array { kind: ArrayKind::List | ArrayKind::Sequence, .. } => self.keyword(Unit::Items),
                _ => self.keyword(Unit::Characters),
            },
        }
    }
}

/// The unit in which the length of a value is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Characters,
    Items,
    Entries,
}

/// The effect of a limit on a type.
enum LimitFit {
    /// The type has a keyword for it.
    Keyword(&'static str),
    /// It applies to the type but has no keyword.
    Silent,
    /// It does not apply to the type.
    Loose,
}

impl Type {
    /// Adds a limit to this type, as a keyword where there is one.
    ///
    /// A limit on a nullable type applies to the type inside.
    #[must_use]
    pub fn limit(self, limit: Limit, value: Node) -> Self {
        match self {
            Self::Nullable(inner) => Self::Nullable(Box::new(inner.limit(limit, value))),
            Self::Noted { inner, notes } => Self::Noted { inner: Box::new(inner.limit(limit, value)), notes },
            Self::Unsupported(_) => self,
            other => match other.fit(limit) {
                LimitFit::Keyword(keyword) => other.with_keyword(keyword, value),
                LimitFit::Silent => other,
                LimitFit::Loose if limit == Limit::Pattern => Self::Stepped(Box::new(other)),
                LimitFit::Loose => {
                    let key = limit.loose_key(other.innermost());
                    let mut keys = Entries::new();
                    keys.insert(key, value);
                    Self::Keyed { inner: Box::new(other), keys }
                }
            },
        }
    }

    fn with_keyword(self, keyword: &'static str, value: Node) -> Self {
        let (inner, mut limits) = match self {
            Self::Limited { inner, limits } => (inner, limits),
            other => (Box::new(other), Entries::new()),
        };
        limits.insert(keyword, value);
        Self::Limited { inner, limits }
    }

    fn fit(&self, limit: Limit) -> LimitFit {
        let numeric = limit.is_order() || limit == Limit::MultipleOf;
        match self {
            Self::Limited { inner, .. } => inner.fit(limit),
            Self::Fraction if limit == Limit::MultipleOf => LimitFit::Silent,
            Self::Integer | Self::Number | Self::Decimal | Self::Fraction if numeric => {
                LimitFit::Keyword(limit.keyword(Unit::Items))
            }
            Self::Text if limit.is_length() || limit == Limit::Pattern => {
                LimitFit::Keyword(limit.keyword(Unit::Characters))
            }
            Self::Bytes if limit.is_length() => LimitFit::Keyword(limit.keyword(Unit::Characters)),
            Self::Array { .. } | Self::Tuple(_) if limit.is_length() => LimitFit::Keyword(limit.keyword(Unit::Items)),
            Self::Map { countable: true, .. } if limit.is_length() => LimitFit::Keyword(limit.keyword(Unit::Entries)),
            Self::Formatted(StringFormat::Date | StringFormat::Time | StringFormat::DateTime) if limit.is_order() => {
                LimitFit::Silent
            }
            Self::Formatted(StringFormat::Duration) if numeric => LimitFit::Silent,
            _ => LimitFit::Loose,
        }
    }

    /// The type below all keys and limits.
    fn innermost(&self) -> &Self {
        match self {
            Self::Keyed { inner, .. } | Self::Limited { inner, .. } | Self::Noted { inner, .. } => inner.innermost(),
            other => other,
        }
    }

    /// Adds a further check of the values that the schema does not show.
    #[must_use]
    pub fn checked(self) -> Self {
        match self {
            Self::Nullable(inner) => Self::Nullable(Box::new(inner.checked())),
            Self::Noted { inner, notes } => Self::Noted { inner: Box::new(inner.checked()), notes },
            other => Self::Keyed { inner: Box::new(other), keys: Entries::new() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list_of_integers() -> Type {
        Type::Array { items: Box::new(Type::Integer), kind: ArrayKind::List }
    }

    #[test]
    fn a_limit_on_a_nullable_type_goes_inside() {
        let limited = Type::Nullable(Box::new(Type::Integer)).limit(Limit::AtLeast, json!(1).into());

        assert_eq!(limited, Type::Nullable(Box::new(Type::Integer.limit(Limit::AtLeast, json!(1).into()))));
    }

    #[test]
    fn a_limit_that_does_not_fit_stays_visible() {
        let limited =
            list_of_integers().limit(Limit::AtLeast, json!(1).into()).limit(Limit::MinLength, json!(2).into());

        let Type::Keyed { inner, keys } = limited else { panic!("{limited:?}") };
        assert_eq!(keys.keys().collect::<Vec<_>>(), ["minItems"]);
        assert!(matches!(*inner, Type::Keyed { .. }));
    }

    #[test]
    fn the_last_of_two_equal_limits_counts() {
        let limited = Type::Text.limit(Limit::MinLength, json!(1).into()).limit(Limit::MinLength, json!(2).into());

        let Type::Limited { limits, .. } = limited else { panic!("{limited:?}") };
        assert_eq!(limits.get("minLength"), Some(&Node::from(2)));
    }

    #[test]
    fn an_order_on_a_date_is_not_shown() {
        let date = Type::Formatted(StringFormat::Date);

        assert_eq!(date.clone().limit(Limit::AtLeast, json!("2020-01-01").into()), date);
    }
}
