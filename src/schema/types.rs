//! The types a parameter can have, free of any language.

use super::tree::{Entries, Node};

/// What a parameter, or a part of it, accepts.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// Anything at all.
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
    Formatted(Format),
    /// Bytes, written as text.
    Bytes,
    /// One of the listed values.
    Literal(Vec<Node>),
    /// One of the values of a named enumeration.
    Enumeration {
        /// The values, in the order of their definition.
        values: Vec<Node>,
        /// What the enumeration says about itself.
        description: Option<String>,
    },
    /// Any number of values of one type.
    Array {
        /// The type of the values.
        items: Box<Type>,
        /// Which kind of collection stands behind it.
        kind: ArrayKind,
    },
    /// A fixed number of values, each with its own type.
    Tuple(Vec<Type>),
    /// Values found by key.
    Map {
        /// The type of the keys.
        keys: Box<Type>,
        /// The type of the values.
        values: Box<Type>,
        /// Whether a limit on its length counts its entries.
        countable: bool,
    },
    /// One of several types.
    Union(Vec<Type>),
    /// The type, or `null`.
    Nullable(Box<Type>),
    /// An object with named fields.
    Record(Record),
    /// An array whose places have names.
    Row(Vec<Field>),
    /// A definition, by its place in the [`Definitions`](super::build::Definitions).
    Reference(usize),
    /// A definition that is told again wherever it stands, so that nobody waits for it: an enumeration inside another type.
    Repeated(usize),
    /// A type with limits that are keywords of JSON Schema.
    Limited {
        /// The type that is limited.
        inner: Box<Type>,
        /// The keywords and their values.
        limits: Entries,
    },
    /// A type checked by a further step, with the keys that tell of it.
    Keyed {
        /// The type underneath.
        inner: Box<Type>,
        /// The keys and their values.
        keys: Entries,
    },
    /// A type with a description and the like.
    Noted {
        /// The type underneath.
        inner: Box<Type>,
        /// The notes by their keys.
        notes: Entries,
    },
    /// A type followed by a step that shows nothing of itself but hides what is underneath from later limits.
    Stepped(Box<Type>),
    /// A definition that stays one of its own even if nothing else refers to it.
    Kept(Box<Type>),
    /// A schema somebody else wrote, with the definitions it refers to.
    Raw {
        /// The schema.
        schema: Entries,
        /// Its `$defs`.
        definitions: Entries,
    },
    /// A type that JSON has no word for.
    Unsupported(Refusal),
}

/// Why something has no schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The type, as its language shows it.
    pub annotation: String,
    /// Why it has none, and what to do about it.
    pub reason: String,
    /// Whether it is a mistake, and not just a choice of a union that JSON cannot make.
    pub mistake: bool,
}

/// The formats that text can be asked for in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// No format of its own: complex numbers.
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

impl Format {
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
    /// Any ordered collection, which keeps its own kind.
    Sequence,
    /// A collection without repetition.
    Set,
    /// Another collection, such as a queue or a stream.
    Other,
}

/// An object with named fields.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Record {
    /// The fields, in the order of their definition.
    pub fields: Vec<Field>,
    /// What the record says about itself.
    pub description: Option<String>,
    /// Which other fields it may have.
    pub others: Others,
    /// Whether it should no longer be used.
    pub deprecated: bool,
}

/// The fields of a record that are not named in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Others {
    /// Nothing is said about them.
    #[default]
    Unsaid,
    /// There must be none.
    Forbidden,
    /// They have this type.
    Typed(Box<Type>),
}

/// A parameter of a tool, a field of a record, or a place of a row.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its title, where titles are kept.
    pub title: Option<String>,
    /// What it accepts.
    pub accepts: Type,
    /// Whether it may be left out.
    pub presence: Presence,
    /// Keys such as `description` that are written over the type's own.
    pub notes: Entries,
}

impl Field {
    /// A required field without notes.
    #[must_use]
    pub fn required(name: impl Into<String>, accepts: Type) -> Self {
        Self { name: name.into(), title: None, accepts, presence: Presence::Required, notes: Entries::new() }
    }
}

/// Whether a field may be left out, and what it is then.
#[derive(Debug, Clone, PartialEq)]
pub enum Presence {
    /// It must be there.
    Required,
    /// It may be left out; what it is then cannot be written in JSON, or is not told.
    Optional,
    /// It may be left out, and is then this value.
    Default(Node),
}

impl Type {
    /// The word for a type that is nothing but one of JSON's own scalars.
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

    /// Writes `notes` over this type, unless it is one whose schema is fixed.
    #[must_use]
    pub fn with_notes(self, notes: Entries) -> Self {
        if self.is_fixed() || notes.is_empty() { self } else { Self::Noted { inner: Box::new(self), notes } }
    }

    /// Whether nothing can be written over its schema, but where it is a parameter or a field.
    pub(super) fn is_fixed(&self) -> bool {
        matches!(self, Self::Formatted(Format::Named(name)) if !matches!(*name, "path" | "uuid"))
    }

    /// What this is as a field or beside notes, where every definition is referred to.
    #[must_use]
    pub fn referred(self) -> Self {
        match self {
            Self::Repeated(index) => Self::Reference(index),
            other => other,
        }
    }

    /// Whether this is a definition once `null` and keys are taken away, so that it has a title of its own.
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
fn stdlib_format(module: &str, name: &str) -> Option<Format> {
    Some(match (module, name) {
        ("builtins", "complex") => Format::Plain,
        ("datetime", "datetime") => Format::DateTime,
        ("datetime", "date") => Format::Date,
        ("datetime", "time") => Format::Time,
        ("datetime", "timedelta") => Format::Duration,
        ("uuid", "UUID") => Format::Named("uuid"),
        ("re", "Pattern") => Format::Named("regex"),
        ("zoneinfo", "ZoneInfo") => Format::Named("zoneinfo"),
        ("os", "PathLike")
        | (
            "pathlib" | "pathlib._local",
            "Path" | "PurePath" | "PosixPath" | "WindowsPath" | "PurePosixPath" | "PureWindowsPath",
        ) => Format::Named("path"),
        ("ipaddress", "IPv4Address") => Format::Named("ipv4"),
        ("ipaddress", "IPv4Interface") => Format::Named("ipv4interface"),
        ("ipaddress", "IPv4Network") => Format::Named("ipv4network"),
        ("ipaddress", "IPv6Address") => Format::Named("ipv6"),
        ("ipaddress", "IPv6Interface") => Format::Named("ipv6interface"),
        ("ipaddress", "IPv6Network") => Format::Named("ipv6network"),
        _ => return None,
    })
}
