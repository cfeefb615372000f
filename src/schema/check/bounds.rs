//! Exact comparison of numbers with the bounds of a schema.

use serde_json::Number;

use super::value::{Integer, JsonLike, ValueKind, float_of, integer_of};
use crate::json::number::{Decimal, is_integer_text};
use crate::json::{Entries, Node};

/// Integers up to here have an `f64` of their own.
const EXACT: u64 = 1 << 53;
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// `minimum`, `maximum` and their exclusive forms.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Bounds {
    lower: Option<Bound>,
    upper: Option<Bound>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Bound {
    at: Point,
    open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Point {
    Int(i64),
    /// Not integral, therefore less than 2^53 away from zero; or outside of `i64`.
    Float(f64),
}

impl Bounds {
    /// Reads the bounds of a schema; `None` where they are beyond what is compared exactly here.
    pub(super) fn read(schema: &Entries) -> Option<Bounds> {
        Some(Bounds {
            lower: pair(schema, "minimum", "exclusiveMinimum")?,
            upper: pair(schema, "maximum", "exclusiveMaximum")?,
        })
    }

    /// True if there is no bound.
    pub(super) fn is_empty(&self) -> bool {
        self.lower.is_none() && self.upper.is_none()
    }

    /// True if a number is certainly within the bounds.
    #[inline]
    pub(super) fn hold<S: JsonLike>(&self, kind: ValueKind, value: &S) -> bool {
        if kind == ValueKind::Int {
            let value = value.integer();
            self.lower.is_none_or(|bound| integer_beyond(bound, value, 1))
                && self.upper.is_none_or(|bound| integer_beyond(bound, value, -1))
        } else {
            value.float().is_some_and(|value| {
                self.lower.is_none_or(|bound| float_beyond(bound, value, 1.0))
                    && self.upper.is_none_or(|bound| float_beyond(bound, value, -1.0))
            })
        }
    }
}

/// The inclusive and the exclusive bound of one side; both at once are left to the validator.
#[allow(clippy::option_option)]
fn pair(schema: &Entries, closed: &str, open: &str) -> Option<Option<Bound>> {
    match (schema.get(closed), schema.get(open)) {
        (None, None) => Some(None),
        (Some(Node::Number(number)), None) => Some(Some(Bound { at: point(number)?, open: false })),
        (None, Some(Node::Number(number))) => Some(Some(Bound { at: point(number)?, open: true })),
        _ => None,
    }
}

fn point(number: &Number) -> Option<Point> {
    if is_integer_text(number.as_str()) {
        return match integer_of(number) {
            Integer::Small(small) => Some(Point::Int(small)),
            Integer::Above | Integer::Below => None,
        };
    }
    let float = float_of(number)?;
    // What is written as `1.2345678901234567e18` is that decimal. The nearest `f64`, which stands for it elsewhere, is another integer.
    Some(match Decimal::of(number).as_i64() {
        Some(small) => Point::Int(small),
        None => Point::Float(float),
    })
}

/// True if an integer is on the allowed side of a bound; `side` is 1 above a lower bound, -1 below an upper one.
#[allow(clippy::cast_precision_loss)]
fn integer_beyond(bound: Bound, value: Integer, side: i8) -> bool {
    let value = match value {
        Integer::Small(value) => value,
        // Outside of i64, so outside of every bound that is an i64 or a fraction, but not of one such as 1e300.
        Integer::Above => return side > 0 && bound.at.is_near(),
        Integer::Below => return side < 0 && bound.at.is_near(),
    };
    let ordering = match bound.at {
        Point::Int(at) => value.cmp(&at),
        // Outside of i64, so its sign decides.
        Point::Float(at) if at.abs() >= TWO_TO_63 => 0.0_f64.total_cmp(&at),
        Point::Float(at) if value.unsigned_abs() <= EXACT => {
            return float_side(bound.open, value as f64, at, side > 0);
        }
        // A fraction lies within 2^53 and this integer does not, so the integer's sign decides.
        Point::Float(_) => value.cmp(&0),
    };
    if side > 0 {
        ordering.is_gt() || ordering.is_eq() && !bound.open
    } else {
        ordering.is_lt() || ordering.is_eq() && !bound.open
    }
}

#[allow(clippy::cast_precision_loss)]
fn float_beyond(bound: Bound, value: f64, side: f64) -> bool {
    match bound.at {
        Point::Int(at) if at.unsigned_abs() <= EXACT => float_side(bound.open, value, at as f64, side > 0.0),
        Point::Int(_) => false,
        Point::Float(at) => float_side(bound.open, value, at, side > 0.0),
    }
}

fn float_side(open: bool, value: f64, at: f64, above: bool) -> bool {
    match (above, open) {
        (true, false) => value >= at,
        (true, true) => value > at,
        (false, false) => value <= at,
        (false, true) => value < at,
    }
}

impl Point {
    fn is_near(self) -> bool {
        match self {
            Point::Int(_) => true,
            Point::Float(at) => at.abs() < TWO_TO_63,
        }
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn bounds(schema: Value) -> Bounds {
        Bounds::read(Node::from(schema).as_object().expect("an object")).expect("comparable bounds")
    }

    fn holds(bounds: &Bounds, text: &str) -> bool {
        let value: Value = serde_json::from_str(text).expect("JSON");
        bounds.hold(value.kind(), &value)
    }

    #[test]
    fn bounds_include_or_exclude_their_point() {
        let closed = bounds(json!({"minimum": 1, "maximum": 5}));
        let open = bounds(json!({"exclusiveMinimum": 1, "exclusiveMaximum": 5}));

        assert!(holds(&closed, "1") && holds(&closed, "5") && holds(&closed, "1.0"));
        assert!(!holds(&closed, "0") && !holds(&closed, "6") && !holds(&closed, "5.5"));
        assert!(!holds(&open, "1") && !holds(&open, "5") && holds(&open, "4.5"));
    }

    #[test]
    fn integers_beyond_i64_are_on_the_right_side() {
        let lower = bounds(json!({"minimum": 0.5}));
        let upper = bounds(json!({"maximum": 9_223_372_036_854_775_807_i64}));

        assert!(holds(&lower, "100000000000000000000"));
        assert!(!holds(&lower, "-100000000000000000000"));
        assert!(!holds(&upper, "9223372036854775808"));
        assert!(holds(&upper, "-9223372036854775809"));
    }

    #[test]
    fn integers_beyond_f64_are_not_rounded_against_a_fraction() {
        let bounds = bounds(json!({"maximum": 1.5}));

        assert!(!holds(&bounds, "9007199254740993"));
        assert!(holds(&bounds, "-9007199254740993"));
    }

    #[test]
    fn a_bound_is_the_decimal_that_is_written() {
        let upper = bounds(json!({"maximum": -9_223_372_036_854_775_808.0}));
        let lower = bounds(json!({"minimum": 1_234_567_890_123_456_789.0}));

        // The bounds are written -9.223372036854776e+18 and 1.2345678901234568e+18.
        assert!(!holds(&upper, "-9223372036854775808"));
        assert!(!holds(&lower, "1234567890123456799"));
        assert!(holds(&lower, "1234567890123456800"));
    }
}
