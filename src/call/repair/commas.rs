//! Takes out the commas between two entries of an object that come after another one.

use super::cut::{end_of_comment, end_of_string};
use super::list::List;
use crate::call::RepairKind;

/// The text without them. In a list, where each could stand for a value that was left out, they are not touched.
pub(super) fn without_doubled(text: String, list: &mut List) -> String {
    let doubled = doubled(&text);
    if doubled.is_empty() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for comma in doubled {
        out.push_str(&text[copied..comma]);
        copied = comma + 1;
        list.add(RepairKind::Comma, "", "a comma too many was left out");
    }
    out.push_str(&text[copied..]);
    out
}

/// Where they are.
fn doubled(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let (mut brackets, mut found) = (Vec::new(), Vec::new());
    let (mut at, mut is_after_comma) = (0, false);
    // Whether a value or a key may begin here: an apostrophe anywhere else is one.
    let mut may_begin = true;
    while let Some(byte) = bytes.get(at) {
        match byte {
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                at = end_of_comment(bytes, at);
                continue;
            }
            b'"' => at = end_of_string(bytes, at),
            b'\'' if may_begin => at = end_of_string(bytes, at),
            b',' if is_after_comma && brackets.last() == Some(&b'{') => {
                found.push(at);
                at += 1;
                continue;
            }
            b'{' | b'[' => {
                brackets.push(*byte);
                at += 1;
            }
            b'}' | b']' => {
                brackets.pop();
                at += 1;
            }
            _ => at += 1,
        }
        is_after_comma = *byte == b',';
        may_begin = matches!(byte, b'{' | b'[' | b',' | b':');
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mended(text: &str) -> String {
        without_doubled(text.to_owned(), &mut List::default())
    }

    #[test]
    fn one_comma_is_left_between_entries() {
        assert_eq!(mended(r#"{"a": 1,, "b": ",,", , /* , */ ,'c,,': 2}"#), r#"{"a": 1, "b": ",,",  /* , */ 'c,,': 2}"#);
    }

    #[test]
    fn lists_are_left_alone() {
        assert_eq!(mended(r#"{"a": [1,,2]}"#), r#"{"a": [1,,2]}"#);
    }
}
