//! The types of the standard library that have a schema, found by where they were defined.

use crate::schema::{ArrayKind, StringFormat, Type};

/// What a class of the standard library stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// A type without arguments.
    Scalar(Scalar),
    /// An array of its one argument.
    Array(ArrayKind),
    /// A tuple of its arguments.
    Tuple,
    /// A map from its first argument to its second.
    Map { countable: bool },
    /// A map from its one argument to how often it occurs.
    Counter,
    /// Text in a format, whatever its argument.
    Formatted(&'static str),
    /// A class, as a value.
    Class,
}

/// Types that are the same wherever they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Any,
    Null,
    Boolean,
    Integer,
    Number,
    Decimal,
    Fraction,
    Text,
    Bytes,
    Formatted(StringFormat),
}

impl Scalar {
    pub(super) fn to_type(self) -> Type {
        match self {
            Self::Any => Type::Any,
            Self::Null => Type::Null,
            Self::Boolean => Type::Boolean,
            Self::Integer => Type::Integer,
            Self::Number => Type::Number,
            Self::Decimal => Type::Decimal,
            Self::Fraction => Type::Fraction,
            Self::Text => Type::Text,
            Self::Bytes => Type::Bytes,
            Self::Formatted(format) => Type::Formatted(format),
        }
    }
}

impl Known {
    /// Finds what the class `name` of `module` stands for.
    ///
    /// By name, so that `decimal`, `uuid` and the like are never imported for the sake of a comparison.
    pub(super) fn named(module: &str, name: &str) -> Option<Self> {
        match module {
            "builtins" => builtin(name),
            "typing" | "typing_extensions" if name == "Any" => Some(Self::Scalar(Scalar::Any)),
            "collections" => collection(name),
            "collections.abc" => abstract_collection(name),
            "datetime" => Some(Self::Scalar(Scalar::Formatted(match name {
                "datetime" => StringFormat::DateTime,
                "date" => StringFormat::Date,
                "time" => StringFormat::Time,
                "timedelta" => StringFormat::Duration,
                _ => return None,
            }))),
            "decimal" if name == "Decimal" => Some(Self::Scalar(Scalar::Decimal)),
            "fractions" if name == "Fraction" => Some(Self::Scalar(Scalar::Fraction)),
            "uuid" if name == "UUID" => Some(Self::Formatted("uuid")),
            "re" if name == "Pattern" => Some(Self::Formatted("regex")),
            "zoneinfo" if name == "ZoneInfo" => Some(Self::Formatted("zoneinfo")),
            "os" if name == "PathLike" => Some(Self::Formatted("path")),
            "pathlib" | "pathlib._local" => path(name),
            "ipaddress" => address(name),
            _ => None,
        }
    }
}

fn builtin(name: &str) -> Option<Known> {
    Some(match name {
        "str" => Known::Scalar(Scalar::Text),
        "int" => Known::Scalar(Scalar::Integer),
        "float" => Known::Scalar(Scalar::Number),
        "bool" => Known::Scalar(Scalar::Boolean),
        "NoneType" => Known::Scalar(Scalar::Null),
        "object" => Known::Scalar(Scalar::Any),
        "bytes" => Known::Scalar(Scalar::Bytes),
        "complex" => Known::Scalar(Scalar::Formatted(StringFormat::Plain)),
        "list" => Known::Array(ArrayKind::List),
        "set" | "frozenset" => Known::Array(ArrayKind::Set),
        "tuple" => Known::Tuple,
        "dict" => Known::Map { countable: true },
        "type" => Known::Class,
        _ => return None,
    })
}

fn collection(name: &str) -> Option<Known> {
    Some(match name {
        "deque" => Known::Array(ArrayKind::Other),
        "OrderedDict" => Known::Map { countable: true },
        "defaultdict" => Known::Map { countable: false },
        "Counter" => Known::Counter,
        _ => return None,
    })
}

fn abstract_collection(name: &str) -> Option<Known> {
    Some(match name {
        "Sequence" => Known::Array(ArrayKind::Sequence),
        "MutableSequence" => Known::Array(ArrayKind::List),
        "Set" | "MutableSet" => Known::Array(ArrayKind::Set),
        "Iterable" | "Generator" => Known::Array(ArrayKind::Other),
        "Mapping" | "MutableMapping" => Known::Map { countable: true },
        "Hashable" => Known::Scalar(Scalar::Any),
        _ => return None,
    })
}

fn path(name: &str) -> Option<Known> {
    match name {
        "Path" | "PurePath" | "PosixPath" | "WindowsPath" | "PurePosixPath" | "PureWindowsPath" => {
            Some(Known::Formatted("path"))
        }
        _ => None,
    }
}

fn address(name: &str) -> Option<Known> {
    Some(Known::Formatted(match name {
        "IPv4Address" => "ipv4",
        "IPv4Interface" => "ipv4interface",
        "IPv4Network" => "ipv4network",
        "IPv6Address" => "ipv6",
        "IPv6Interface" => "ipv6interface",
        "IPv6Network" => "ipv6network",
        _ => return None,
    }))
}
