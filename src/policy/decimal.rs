//! One text for each number, by its exact decimal value.

/// How many zeros are written before a number is told by its exponent instead.
const ZEROS: i64 = 16;

/// Writes a number from the text that it was read from; see [`canonical`](super::canonical()).
pub(super) fn write_number(text: &mut String, number: &str) {
    let is_integer = !number.contains(['.', 'e', 'E']);
    match Decimal::read(number).filter(|_| !is_integer) {
        Some(decimal) => decimal.write(text),
        // An integer keeps its digits, and an exponent that no machine number holds is only ever equal to itself.
        None => text.push_str(number),
    }
}

/// A sign, digits that neither begin nor end with a zero, and the power of ten of the first of them.
struct Decimal<'a> {
    sign: &'a str,
    digits: String,
    power: i64,
}

impl<'a> Decimal<'a> {
    fn read(number: &'a str) -> Option<Self> {
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let sign = if mantissa.starts_with('-') { "-" } else { "" };
        let (whole, fraction) = mantissa[sign.len()..].split_once('.').unwrap_or((&mantissa[sign.len()..], ""));
        let all = [whole, fraction].concat();
        let leading = all.len() - all.trim_start_matches('0').len();
        let first = i64::try_from(whole.len()).ok()?.checked_sub(i64::try_from(leading).ok()?)?.checked_sub(1)?;
        let power = exponent.parse::<i64>().ok()?.checked_add(first)?;
        Some(Self { sign, digits: all.trim_matches('0').to_owned(), power })
    }

    fn write(&self, text: &mut String) {
        let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or_default());
        let digits = &*self.digits;
        let last = i64::try_from(digits.len()).unwrap_or(i64::MAX) - 1;
        text.push_str(self.sign);
        let number = match self.power {
            _ if digits.is_empty() => "0.0".to_owned(),
            power if (-ZEROS..0).contains(&power) => format!("0.{}{digits}", zeros(-power - 1)),
            power if (0..last).contains(&power) => point_after(digits, power),
            power if (last..=last.saturating_add(ZEROS)).contains(&power) => {
                format!("{digits}{}.0", zeros(power - last))
            }
            power if last == 0 => format!("{digits}.0e{power}"),
            power => format!("{}e{power}", point_after(digits, 0)),
        };
        text.push_str(&number);
    }
}

fn point_after(digits: &str, place: i64) -> String {
    let (whole, fraction) = digits.split_at(usize::try_from(place).unwrap_or_default() + 1);
    format!("{whole}.{fraction}")
}
