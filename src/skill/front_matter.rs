//! The YAML front matter of a `SKILL.md`: the text between the first two lines of dashes, and the fields in it.
//!
//! A file may open with a byte order mark or empty lines, and its lines may end in any of the three ways. The YAML document is
//! kept as a graph in which an alias is a reference, so that no document becomes larger than its text.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, options};

/// The number of bytes that are read of a file: longer front matter is refused.
pub(super) const LIMIT: usize = 64 * 1024;

/// The front matter of a file.
pub(super) struct FrontMatter {
    /// The YAML in it, with lines that end in `\n`.
    text: String,
    /// The number of lines before it.
    line: usize,
}

/// Finds the front matter in the beginning of a file; the error is a clause on what is wrong with it.
pub(super) fn find(head: &[u8]) -> Result<FrontMatter, String> {
    // The beginning may end in the middle of a character, which then belongs to the rest.
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
            return Ok(FrontMatter { text: format!("{{{}}}", &rest[..end]), line });
        }
        if !is_object && is_fence(next) {
            return Ok(FrontMatter { text: rest[..end].to_owned(), line });
        }
        end += next.len();
    }
    match head.len() {
        LIMIT.. => Err(format!("it does not end within {LIMIT} bytes")),
        _ if text.len() < head.len() && std::str::from_utf8(head).is_err() => Err("it is not UTF-8".to_owned()),
        _ => Err("it does not end with a second line `---`".to_owned()),
    }
}

/// True if a line consists of three dashes or more.
fn is_fence(line: &str) -> bool {
    let line = line.trim_end();
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

/// The depth limit of a document.
const DEPTH: usize = 64;

enum YamlNode {
    /// Text, or none for null.
    Scalar(Option<String>),
    Sequence(Vec<usize>),
    /// Keys and values in turn.
    Mapping(Vec<usize>),
}

/// A YAML document.
pub(super) struct YamlDocument {
    nodes: Vec<YamlNode>,
    root: Option<usize>,
}

impl FrontMatter {
    /// Parses the YAML; the error is a clause on what is wrong with it.
    pub(super) fn parse(&self) -> Result<YamlDocument, String> {
        let options = options! { flow_nesting_limit: DEPTH, block_nesting_limit: DEPTH };
        let mut document = YamlDocument { nodes: Vec::new(), root: None };
        let mut open: Vec<usize> = Vec::new();
        let mut anchors: HashMap<usize, usize> = HashMap::new();
        for event in Parser::new_from_str_with_options(&self.text, options) {
            let (event, span) = event.map_err(|error| {
                format!("line {}: {}", error.marker().line() + self.line, error.info().replace('\n', " "))
            })?;
            let (node, anchor, is_open) = match event {
                Event::Scalar(text, style, anchor, _) => {
                    let is_null = style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                    (YamlNode::Scalar((!is_null).then(|| text.into_owned())), anchor, false)
                }
                Event::SequenceStart(_, anchor, _) => (YamlNode::Sequence(Vec::new()), anchor, true),
                Event::MappingStart(_, anchor, _) => (YamlNode::Mapping(Vec::new()), anchor, true),
                Event::Alias(anchor) => {
                    let known = anchors.get(&anchor).copied().ok_or("an alias has no anchor")?;
                    document.put(&open, known);
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    open.pop();
                    continue;
                }
                Event::DocumentStart(..) if document.root.is_some() => {
                    return Err(format!("line {}: a second document begins", span.start.line() + self.line));
                }
                _ => continue,
            };
            let index = document.nodes.len();
            document.nodes.push(node);
            anchors.insert(anchor, index);
            document.put(&open, index);
            if is_open {
                open.push(index);
            }
        }
        Ok(document)
    }
}

impl YamlDocument {
    fn put(&mut self, open: &[usize], index: usize) {
        match open.last().map(|parent| &mut self.nodes[*parent]) {
            Some(YamlNode::Sequence(items) | YamlNode::Mapping(items)) => items.push(index),
            _ => self.root = Some(index),
        }
    }

    /// The text of a field, `None` if it is missing or null; the error is a clause for a field that is not text.
    pub(super) fn text(&self, key: &str) -> Result<Option<String>, String> {
        let found = self.root.and_then(|root| self.find(root, key, &mut HashSet::new()));
        match found.map(|index| &self.nodes[index]) {
            None => Ok(None),
            Some(YamlNode::Scalar(text)) => Ok(text.clone()),
            Some(YamlNode::Sequence(_)) => Err(format!("`{key}`: expected text, got a list")),
            Some(YamlNode::Mapping(_)) => Err(format!("`{key}`: expected text, got a mapping")),
        }
    }

    /// Finds the value of a key, the last one if there are several, also in mappings that are merged with `<<`.
    fn find(&self, index: usize, key: &str, seen: &mut HashSet<usize>) -> Option<usize> {
        // Merged mappings may merge others in turn, also in a cycle.
        if seen.len() > DEPTH || !seen.insert(index) {
            return None;
        }
        match &self.nodes[index] {
            YamlNode::Scalar(_) => None,
            YamlNode::Sequence(items) => items.iter().find_map(|item| self.find(*item, key, seen)),
            YamlNode::Mapping(pairs) => {
                let values = |key: &str| {
                    let pairs = pairs.chunks_exact(2).filter(move |pair| self.is_text(pair[0], key));
                    pairs.map(|pair| pair[1]).collect::<Vec<_>>()
                };
                values(key)
                    .last()
                    .copied()
                    .or_else(|| values("<<").into_iter().rev().find_map(|merged| self.find(merged, key, seen)))
            }
        }
    }

    fn is_text(&self, index: usize, wanted: &str) -> bool {
        matches!(&self.nodes[index], YamlNode::Scalar(Some(text)) if text == wanted)
    }
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
    fn a_text_without_two_lines_of_dashes_has_no_front_matter() {
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
