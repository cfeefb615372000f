//! Finding the front matter: what stands between the first two lines of dashes.
//!
//! A file may open with a byte order mark or empty lines, and its lines may end in any of the three ways.

/// How much of a file is looked at: front matter that is longer is refused.
pub(super) const LIMIT: usize = 64 * 1024;

/// The front matter of a file.
pub(super) struct Matter {
    /// The YAML in it, with lines that end in `\n`.
    pub(super) text: String,
    /// How many lines of the file come before it.
    pub(super) line: usize,
}

/// Finds the front matter in the beginning of a file; the error says what is wrong with it.
pub(super) fn find(head: &[u8]) -> Result<Matter, String> {
    // The beginning may end in the middle of a letter, which then belongs to what follows.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    let before = text.len() - text.trim_start().len();
    let (first, rest) = text[before..].split_once('\n').unwrap_or((&text[before..], ""));
    // A JSON object on lines of its own is YAML too, braces included.
    let is_object = first.trim_end() == "{";
    if !is_object && !is_fence(first) {
        return Err("its first line is not `---`".to_owned());
    }
    let line = text[..before].matches('\n').count() + 1;
    let mut end = 0;
    for next in rest.split_inclusive('\n') {
        if is_object && next.trim_end() == "}" {
            return Ok(Matter { text: format!("{{{}}}", &rest[..end]), line });
        }
        if !is_object && is_fence(next) {
            return Ok(Matter { text: rest[..end].to_owned(), line });
        }
        end += next.len();
    }
    match head.len() {
        LIMIT.. => Err(format!("it does not end within {LIMIT} bytes")),
        _ if text.len() < head.len() && std::str::from_utf8(head).is_err() => Err("it is not UTF-8".to_owned()),
        _ => Err("it does not end with a second line `---`".to_owned()),
    }
}

/// Whether a line has three dashes or more and nothing else.
fn is_fence(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(head: &str) -> Option<String> {
        find(head.as_bytes()).ok().map(|matter| matter.text)
    }

    #[test]
    fn front_matter_stands_between_two_lines_of_dashes() {
        assert_eq!(text("---\nname: a\n---\nbody\n---\n").as_deref(), Some("name: a\n"));
        assert_eq!(text("\n \n-----  \nname: a\n----").as_deref(), Some("name: a\n"));
        assert_eq!(text("---\n---\n").as_deref(), Some(""));
        assert_eq!(text("{\n\"name\": 1\n}\n").as_deref(), Some("{\"name\": 1\n}"));
    }

    #[test]
    fn marks_and_line_endings_make_no_difference() {
        assert_eq!(text("\u{feff}---\r\nname: a\r\n---\r\n").as_deref(), Some("name: a\n"));
        assert_eq!(text("---\rname: a\r---\r").as_deref(), Some("name: a\n"));
    }

    #[test]
    fn what_has_no_two_lines_of_dashes_has_no_front_matter() {
        for head in ["", "name: a", "--\nname: a\n--\n", "---\nname: a\n", "--- a\n---\n", "---\nname: a\n ---\n"] {
            assert_eq!(text(head), None, "{head:?}");
        }
    }

    #[test]
    fn bytes_after_the_front_matter_may_be_anything() {
        let matter = find(b"---\nname: a\n---\n\xff\xfe").map(|matter| matter.text);

        assert_eq!(matter.as_deref(), Ok("name: a\n"));
    }

    #[test]
    fn bytes_in_the_front_matter_must_be_utf_8() {
        let reason = find(b"---\nname: \xff\n---\n").err();

        assert_eq!(reason.as_deref(), Some("it is not UTF-8"));
    }
}
