//! Exact decimal numbers, compared and written by their value: `1`, `1.0` and `10e-1` are one number.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// The number of zeros that are written out before the canonical text uses an exponent.
const ZEROS: i64 = 16;

/// The largest number of digits of a number that [`Decimal::to_value`] writes as a number.
const LONGEST: i64 = 1000;

/// True for the text of a number that has neither a fraction nor an exponent.
pub(crate) fn is_integer_text(text: &str) -> bool {
    !text.contains(['.', 'e', 'E'])
}

/// The parts of a number's text: D.DDD × 10^POWER.
pub(crate) struct Digits<'a> {
    pub(crate) is_negative: bool,
    /// The significant digits before the decimal point of the text, and those behind it.
    parts: [&'a str; 2],
    /// The power of ten of the first significant digit, clamped if it is outside of `i64`.
    pub(crate) power: i64,
    /// False if the power was clamped.
    pub(crate) is_exact: bool,
}

impl<'a> Digits<'a> {
    /// Takes the text of a JSON number apart.
    pub(crate) fn read(text: &'a str) -> Self {
        let (text, is_negative) = text.strip_prefix('-').map_or((text, false), |text| (text, true));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (mut whole, mut fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
        let mut first = signed(whole.len()) - 1;
        if whole.is_empty() {
            let significant = fraction.trim_start_matches('0');
            first -= signed(fraction.len() - significant.len());
            fraction = significant;
        } else if fraction.is_empty() {
            whole = whole.trim_end_matches('0');
        }
        let power = exponent.parse::<i64>().ok().and_then(|exponent| exponent.checked_add(first));
        let clamped = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        Self { is_negative, parts: [whole, fraction], power: power.unwrap_or(clamped), is_exact: power.is_some() }
    }

    /// The significant digits: they neither begin nor end with a zero; zero has none.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u8> {
        self.parts[0].bytes().chain(self.parts[1].bytes())
    }

    /// The number of significant digits.
    fn len(&self) -> usize {
        self.parts[0].len() + self.parts[1].len()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.len() == 0
    }
}

/// The JSON value of a number that is written as text, which is the same for every spelling of it; `None` for any other text. It is an
/// integer without a point or an exponent, or has the digits that it needs. A number of more than a thousand digits is a text with an
/// exponent.
#[must_use]
pub fn exact_number(text: &str) -> Option<Value> {
    Decimal::parse(text).map(|number| number.to_value())
}

/// An exact decimal number that can be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    /// The significant digits, as [`Digits::iter`] gives them.
    digits: Box<[u8]>,
    /// The power of ten of the first digit; a clamped one is as good as infinite.
    power: i64,
}

impl Decimal {
    pub(crate) fn of(number: &Number) -> Self {
        Self::read(number.as_str())
    }

    fn read(text: &str) -> Self {
        let digits = Digits::read(text);
        if digits.is_zero() {
            return Self { is_negative: false, digits: Box::default(), power: 0 };
        }
        Self { is_negative: digits.is_negative, digits: digits.iter().collect(), power: digits.power }
    }

