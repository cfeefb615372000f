//! Limits on types: which keyword tells of a limit, and what becomes of one that does not fit.

use super::tree::{Entries, Node};

use super::types::{ArrayKind, Format, Type};

/// The limits that can be put on a type.
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
    /// Finds the limit that annotations know under `name`.
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

    /// The keyword of JSON Schema for this limit on a value counted in `unit`.
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

    /// The key this limit is shown under on a type it does not fit, so that a reader still sees it.
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

/// What the length of a value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Characters,
    Items,
    Entries,
}

/// How a limit meets a type.
enum Fit {
    /// It is a keyword of the type.
    Keyword(&'static str),
    /// It is meant for the type but has no keyword.
    Silent,
    /// It is not meant for the type.
    Loose,
}

impl Type {
    /// Puts a limit on this type, as a keyword where there is one.
    ///
    /// A limit on a nullable type is one on what it can be besides `null`.
    #[must_use]
    pub fn limit(self, limit: Limit, value: Node) -> Self {
        match self {
            Self::Nullable(inner) => Self::Nullable(Box::new(inner.limit(limit, value))),
            Self::Noted { inner, notes } => Self::Noted { inner: Box::new(inner.limit(limit, value)), notes },
            Self::Unsupported(_) => self,
            other => match other.fit(limit) {
                Fit::Keyword(keyword) => other.with_keyword(keyword, value),
                Fit::Silent => other,
                Fit::Loose if limit == Limit::Pattern => Self::Stepped(Box::new(other)),
                Fit::Loose => {
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

    fn fit(&self, limit: Limit) -> Fit {
        let numeric = limit.is_order() || limit == Limit::MultipleOf;
        match self {
            Self::Limited { inner, .. } => inner.fit(limit),
            Self::Fraction if limit == Limit::MultipleOf => Fit::Silent,
            Self::Integer | Self::Number | Self::Decimal | Self::Fraction if numeric => {
                Fit::Keyword(limit.keyword(Unit::Items))
            }
            Self::Text if limit.is_length() || limit == Limit::Pattern => Fit::Keyword(limit.keyword(Unit::Characters)),
            Self::Bytes if limit.is_length() => Fit::Keyword(limit.keyword(Unit::Characters)),
            Self::Array { .. } | Self::Tuple(_) if limit.is_length() => Fit::Keyword(limit.keyword(Unit::Items)),
            Self::Map { countable: true, .. } if limit.is_length() => Fit::Keyword(limit.keyword(Unit::Entries)),
            Self::Formatted(Format::Date | Format::Time | Format::DateTime) if limit.is_order() => Fit::Silent,
            Self::Formatted(Format::Duration) if numeric => Fit::Silent,
            _ => Fit::Loose,
        }
    }

    /// The type below all keys and limits.
    fn innermost(&self) -> &Self {
        match self {
            Self::Keyed { inner, .. } | Self::Limited { inner, .. } | Self::Noted { inner, .. } => inner.innermost(),
            other => other,
        }
    }

    /// Lets a further step check the values of this type, of which the schema shows nothing.
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
    use serde_json::json;

    use super::*;

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
    fn a_date_takes_an_order_without_a_word() {
        let date = Type::Formatted(Format::Date);

        assert_eq!(date.clone().limit(Limit::AtLeast, json!("2020-01-01").into()), date);
    }
}
