//! The YAML front matter of a Markdown file: the text between the first two lines of dashes, and the fields in it.
//!
//! A file may open with a byte order mark or empty lines, and its lines may end in any of the three ways. The YAML document is
//! kept as a graph in which an alias is a reference, so that no document becomes larger than its text.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, options};
use serde_json::{Map, Number, Value};

/// The front matter of a file.
pub(crate) struct FrontMatter {
    /// The YAML in it, with lines that end in `\n`.
    text: String,
    /// The number of lines before it.
    line: usize,
    /// The text behind it, with lines that end in `\n`.
    pub(crate) body: String,
}

/// Finds the front matter in the beginning of a file, of which `limit` bytes were read at most; the error is a clause on what is
/// wrong with it.
pub(crate) fn find(head: &[u8], limit: usize) -> Result<FrontMatter, String> {
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
            let body = rest[end + next.len()..].to_owned();
            return Ok(FrontMatter { text: format!("{{{}}}", &rest[..end]), line, body });
        }
        if !is_object && is_fence(next) {
            let body = rest[end + next.len()..].to_owned();
            return Ok(FrontMatter { text: rest[..end].to_owned(), line, body });
        }
        end += next.len();
    }
    if head.len() >= limit {
        Err(format!("it does not end within {limit} bytes"))
    } else if text.len() < head.len() && std::str::from_utf8(head).is_err() {
        Err("it is not UTF-8".to_owned())
    } else {
        Err("it does not end with a second line `---`".to_owned())
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
    /// A number or boolean, with its text.
    Typed(String, Value),
    Sequence(Vec<usize>),
    /// Keys and values in turn.
    Mapping(Vec<usize>),
}

/// The most values of a document as JSON, where an alias counts as the value that it refers to.
const VALUES: usize = 20_000;

/// A YAML document.
pub(crate) struct YamlDocument {
    nodes: Vec<YamlNode>,
    root: Option<usize>,
}

