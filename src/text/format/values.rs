//! JSON values from text: by the declared type, or guessed where nothing is declared.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::super::declared_types::{DeclaredType, Types};
use super::super::escape::reference;
use super::elements::{Flaw, Tree, VALUE};
use crate::call::{Repair, RepairKind};

/// The maximum number of repairs that are listed for one call.
const MAX_REPAIRS: usize = 32;

/// The name of an element that is an item of a list.
const ITEM: &str = "item";

/// A reader of the values of a tree, with the list of repairs.
pub(super) struct Values<'t, 'r> {
    pub(super) tree: &'r Tree<'t>,
    pub(super) repairs: Vec<Repair>,
    pub(super) has_duplicates: bool,
    path: Vec<&'t str>,
}

impl<'t, 'r> Values<'t, 'r> {
    pub(super) fn new(tree: &'r Tree<'t>) -> Self {
        Self { tree, repairs: Vec::new(), has_duplicates: false, path: Vec::new() }
    }

    /// Lists a repair, once for each place.
    pub(super) fn note_repair(&mut self, what: RepairKind, text: impl Into<String>) {
        let repair = Repair::new(what, Into::<String>::into(text)).at(self.path.join("."));
        if self.repairs.len() < MAX_REPAIRS && !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    /// Reads elements as the entries of an object.
    pub(super) fn entries(
        &mut self,
        elements: &[usize],
        declared: Option<DeclaredType<'_>>,
    ) -> Result<Map<String, Value>, Flaw> {
        let mut entries = Map::new();
        for element in elements {
            let name = self.tree.open_token(*element).name;
            let own = declared.map(|declared| declared.entry(name).unwrap_or(declared.nothing()));
            let value = self.value(*element, own)?;
            let collects = own.is_some_and(|own| own.types() == Types::ARRAY);
            match (entries.get_mut(name), value) {
                // A list may also be written as one element for each of its items.
                (Some(Value::Array(items)), Value::Array(more)) if collects => items.extend(more),
                (Some(first), more) if collects && !more.is_array() => {
                    *first = match first.take() {
                        Value::Array(mut items) => {
                            items.push(more);
                            Value::Array(items)
                        }
                        first => Value::Array(vec![first, more]),
                    };
                }
                (known, value) => {
                    self.has_duplicates |= known.is_some();
                    entries.insert(name.to_owned(), value);
                }
            }
        }
        Ok(entries)
    }

    /// Reads the value of an element. `declared` is `None` if the tool is not known.
    pub(super) fn value(&mut self, element: usize, declared: Option<DeclaredType<'_>>) -> Result<Value, Flaw> {
        let token = *self.tree.open_token(element);
        self.path.push(token.name);
        let this = &self.tree.elements[element];
        let (is_unclosed, is_text) = (this.is_unclosed, this.is_text);
        let children = this.children.as_slice();
        if is_unclosed {
            self.note_repair(RepairKind::Tag, format!("the closing tag of <{}> was missing", token.name));
        }
        if token.is_repaired {
            self.note_repair(RepairKind::Tag, format!("<{}> was written in another way", token.name));
        }
        let value = if children.is_empty() || is_text {
            self.leaf(element, declared)
        } else if self.tree.has_loose_text(Some(element)) {
            let what = format!("<{}> has both text and tags in it", token.name);
            Err(Flaw::new(what, token.start))
        } else {
            self.parts(children, declared)
        };
        self.path.pop();
        value
    }

    fn leaf(&mut self, element: usize, declared: Option<DeclaredType<'_>>) -> Result<Value, Flaw> {
        let token = *self.tree.open_token(element);
        let held = self.tree.text_of(element);
        if held.has_stray {
            self.note_repair(RepairKind::Markup, "a bare & or < was taken as it is");
        }
        if let Some(written) = token.value {
            if !held.stripped().is_empty() {
                let what = format!("<{}> has one value in its tag and another inside", token.name);
                return Err(Flaw::new(what, token.start));
            }
            return Ok(if declared.is_some() { Value::from(written) } else { guess(written) });
        }
        match token.attribute.filter(|_| held.stripped().is_empty()) {
            Some((VALUE, written)) => {
                self.note_repair(RepairKind::Tag, format!("the value of <{}> stood in an attribute", token.name));
                let written = unescaped(written);
                return Ok(if declared.is_some() { Value::from(written) } else { guess(&written) });
            }
            Some((key, _)) => {
                let what = format!("<{}> is empty, and something stands in its attribute {key}", token.name);
                return Err(Flaw::new(what, token.start));
            }
            None => {}
        }
        let Some(declared) = declared else { return Ok(guess(held.stripped())) };
        let types = declared.types();
        if let Some(container) = parse_container(held.stripped(), types) {
            return Ok(container);
        }
        let text = if takes_any_text(declared, types) { held.into_string() } else { held.stripped().to_owned() };
        Ok(Value::String(text))
    }

    fn parts(&mut self, children: &[usize], declared: Option<DeclaredType<'_>>) -> Result<Value, Flaw> {
        let types = declared.map_or(Types::ANY, DeclaredType::types);
        let (may_list, may_hold) = (types.has(Types::ARRAY), types.has(Types::OBJECT));
        let is_list = if may_list == may_hold { self.looks_like_list(children) } else { may_list };
        if !is_list {
            return self.entries(children, declared).map(Value::Object);
        }
        let mut items = Vec::with_capacity(children.len());
        for (index, child) in children.iter().enumerate() {
            let item = declared.map(|declared| declared.item(index).unwrap_or(declared.nothing()));
            items.push(self.value(*child, item)?);
        }
        Ok(Value::Array(items))
    }

    /// Several elements of one name are a list, of different names an object; a single one is a list if its name says so.
    fn looks_like_list(&self, children: &[usize]) -> bool {
        let name = |child: &usize| self.tree.open_token(*child).name;
        match children {
            [only] => name(only) == ITEM,
            _ => children.windows(2).all(|pair| name(&pair[0]) == name(&pair[1])),
        }
    }
}

/// The value of an attribute.
fn unescaped(written: &str) -> String {
    let mut text = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.find('&') {
        let (letter, length) = reference(&rest[at..]).unwrap_or(('&', 1));
        text.push_str(&rest[..at]);
        text.push(letter);
        rest = &rest[at + length..];
    }
    text + rest
}

/// Converts a raw text to the declared type; guesses where the tool is not known.
pub(super) fn typed(text: &str, declared: Option<DeclaredType<'_>>) -> Value {
    let stripped = strip(text);
    let types = declared.map_or(Types::ANY, DeclaredType::types);
    if let Some(container) = parse_container(stripped, types) {
        return container;
    }
    match declared {
        None => guess(stripped),
        // The word is the only way to write no value for a text that may be absent.
        Some(_) if stripped == "null" && types.has(Types::NULL) => Value::Null,
        Some(declared) if takes_any_text(declared, types) => Value::from(text),
        Some(_) => Value::from(stripped),
    }
}

/// Parses the JSON text of a list or an object, where the types allow one.
fn parse_container(text: &str, types: Types) -> Option<Value> {
    let opens = |letter: char, of: Types| text.starts_with(letter) && (types.has(of) || types == Types::ANY);
    let is_container = opens('[', Types::ARRAY) || opens('{', Types::OBJECT);
    if is_container { serde_json::from_str(text).ok() } else { None }
}

/// True for free text, in which blanks are significant.
fn takes_any_text(declared: DeclaredType<'_>, types: Types) -> bool {
    types.has(Types::STRING) && !declared.is_listed() || types == Types::ANY
}

/// True for the blanks that Python's `str.strip` removes.
pub(super) fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{1c}'..='\u{1f}')
}

