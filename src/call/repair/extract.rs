//! The object in a text, and the text around it: a code fence, prose, or a part of the arguments.
//!
//! Text around the object is left out only if it cannot be a part of the arguments. A call never runs with fewer arguments than the
//! model wrote, so anything that looks like JSON beside the object is refused.

use crate::call::CallError;

/// The object in a text, and the kinds of text around it.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is independent of the others")]
pub(super) struct Extraction<'a> {
    /// The text from the first brace to the one that closes it, or to the end.
    pub(super) object: &'a str,
    /// The text from the first brace to the end, without a closing fence.
    pub(super) whole: &'a str,
    pub(super) had_fence: bool,
    /// There are words before the object, or behind the fence.
    pub(super) had_words: bool,
    /// There are words behind the object.
    pub(super) had_tail: bool,
    /// The object is in quotes, as JSON text in a JSON string is.
    pub(super) was_quoted: bool,
    /// There is another object after it.
    pub(super) has_another: bool,
    /// There is a closing bracket right behind the object.
    pub(super) has_surplus: bool,
    /// The text before the object may be a part of the arguments.
    pub(super) lacks_start: bool,
    /// The text behind the object may be a part of the arguments.
    pub(super) has_more: bool,
}

/// Finds the object in a text; `None` if there is none.
pub(super) fn extract(text: &str) -> Option<Extraction<'_>> {
    let start = text.find('{')?;
    let before = text[..start].trim_start_matches('\u{feff}');
    let had_fence = before.contains("```");
    let before = without_fence(before);
    let was_quoted = is_quote(&before);
    let (whole, outside) = if had_fence { split_fence(&text[start..]) } else { (text[start..].trim_end(), "") };
    let end = end_of_object(whole);
    let after = &whole[end..];
    let surplus = after.trim_start_matches(is_surplus);
    let is_plain = surplus.is_empty() || is_quote(surplus) && (was_quoted || surplus != "\"");
    let had_words = !was_quoted && !before.trim().is_empty();
    Some(Extraction {
        // Surplus brackets are repaired with the object, if nothing else follows it.
        object: if surplus.is_empty() && !was_quoted && !had_fence { whole } else { &whole[..end] },
        whole,
        had_fence,
        had_words: had_words || !outside.trim().is_empty(),
        had_tail: !is_plain,
        was_quoted,
        has_another: surplus.starts_with('{'),
        has_surplus: after.trim_start().starts_with(['}', ']']),
        lacks_start: had_words && !is_introduction(&before),
        has_more: !is_plain && !is_prose(after),
    })
}

/// The text up to the closing mark of a fence, and the prose behind it.
fn split_fence(text: &str) -> (&str, &str) {
    match text.rsplit_once("```") {
        Some((inside, outside)) if outside.trim().is_empty() || is_prose(outside) => (inside.trim_end(), outside),
        _ => (text.trim_end(), ""),
    }
}

impl Extraction<'_> {
    /// The reason why the object cannot be taken for all of the arguments.
    pub(super) fn ambiguity(&self) -> CallError {
        if self.has_another {
            let how = "Send one JSON object; make a call of its own for each.";
            return CallError::new("there is more than one object in the arguments", how);
        }
        let how = "Send the whole call again, with all of the arguments in one JSON object and nothing around it.";
        if self.lacks_start || self.has_more {
            return CallError::new(
                "there is text beside the JSON object of the arguments that may be a part of them",
                how,
            );
        }
        CallError::new("a closing bracket in the JSON of the arguments is too many, and it is not clear which", how)
    }
}

fn is_quote(text: &str) -> bool {
    matches!(text.trim(), "\"" | "'" | "`")
}

/// True for characters that may follow a complete object and mean nothing.
fn is_surplus(letter: char) -> bool {
    matches!(letter, '}' | ']' | ';' | ',') || letter.is_whitespace()
}

/// True if the text before an object introduces it. With brackets, or a key at its end, it may be the start of the arguments.
fn is_introduction(before: &str) -> bool {
    let before = before.trim_end();
    let is_key = |text: &str| text.trim_end().ends_with(['"', '\'', '`']);
    let ends_in_key = before.strip_suffix([':', '=']).is_some_and(|text| is_key(text) || text.trim().is_empty());
    let is_balanced = before.matches('"').count().is_multiple_of(2);
    is_balanced && !before.contains(['[', ']', '}']) && !ends_in_key && !before.ends_with(',') && !has_key(before)
}

/// True if the text after a complete object is prose, which cannot be a part of the arguments.
///
/// Brackets, double quotes, keys and values can.
pub(crate) fn is_prose(after: &str) -> bool {
    let after = after.trim();
    let words = after.trim_start_matches(is_surplus);
    let goes_on = after[..after.len() - words.len()].contains(',');
    if words.contains(['{', '}', '[', ']', '"', '\u{201c}', '\u{201d}']) || words.starts_with(['\'', '`', ':', '=']) {
        return false;
    }
    let is_continued = goes_on && words.contains([':', '=']);
    !is_continued && !is_value(words) && !has_key(words)
}

/// True if a text begins with a number or a literal, as the next value of a list would.
fn is_value(text: &str) -> bool {
    let unsigned = text.trim_start_matches(['-', '+', '.']);
    unsigned.starts_with(|first: char| first.is_ascii_digit()) || begins_with_literal(text)
}

