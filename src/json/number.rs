//! Exact decimal numbers, compared and written by their value: `1`, `1.0` and `10e-1` are one number.

use std::cmp::Ordering;

use serde_json::Number;

/// The number of zeros that are written out before the canonical text uses an exponent.
const ZEROS: i64 = 16;

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
        let digits = Digits::read(number.as_str());
        if digits.is_zero() {
            return Self { is_negative: false, digits: Box::default(), power: 0 };
        }
        Self { is_negative: digits.is_negative, digits: digits.iter().collect(), power: digits.power }
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

    proptest! {
        #[test]
        fn numbers_are_ordered_as_floats_are(one in any::<f32>(), other in any::<f32>()) {
            prop_assume!(one.is_finite() && other.is_finite());

            let ordering = of(&format!("{one:e}")).cmp(&of(&format!("{other:?}")));

            prop_assert_eq!(Some(ordering), one.partial_cmp(&other));
        }
    }
}
