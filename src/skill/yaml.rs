//! Reading single fields of a YAML mapping.
//!
//! The document is kept as a graph in which an alias is a reference, so that no document becomes larger than its text.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Parser, ScalarStyle, options};

use super::front_matter::Matter;

/// How deep a document may be nested.
const DEPTH: usize = 64;

enum Node {
    /// Text, or nothing at all where it stands for null.
    Scalar(Option<String>),
    Sequence(Vec<usize>),
    /// Keys and values in turn.
    Mapping(Vec<usize>),
}

/// A document whose fields can be asked for.
pub(super) struct Fields {
    nodes: Vec<Node>,
    root: Option<usize>,
}

/// Reads a document; the error says what is wrong with it.
pub(super) fn read(matter: &Matter) -> Result<Fields, String> {
    let options = options! { flow_nesting_limit: DEPTH, block_nesting_limit: DEPTH };
    let mut fields = Fields { nodes: Vec::new(), root: None };
    let mut open: Vec<usize> = Vec::new();
    let mut anchors: HashMap<usize, usize> = HashMap::new();
    for event in Parser::new_from_str_with_options(&matter.text, options) {
        let (event, span) = event.map_err(|error| {
            format!("line {}: {}", error.marker().line() + matter.line, error.info().replace('\n', " "))
        })?;
        let (node, anchor, is_open) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let is_null = style == ScalarStyle::Plain && matches!(&*text, "" | "~" | "null" | "Null" | "NULL");
                (Node::Scalar((!is_null).then(|| text.into_owned())), anchor, false)
            }
            Event::SequenceStart(_, anchor, _) => (Node::Sequence(Vec::new()), anchor, true),
            Event::MappingStart(_, anchor, _) => (Node::Mapping(Vec::new()), anchor, true),
            Event::Alias(anchor) => {
                let known = anchors.get(&anchor).copied().ok_or("an alias has no anchor")?;
                fields.put(&open, known);
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                continue;
            }
            Event::DocumentStart(..) if fields.root.is_some() => {
                return Err(format!("line {}: a second document begins", span.start.line() + matter.line));
            }
            _ => continue,
        };
        let index = fields.nodes.len();
        fields.nodes.push(node);
        anchors.insert(anchor, index);
        fields.put(&open, index);
        if is_open {
            open.push(index);
        }
    }
    Ok(fields)
}

impl Fields {
    fn put(&mut self, open: &[usize], index: usize) {
        match open.last().map(|parent| &mut self.nodes[*parent]) {
            Some(Node::Sequence(items) | Node::Mapping(items)) => items.push(index),
            _ => self.root = Some(index),
        }
    }

    /// The text of a field as it is written, or none if it is missing or null; the error says that it is not text.
    pub(super) fn text(&self, key: &str) -> Result<Option<String>, String> {
        let found = self.root.and_then(|root| self.find(root, key, &mut HashSet::new()));
        match found.map(|index| &self.nodes[index]) {
            None => Ok(None),
            Some(Node::Scalar(text)) => Ok(text.clone()),
            Some(Node::Sequence(_)) => Err(format!("`{key}` is a list and must be text")),
            Some(Node::Mapping(_)) => Err(format!("`{key}` is a mapping and must be text")),
        }
    }

    /// Finds the value of a key, the last one if there are several, also in the mappings that `<<` merges in.
    fn find(&self, index: usize, key: &str, seen: &mut HashSet<usize>) -> Option<usize> {
        // Merged mappings may merge others in turn, and so on around a circle.
        if seen.len() > DEPTH || !seen.insert(index) {
            return None;
        }
        match &self.nodes[index] {
            Node::Scalar(_) => None,
            Node::Sequence(items) => items.iter().find_map(|item| self.find(*item, key, seen)),
            Node::Mapping(pairs) => {
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
        matches!(&self.nodes[index], Node::Scalar(Some(text)) if text == wanted)
    }
}
