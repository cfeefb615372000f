//! Takes away what models write around an object: code fences, and words before and after.

/// A text in which an object begins, taken apart.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a thing of its own that may stand around an object")]
pub(super) struct Cut<'a> {
    /// From the first brace to the one that closes it; to the end if none does.
    pub(super) object: &'a str,
    pub(super) had_fence: bool,
    pub(super) had_prose: bool,
    /// The object stands in quotes, as JSON text in a JSON string does.
    pub(super) was_quoted: bool,
    /// What follows has an object of its own.
    pub(super) has_another: bool,
}

/// Finds the object in a text; `None` if there is none.
pub(super) fn cut(text: &str) -> Option<Cut<'_>> {
    let start = text.find('{')?;
    let end = start + end_of_object(&text[start..]);
    let (before, object, after) = (&text[..start], &text[start..end], &text[end..]);
    let had_fence = before.contains("```");
    let before = without_fence(before.trim_start_matches('\u{feff}'));
    let after = after.trim().trim_start_matches(['}', ']', ';', ',']).trim();
    let after = if had_fence { after.replacen("```", "", 1) } else { after.to_owned() };
    let is_quote = |text: &str| matches!(text, "\"" | "'" | "`");
    let was_quoted = is_quote(before.trim());
    let had_prose = !was_quoted && !before.trim().is_empty() || !after.trim().is_empty() && !is_quote(after.trim());
    // What closes too much is left to be mended with the object, if nothing else follows it.
    let object = if after.trim().is_empty() && !was_quoted && !had_fence { &text[start..] } else { object };
    Some(Cut { object, had_fence, had_prose, was_quoted, has_another: after.contains('{') })
}

/// What stands before an object, without the line that opens a fence.
fn without_fence(before: &str) -> String {
    let Some(fence) = before.rfind("```") else { return before.to_owned() };
    let rest = before[fence..].trim_start_matches('`');
    let word = rest.trim_start_matches(|letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'));
    format!("{}{word}", &before[..fence])
}

/// Where the object ends that a text begins with: after the brace that closes it, or at the end.
fn end_of_object(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0usize, 0);
    // Whether a value or a key may begin here: an apostrophe anywhere else is one.
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

/// Where a string ends: after its closing quote, or at the end of the text.
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

/// Where a comment ends that begins with two characters.
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
        cut(text).map(|cut| cut.object)
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
        let fenced = cut("```json\n{\"a\": 1}\n```");
        let told = cut("Here: {\"a\": 1}");
        let quoted = cut("\"{\\\"a\\\": 1}");

        assert!(fenced.is_some_and(|cut| cut.had_fence && !cut.had_prose));
        assert!(told.is_some_and(|cut| cut.had_prose && !cut.had_fence));
        assert!(quoted.is_some_and(|cut| cut.was_quoted && !cut.had_prose));
        assert!(cut("{\"a\": 1} {\"a\": 2}").is_some_and(|cut| cut.has_another));
    }

    #[test]
    fn an_object_without_an_end_goes_to_the_end() {
        assert_eq!(object("x {\"a\": [1, 2"), Some("{\"a\": [1, 2"));
    }
}