impl FrontMatter {
    /// Parses the YAML; the error is a clause on what is wrong with it.
    pub(crate) fn parse(&self) -> Result<YamlDocument, String> {
        let options = options! { flow_nesting_limit: DEPTH, block_nesting_limit: DEPTH };
        let mut document = YamlDocument { nodes: Vec::new(), root: None };
        let mut open: Vec<usize> = Vec::new();
        let mut anchors: HashMap<usize, usize> = HashMap::new();
        for event in Parser::new_from_str_with_options(&self.text, options) {
            let (event, span) = event.map_err(|error| {
                format!("line {}: {}", error.marker().line() + self.line, error.info().replace('\n', " "))
            })?;
            let (node, anchor, is_open) = match event {
                Event::Scalar(text, style, anchor, tag) => {
                    // A value with a tag such as `!!str` is text.
                    let is_plain = style == ScalarStyle::Plain && tag.is_none();
                    (if is_plain { plain(&text) } else { YamlNode::Scalar(Some(text.into_owned())) }, anchor, false)
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
    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, String> {
        let found = self.root.and_then(|root| self.find(root, key, &mut HashSet::new()));
        match found.map(|index| &self.nodes[index]) {
            None => Ok(None),
            Some(YamlNode::Scalar(text)) => Ok(text.clone()),
            Some(YamlNode::Typed(text, _)) => Ok(Some(text.clone())),
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
            YamlNode::Scalar(_) | YamlNode::Typed(..) => None,
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

    /// The document as JSON; null if it is empty. The error is a clause on what JSON cannot express.
    pub(crate) fn json(&self) -> Result<Value, String> {
        let mut left = VALUES;
        self.root.map_or(Ok(Value::Null), |root| self.value(root, 0, &mut left))
    }

    fn value(&self, index: usize, depth: usize, left: &mut usize) -> Result<Value, String> {
        if depth > DEPTH {
            return Err(format!("it is nested deeper than {DEPTH} levels, or an alias refers to itself"));
        }
        *left = left.checked_sub(1).ok_or_else(|| format!("it has more than {VALUES} values"))?;
        Ok(match &self.nodes[index] {
            YamlNode::Scalar(text) => text.clone().map_or(Value::Null, Value::String),
            YamlNode::Typed(_, value) => value.clone(),
            YamlNode::Sequence(items) => {
                let items = items.iter().map(|item| self.value(*item, depth + 1, left));
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            YamlNode::Mapping(pairs) => {
                let mut entries = Map::new();
                let mut merged = Vec::new();
                for pair in pairs.chunks_exact(2) {
                    let key = match &self.nodes[pair[0]] {
                        YamlNode::Scalar(Some(text)) | YamlNode::Typed(text, _) => text,
                        YamlNode::Scalar(None) => "null",
                        YamlNode::Sequence(_) | YamlNode::Mapping(_) => {
                            return Err("a key is a list or a mapping: expected text".to_owned());
                        }
                    };
                    if key == "<<" {
                        merged.push(self.value(pair[1], depth + 1, left)?);
                    } else if entries.contains_key(key) {
                        return Err(format!("the key `{key}` occurs twice"));
                    } else {
                        entries.insert(key.to_owned(), self.value(pair[1], depth + 1, left)?);
                    }
                }
                for mapping in merged {
                    merge(&mut entries, mapping)?;
                }
                Value::Object(entries)
            }
        })
    }
}

/// Adds the entries of a mapping, or of a list of mappings, whose keys are missing.
fn merge(entries: &mut Map<String, Value>, merged: Value) -> Result<(), String> {
    match merged {
        Value::Object(more) => {
            for (key, value) in more {
                entries.entry(key).or_insert(value);
            }
            Ok(())
        }
        Value::Array(mappings) => mappings.into_iter().try_for_each(|mapping| merge(entries, mapping)),
        _ => Err("`<<`: expected a mapping".to_owned()),
    }
}

/// A scalar without quotes, by the core schema of YAML 1.2.
fn plain(text: &str) -> YamlNode {
    let value = match text {
        "" | "~" | "null" | "Null" | "NULL" => return YamlNode::Scalar(None),
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(number) => Value::Number(number),
            None => return YamlNode::Scalar(Some(text.to_owned())),
        },
    };
    YamlNode::Typed(text.to_owned(), value)
}

/// Parses a decimal number, or an integer with the prefix `0x` or `0o`.
fn number(text: &str) -> Option<Number> {
    let radix = |prefix: &str, radix| u64::from_str_radix(text.strip_prefix(prefix)?, radix).ok();
    if let Some(integer) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Some(integer.into());
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && digits.bytes().any(|byte| byte.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    if !is_number {
        return None;
    }
    match text.parse::<i64>() {
        Ok(integer) => Some(integer.into()),
        Err(_) => text.parse::<f64>().ok().and_then(Number::from_f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LIMIT: usize = 1024;

    fn text(head: &str) -> Option<String> {
        find(head.as_bytes(), LIMIT).ok().map(|matter| matter.text)
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
        let matter = find(b"---\nname: a\n---\n\xff\xfe", LIMIT).map(|matter| matter.text);

        assert_eq!(matter.as_deref(), Ok("name: a\n"));
    }

    #[test]
    fn bytes_in_the_front_matter_must_be_utf_8() {
        let reason = find(b"---\nname: \xff\n---\n", LIMIT).err();

        assert_eq!(reason.as_deref(), Some("it is not UTF-8"));
    }

    fn json_of(yaml: &str) -> Result<Value, String> {
        find(format!("---\n{yaml}\n---\n").as_bytes(), LIMIT)?.parse()?.json()
    }

    #[test]
    fn the_body_stands_behind_the_front_matter() {
        let matter = find(b"---\r\nname: a\r\n---\r\n\r\nOne\r\n---\r\n", LIMIT);

        assert_eq!(matter.map(|matter| matter.body).as_deref(), Ok("\nOne\n---\n"));
    }

    #[test]
    fn scalars_have_the_types_of_the_core_schema() {
        let yaml = "a: [1, -2.5, 1e3, 0x1f, true, yes, null, ~, '1', \"true\", !!str 1, 1.2.3, 2024-01-02, 12e, +7]";

        let expected =
            json!([1, -2.5, 1000.0, 31, true, "yes", null, null, "1", "true", "1", "1.2.3", "2024-01-02", "12e", 7]);
        assert_eq!(json_of(yaml).unwrap()["a"].to_string(), expected.to_string());
    }

    #[test]
    fn aliases_and_merged_mappings_become_their_values() {
        let yaml = "base: &base {a: 1, b: 2}\nthird: {<<: *base, b: 3}\nlist: [*base]";

        let value = json_of(yaml).unwrap();

        assert_eq!(value["third"], json!({"b": 3, "a": 1}));
        assert_eq!(value["list"], json!([{"a": 1, "b": 2}]));
    }

    #[test]
    fn a_document_never_becomes_much_larger_than_its_text() {
        let mut lines = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
        for level in 1..9 {
            lines.push(format!("a{level}: &a{level} [{}]", vec![format!("*a{}", level - 1); 10].join(", ")));
        }

        assert_eq!(json_of(&lines.join("\n")).unwrap_err(), "it has more than 20000 values");
    }

    #[test]
    fn a_key_that_occurs_twice_is_refused() {
        assert_eq!(json_of("a: 1\na: 2").unwrap_err(), "the key `a` occurs twice");
    }
}