fn begins_with_literal(text: &str) -> bool {
    ["true", "false", "null", "none"].iter().any(|literal| {
        let (word, next) = (text.get(..literal.len()), text.as_bytes().get(literal.len()));
        word.is_some_and(|word| word.eq_ignore_ascii_case(literal)) && !next.is_some_and(u8::is_ascii_alphanumeric)
    })
}

/// True if a text has a key with a value: a word in quotes, or a word that begins a line or follows a comma, if it is in lower case or a
/// number or literal follows.
fn has_key(text: &str) -> bool {
    text.match_indices([':', '=']).any(|(at, _)| {
        let (before, value) = (text[..at].trim_end(), text[at + 1..].trim_start());
        let start = before.trim_end_matches(|letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-'));
        let word = &before[start.len()..];
        let line = start.trim_end_matches([' ', '\t']);
        let begins = !word.is_empty() && (line.is_empty() || line.ends_with(['\n', ',']));
        let is_identifier = word.starts_with(|first: char| first.is_lowercase() || first == '_') && !value.is_empty();
        before.ends_with(['"', '\'', '`']) || begins && (is_identifier || is_value(value))
    })
}

/// The text before an object, without the opening of a code fence.
fn without_fence(before: &str) -> String {
    let Some(fence) = before.rfind("```") else { return before.to_owned() };
    let rest = before[fence..].trim_start_matches('`');
    let word = rest.trim_start_matches(|letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'));
    format!("{}{word}", &before[..fence])
}

/// The end of the object at the start of a text: after the brace that closes it, or the end of the text.
fn end_of_object(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, 0);
    // True where a value or a key can begin. Elsewhere a single quote is an apostrophe.
    let mut may_begin = true;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                may_begin = false;
                continue;
            }
            b'\'' if may_begin => {
                at = end_of_string(bytes, at);
                may_begin = false;
                continue;
            }
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                at = end_of_comment(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        may_begin = matches!(byte, b'{' | b'[' | b',' | b':') || may_begin && byte.is_ascii_whitespace();
        at += 1;
    }
    text.len()
}

/// The end of a string: after its closing quote, or the end of the text.
pub(super) fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let quote = bytes[start];
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            byte if *byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of a comment that begins with two characters.
pub(super) fn end_of_comment(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[(start + 2).min(bytes.len())..];
    let is_line = bytes.get(start + 1) != Some(&b'*');
    let length = if is_line {
        rest.iter().position(|byte| *byte == b'\n')
    } else {
        rest.windows(2).position(|pair| pair == b"*/").map(|end| end + 2)
    };
    length.map_or(bytes.len(), |length| start + 2 + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Option<&str> {
        extract(text).map(|found| found.object)
    }

    #[test]
    fn words_and_fences_are_cut_off() {
        assert_eq!(object("Sure, here it is:\n{\"a\": \"}\"} Done."), Some("{\"a\": \"}\"}"));
        assert_eq!(object("```json\n{\"a\": 1}\n```"), Some("{\"a\": 1}"));
        assert_eq!(object("{'a': 'it\\'s }', 'b': 1} that's it"), Some("{'a': 'it\\'s }', 'b': 1}"));
        assert_eq!(object("nothing"), None);
    }

    #[test]
    fn what_was_cut_off_is_known() {
        let fenced = extract("```json\n{\"a\": 1}\n```");
        let introduced = extract("Here: {\"a\": 1}");
        let quoted = extract("\"{\\\"a\\\": 1}");

        assert!(fenced.is_some_and(|found| found.had_fence && !found.had_words && !found.had_tail));
        assert!(introduced.is_some_and(|found| found.had_words && !found.had_fence));
        assert!(quoted.is_some_and(|found| found.was_quoted && !found.had_words));
        assert!(extract("{\"a\": 1} {\"a\": 2}").is_some_and(|found| found.has_another));
    }

    #[test]
    fn an_object_without_an_end_goes_to_the_end() {
        assert_eq!(object("x {\"a\": [1, 2"), Some("{\"a\": [1, 2"));
    }

    #[test]
    fn text_that_may_be_a_part_of_the_arguments_is_not_prose() {
        for after in [
            ", \"draft\": true}",
            " \"draft\": true",
            ", 'draft': True}",
            " draft: true",
            ",\n  draft: yes",
            "\nbody: hello there",
            ", draft=true)",
            ", true",
            " 2",
            "-1.5}",
            " [1, 2]",
            " \"x\"",
            " is empty\", \"draft\": true}",
            " is the set\"",
            ": 1",
            "} y }",
        ] {
            assert!(!is_prose(after), "{after}");
        }
    }

    #[test]
    fn words_after_the_object_are_prose() {
        for after in [
            ". Done!",
            "\nThat's it.",
            ", as you asked.",
            "\nNote: it is sent.",
            ");",
            "}\nOk?",
            " Let me know (soon).",
        ] {
            assert!(is_prose(after), "{after}");
        }
    }

    #[test]
    fn text_before_the_object_introduces_it_or_is_a_part_of_the_arguments() {
        for text in ["Here you go: {}", "Sure, 'it': is\n{}", "arguments = {}", "send({})", "The set is: {}"] {
            let is_key = text.contains('\'');
            assert_eq!(extract(text).is_some_and(|found| found.lacks_start), is_key, "{text}");
        }
        for text in
            [":\"a{b}\"}", "ann\", \"options\": {\"a\": 1}}", "[1, {\"a\": 1}]", "\"a\": {\"b\": 1}}", "}, {\"b\": 1}"]
        {
            assert!(extract(text).is_some_and(|found| found.lacks_start), "{text}");
        }
    }
}