    /// Parses a number that is written as text: digits, perhaps with a sign, a point, an exponent, and underscores between digits.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = text.trim().replace('_', "");
        let plain = plain.strip_prefix('+').unwrap_or(&plain);
        let unsigned = plain.strip_prefix('-').unwrap_or(plain);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_number = are_digits(whole) && are_digits(fraction) && are_digits(exponent);
        (is_number && whole.len() + fraction.len() > 0 && !exponent.is_empty()).then(|| Self::read(plain))
    }

    /// The product of two numbers.
    pub(crate) fn times(&self, other: &Self) -> Self {
        if self.digits.is_empty() || other.digits.is_empty() {
            return Self { is_negative: false, digits: Box::default(), power: 0 };
        }
        // One digit more than needed in front, so that the first one may carry over.
        let mut places = vec![0_u64; self.digits.len() + other.digits.len()];
        for (at, one) in self.digits.iter().enumerate() {
            for (offset, other) in other.digits.iter().enumerate() {
                places[at + offset + 1] += u64::from(one - b'0') * u64::from(other - b'0');
            }
        }
        for at in (1..places.len()).rev() {
            places[at - 1] += places[at] / 10;
            places[at] %= 10;
        }
        let carries = places[0] > 0;
        let digits = places.iter().skip(usize::from(!carries)).map(|digit| b'0' + u8::try_from(*digit).unwrap_or(0));
        let mut digits: Vec<u8> = digits.collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        let power = self.power.saturating_add(other.power).saturating_add(i64::from(carries));
        Self { is_negative: self.is_negative != other.is_negative, digits: digits.into(), power }
    }

    /// See [`exact_number`]. Python refuses to parse integers of several thousand digits.
    fn to_value(&self) -> Value {
        let fill = |count: i64| std::iter::repeat_n('0', usize::try_from(count).unwrap_or(0));
        let last = signed(self.digits.len()) - 1;
        let is_short = last < LONGEST && (-LONGEST..LONGEST).contains(&self.power);
        // The point comes behind this digit, unless zeros come first.
        let point = if is_short { self.power } else { 0 };
        let mut text = String::from(if self.is_negative { "-" } else { "" });
        if point < 0 {
            text.push_str("0.");
            text.extend(fill(-point - 1));
        }
        for (index, digit) in (0..).zip(&self.digits) {
            text.push(char::from(*digit));
            if index == point && index < last {
                text.push('.');
            }
        }
        if !is_short {
            return Value::String(format!("{text}e{}", self.power));
        }
        text.extend(fill(point - last));
        text.parse().map(Value::Number).unwrap_or(Value::String(text))
    }

    /// True if it has no fraction, as `2.0` has none.
    pub(crate) fn is_integer(&self) -> bool {
        signed(self.digits.len()) <= self.power.saturating_add(1)
    }

    /// The integer that the number is exactly, if it is one and fits.
    pub(crate) fn as_i64(&self) -> Option<i64> {
        let zeros = self.power.checked_add(1)?.checked_sub(signed(self.digits.len()))?;
        let digits = self
            .digits
            .iter()
            .try_fold(0_i128, |sum, digit| sum.checked_mul(10)?.checked_add(i128::from(*digit - b'0')))?;
        let size = digits.checked_mul(10_i128.checked_pow(u32::try_from(zeros).ok()?)?)?;
        i64::try_from(if self.is_negative { -size } else { size }).ok()
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = || self.power.cmp(&other.power).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| if self.is_negative { size().reverse() } else { size() })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Writes the canonical text of a number; see [`canonical`](super::canonical()).
pub(super) fn write_canonical(text: &mut String, number: &str) {
    let digits = Digits::read(number);
    // An integer keeps its digits, and a number with an exponent outside of `i64` is equal only to itself.
    if is_integer_text(number) || !digits.is_exact {
        text.push_str(number);
        return;
    }
    if digits.is_negative {
        text.push('-');
    }
    let zeros = |text: &mut String, count: i64| text.extend((0..count).map(|_| '0'));
    let last = signed(digits.len()) - 1;
    // The point comes behind this digit, unless zeros come first; the exponent says the rest.
    let (point, exponent) = match digits.power {
        _ if digits.is_zero() => return text.push_str("0.0"),
        power if (-ZEROS..=last.saturating_add(ZEROS)).contains(&power) => (power, None),
        power => (0, Some(power)),
    };
    if point < 0 {
        text.push_str("0.");
        zeros(text, -point - 1);
    }
    for (index, digit) in (0..).zip(digits.iter()) {
        text.push(char::from(digit));
        if index == point && index < last {
            text.push('.');
        }
    }
    if point >= last {
        zeros(text, point - last);
        text.push_str(".0");
    }
    if let Some(power) = exponent {
        text.push('e');
        text.push_str(&power.to_string());
    }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Decimal {
        Decimal::of(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn a_number_is_the_same_however_it_is_written() {
        for same in ["1.0", "10e-1", "0.01E2", "1.000", "1e+0"] {
            assert_eq!(of(same), of("1"), "{same}");
        }
        assert_eq!(of("-0"), of("0.00e5"));
        assert!(of("9007199254740993") > of("9007199254740992.9"));
        assert!(of("1e400") < of("1e401") && of("-1e401") < of("-1e400"));
        assert!(of("1e99999999999999999999") > of("1e9"));
        assert!(of("1e-99999999999999999999") < of("1e-9"));
    }

    #[test]
    fn an_integer_is_exact_or_none() {
        for (text, integer) in [
            ("0.0", Some(0)),
            ("-0.0", Some(0)),
            ("120.0", Some(120)),
            ("-1.2e3", Some(-1_200)),
            ("1.2345678901234567e18", Some(1_234_567_890_123_456_700)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("1.5", None),
            ("1e-7", None),
            ("1e300", None),
            ("1e99999999999999999999", None),
        ] {
            assert_eq!(of(text).as_i64(), integer, "{text}");
        }
    }

    #[test]
    fn a_text_is_a_number_however_it_is_written() {
        for (text, number) in [
            ("500", Some("500")),
            (" +5e2 ", Some("500")),
            ("5_0_0.", Some("500")),
            ("-.5E+1", Some("-5")),
            ("0.000", Some("0")),
            ("", None),
            (".", None),
            ("e5", None),
            ("5e", None),
            ("--5", None),
            ("1,000", None),
            ("0x1f", None),
            ("1e5e5", None),
            ("inf", None),
        ] {
            assert_eq!(Decimal::parse(text), number.map(of), "{text}");
        }
    }

    #[test]
    fn a_number_has_one_spelling() {
        for (text, spelling) in [
            ("5e2", "500"),
            ("500.00", "500"),
            ("-0.0", "0"),
            ("0.10", "0.1"),
            ("-12.50e-3", "-0.0125"),
            ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
        ] {
            assert_eq!(of(text).to_value().to_string(), spelling, "{text}");
        }
        assert_eq!(of("12.5e1000").to_value(), Value::from("1.25e1001"));
        assert_eq!(of("-5e-1001").to_value(), Value::from("-5e-1001"));
    }

    proptest! {
        #[test]
        fn a_product_is_exact(one in any::<i32>(), other in any::<i32>(), power in -5..5) {
            let product = i64::from(one) * i64::from(other);

            let times = of(&one.to_string()).times(&of(&format!("{other}e{power}")));

            prop_assert_eq!(times, of(&format!("{product}e{power}")));
        }

        #[test]
        fn numbers_are_ordered_as_floats_are(one in any::<f32>(), other in any::<f32>()) {
            prop_assume!(one.is_finite() && other.is_finite());

            let ordering = of(&format!("{one:e}")).cmp(&of(&format!("{other:?}")));

            prop_assert_eq!(Some(ordering), one.partial_cmp(&other));
        }
    }
}
