//! What ArtifactFlow takes a text for when nothing is known of its type: Python's own grammar of numbers, to the letter.

use std::borrow::Cow;

use serde_json::{Number, Value};

/// The most digits that Python reads as an integer.
const DIGITS: usize = 4300;

/// Where decimal digits begin, ten to each set, outside of ASCII and the mathematical letters.
#[rustfmt::skip]
const ZEROS: [u32; 60] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20, 0x1040,
    0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0,
    0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650,
    0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1E140, 0x1E2F0, 0x1E950,
    0x1FBF0,
];

/// Five sets of digits, one after another.
const MATHEMATICAL: std::ops::Range<u32> = 0x1D7CE..0x1D800;

/// Whether Python's `str.strip` takes a character away.
pub(super) fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{1c}'..='\u{1f}')
}

/// The text without what `str.strip` takes away.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// Reads a text as a boolean, an integer or a float, if it looks like one; else it stays what it is.
///
/// A number too large for a float is an infinity to Python; it is written as `1e999`, of which every reader makes one.
pub fn guess(text: &str) -> Value {
    if text.eq_ignore_ascii_case("true") {
        return Value::Bool(true);
    }
    if text.eq_ignore_ascii_case("false") {
        return Value::Bool(false);
    }
    let number = if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) { float(text) } else { integer(text) };
    number.map_or_else(|| Value::from(text), Value::Number)
}

/// The text in ASCII, as Python sees it before it reads a number: without blanks around, every digit written as in ASCII.
fn in_ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        // Without the separators: only texts with other letters are stripped of those.
        return Cow::Borrowed(text.trim_matches(|letter: char| matches!(letter, '\t'..='\r' | ' ')));
    }
    let letters = strip(text).chars().map(|letter| match digit(letter) {
        Some(digit) => digit,
        None if letter.is_ascii() => letter,
        None => '?',
    });
    Cow::Owned(letters.collect())
}

fn digit(letter: char) -> Option<char> {
    let code = u32::from(letter);
    if MATHEMATICAL.contains(&code) {
        return char::from_digit((code - MATHEMATICAL.start) % 10, 10);
    }
    let after = ZEROS.partition_point(|zero| *zero <= code);
    let zero = ZEROS[after.checked_sub(1)?];
    char::from_digit(code.checked_sub(zero).filter(|value| *value < 10)?, 10)
}

/// The text without its underscores, if each of them is between two digits.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let mut places = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_');
    let all_between = places.all(|(at, _)| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)));
    all_between.then(|| Cow::Owned(text.replace('_', "")))
}

fn integer(text: &str) -> Option<Number> {
    let first = text.bytes().next()?;
    // Most texts are no numbers, and show it at once.
    if first.is_ascii_alphabetic() {
        return None;
    }
    let text = in_ascii(text);
    let text = without_underscores(&text)?;
    let (minus, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, &text[..]),
    };
    if digits.is_empty() || digits.len() > DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match digits.trim_start_matches('0') {
        "" => Some(Number::from(0)),
        digits if minus => format!("-{digits}").parse().ok(),
        digits => digits.parse().ok(),
    }
}

fn float(text: &str) -> Option<Number> {
    let text = in_ascii(text);
    let text = without_underscores(&text)?;
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let exponent_reads = exponent.is_none_or(|digits| !digits.is_empty() && are_digits(digits));
    if !has_digits || !are_digits(whole) || !are_digits(fraction) || !exponent_reads {
        return None;
    }
    let float = text.parse::<f64>().ok()?;
    Number::from_f64(float).or_else(|| if float < 0.0 { "-1e999" } else { "1e999" }.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, value) in [
            ("", json!("")),
            ("42", json!(42)),
            ("-7", json!(-7)),
            ("+5", json!(5)),
            ("007", json!(7)),
            ("-0", json!(0)),
            ("1_000", json!(1000)),
            ("0_7", json!(7)),
            ("1__0", json!("1__0")),
            ("_1", json!("_1")),
            ("1_", json!("1_")),
            ("1,000", json!("1,000")),
            ("- 3", json!("- 3")),
            ("+-1", json!("+-1")),
            ("−5", json!("−5")),
            ("٣٤", json!(34)),
            ("٣_٤", json!(34)),
            ("\u{1d7ce}\u{1d7d8}\u{1d7ff}", json!(9)),
            ("²", json!("²")),
            ("3.25", json!(3.25)),
            ("2.", json!(2.0)),
            (".5", json!(0.5)),
            (".", json!(".")),
            ("e", json!("e")),
            ("1e3", json!(1000.0)),
            ("1E-2", json!(0.01)),
            ("1.e5", json!(100_000.0)),
            (".e5", json!(".e5")),
            ("1e", json!("1e")),
            ("1_0.5_0e1_0", json!(105_000_000_000.0)),
            ("1_.5", json!("1_.5")),
            ("２.５", json!(2.5)),
            ("1.2.3", json!("1.2.3")),
            ("-0.0", json!(-0.0)),
            ("1e-400", json!(0.0)),
            ("inf", json!("inf")),
            ("NaN", json!("NaN")),
            ("infinite", json!("infinite")),
            ("0x10", json!("0x10")),
            (" 5 ", json!(5)),
            ("\u{1c}5", json!("\u{1c}5")),
            ("\u{1c}٥", json!(5)),
            (" true", json!(" true")),
            ("TRUE", json!(true)),
            ("null", json!("null")),
        ] {
            assert_eq!(guess(text), value, "{text:?}");
        }
    }

    #[test]
    fn an_integer_has_as_many_digits_as_python_allows() {
        assert!(guess(&"1".repeat(DIGITS)).is_number());
        assert!(guess(&"1".repeat(DIGITS + 1)).is_string());
        assert!(guess(&"0".repeat(DIGITS + 1)).is_string());
    }

    #[test]
    fn a_number_too_large_for_a_float_is_an_infinity() {
        assert_eq!(guess("1e400").to_string(), "1e+999");
        assert_eq!(guess("-1e400").to_string(), "-1e+999");
    }
}
