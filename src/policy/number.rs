//! Numbers as their exact decimal value, however they are written: `1`, `1.0` and `10e-1` are one number.

use std::cmp::Ordering;

use serde_json::Number;

/// An exact decimal number, 0.DIGITS × 10^POINT.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decimal {
    is_negative: bool,
    /// They neither begin nor end with a zero; zero has none.
    digits: Box<[u8]>,
    point: i64,
}

impl Decimal {
    pub(super) fn of(number: &Number) -> Self {
        let text = number.as_str();
        let (text, is_negative) = text.strip_prefix('-').map_or((text, false), |text| (text, true));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole, fraction].concat();
        let leading = all.len() - all.trim_start_matches('0').len();
        let digits = all.trim_matches('0');
        if digits.is_empty() {
            return Self { is_negative: false, digits: Box::default(), point: 0 };
        }
        // An exponent beyond all machine numbers is as good as endless.
        let exponent = exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
        let point = exponent.saturating_add(signed(whole.len())).saturating_sub(signed(leading));
        Self { is_negative, digits: digits.as_bytes().into(), point }
    }

    /// Whether it has no fraction, as `2.0` has none.
    pub(super) fn is_integer(&self) -> bool {
        signed(self.digits.len()) <= self.point
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        let size = || self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then_with(|| if self.is_negative { size().reverse() } else { size() })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
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

    proptest! {
        #[test]
        fn numbers_are_ordered_as_floats_are(one in any::<f32>(), other in any::<f32>()) {
            prop_assume!(one.is_finite() && other.is_finite());

            let ordering = of(&format!("{one:e}")).cmp(&of(&format!("{other:?}")));

            prop_assert_eq!(Some(ordering), one.partial_cmp(&other));
        }
    }
}