/// The text without blanks around it.
pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// The maximum number of digits of an integer, as in Python.
const MAX_DIGITS: usize = 4300;

/// The zeros of the sets of decimal digits outside ASCII, except for the mathematical ones.
#[rustfmt::skip]
const ZEROS: [u32; 60] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20, 0x1040,
    0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0,
    0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650,
    0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50, 0x1E140, 0x1E2F0, 0x1E950,
    0x1FBF0,
];

/// The mathematical digits: five sets, one after another.
const MATHEMATICAL_DIGITS: std::ops::Range<u32> = 0x1D7CE..0x1D800;

/// Guesses the type of a text: a boolean, a number in Python's notation, or text.
///
/// Python reads a number that is too large for a float as an infinity. It becomes `1e999`, which every reader understands so.
fn guess(text: &str) -> Value {
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Value::Bool(text.eq_ignore_ascii_case("true"));
    }
    number(text).map_or_else(|| Value::from(text), Value::Number)
}

fn number(text: &str) -> Option<Number> {
    let text = text.trim();
    // Most texts are not numbers, as their first letter shows.
    if text.is_empty() || text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return None;
    }
    let text = without_underscores(with_ascii_digits(text))?;
    let is_float = text.contains(['.', 'e', 'E']);
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(&text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0
        || exponent.is_empty()
        || ![whole, fraction, exponent].into_iter().all(are_digits)
    {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    if is_float {
        let float = text.parse::<f64>().ok()?;
        return Number::from_f64(float).or_else(|| format!("{sign}1e999").parse().ok());
    }
    match whole.trim_start_matches('0') {
        _ if whole.len() > MAX_DIGITS => None,
        "" => Some(Number::from(0)),
        digits => format!("{sign}{digits}").parse().ok(),
    }
}

/// The text with every decimal digit written in ASCII.
fn with_ascii_digits(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|letter| ascii_digit(letter).unwrap_or(letter)).collect())
}

fn ascii_digit(letter: char) -> Option<char> {
    let code = u32::from(letter);
    if MATHEMATICAL_DIGITS.contains(&code) {
        return char::from_digit((code - MATHEMATICAL_DIGITS.start) % 10, 10);
    }
    let after = ZEROS.partition_point(|zero| *zero <= code);
    let zero = ZEROS[after.checked_sub(1)?];
    char::from_digit(code.checked_sub(zero).filter(|value| *value < 10)?, 10)
}

/// The text without its underscores, if each of them is between two digits.
fn without_underscores(text: Cow<'_, str>) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(text);
    }
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let mut places = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_');
    let all_between = places.all(|(at, _)| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)));
    all_between.then(|| Cow::Owned(text.replace('_', "")))
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
            (" true", json!(" true")),
            ("TRUE", json!(true)),
            ("null", json!("null")),
        ] {
            assert_eq!(guess(text), value, "{text:?}");
        }
    }

    #[test]
    fn an_integer_has_as_many_digits_as_python_allows() {
        assert!(guess(&"1".repeat(MAX_DIGITS)).is_number());
        assert!(guess(&"1".repeat(MAX_DIGITS + 1)).is_string());
        assert!(guess(&"0".repeat(MAX_DIGITS + 1)).is_string());
    }

    #[test]
    fn a_number_too_large_for_a_float_is_an_infinity() {
        assert_eq!(guess("1e400").to_string(), "1e+999");
        assert_eq!(guess("-1e400").to_string(), "-1e+999");
    }
}
