//! The XML format: `<tool_call>` with a `<name>` and `<params>`, one element for each argument.

use memchr::{memchr, memmem};
use serde_json::{Map, Value};

use super::super::boundary;
use super::super::declared_types::{DeclaredType, FindParameters, converted};
use super::super::tag::{After, TagMatch, closing_tag, opening_tag, opens_element, text_after};
use super::elements::{
    CDATA, CDATA_END, Flaw, TagHints, Token, TokenKind, Tree, UnclosedData, attribute, closing_tags, tokens,
};
use super::json::without_partial_tag;
use super::values::Values;
use super::{BlockEnd, BlockReading, CallBlock, CallSyntax, EndFinder, Opening, Start, StartKind};
use crate::call::{Repair, RepairKind, ToolCall};
use crate::json::parse;

const OUTER: &str = "tool_call";
const NAME: &str = "name";
const PARAMS: &str = "params";

/// Other elements that are allowed beside the name and the parameters, and ignored.
const IGNORED: [&str; 2] = ["reason", "id"];

/// `<tool_call><name>…</name><params>…</params></tool_call>`
#[derive(Debug)]
pub(super) struct Xml;

impl CallSyntax for Xml {
    fn name(&self) -> &'static str {
        "xml"
    }

    fn usage(&self) -> &'static str {
        "Write a call as <tool_call><name>TOOL</name><params><KEY><![CDATA[VALUE]]></KEY></params></tool_call>, \
         with every tag closed and every value in CDATA."
    }

    fn opens(&self, start: Start<'_>) -> Opening {
        if start.kind != StartKind::Tag {
            return Opening::No;
        }
        match opening_tag(start.rest, OUTER) {
            TagMatch::No => Opening::No,
            TagMatch::Unsure => Opening::Unsure,
            TagMatch::Yes(length) => match text_after(&start.rest[length..]) {
                After::Nothing => Opening::Unsure,
                // With prose after it the tag is only mentioned; JSON is a call in the wrong format.
                After::Text(rest) if rest.starts_with(['<', '{', '[']) => Opening::Yes("a <tool_call> with tags in it"),
                After::Text(_) => Opening::No,
            },
        }
    }

    fn end_finder(&self, block: &str) -> Box<dyn EndFinder> {
        Box::new(TagEnd::new(outer_tag(block)))
    }

    fn read(&self, block: &CallBlock<'_>, find: Option<&FindParameters<'_>>) -> BlockReading {
        let start = outer_tag(block.text);
        let end = if block.is_closed { block.text.rfind("</").unwrap_or(start) } else { block.text.len() };
        let inner = &block.text[start..end];
        if !inner.contains(char::is_alphanumeric) {
            return BlockReading::Prose;
        }
        let mut reader = XmlReader { name: String::new(), find };
        let call = match reader.read(&block.text[..start], inner) {
            Ok(call) => block.call(self, call),
            Err(flaw) => block.unreadable(self, &reader.name, flaw.what, start + flaw.at),
        };
        BlockReading::Calls(vec![finished(call, block.is_closed)])
    }

    fn cut_off(&self, block: &CallBlock<'_>, find: Option<&FindParameters<'_>>) -> BlockReading {
        let block = CallBlock { text: without_partial_tag(block.text, OUTER), ..*block };
        let is_ended = block.text.trim_end().ends_with("</params>");
        match self.read(&block, find) {
            // Nothing is missing but the closing tag, which is the one repair.
            BlockReading::Calls(calls) if is_ended && calls.iter().all(is_intact) => BlockReading::Calls(calls),
            _ => BlockReading::Calls(vec![block.truncated(self)]),
        }
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        let start = outer_tag(block);
        let written = block[start..].trim_start().strip_prefix("<name>").and_then(|rest| rest.split_once("</name>"));
        let written = written.map_or("", |(written, _)| written.trim());
        let plain = written.strip_prefix(CDATA).and_then(|rest| rest.strip_suffix(CDATA_END)).unwrap_or(written).trim();
        if plain.contains('<') { "" } else { plain }
    }

    fn as_dyn(&self) -> &dyn CallSyntax {
        self
    }
}

/// The length of the opening tag.
fn outer_tag(block: &str) -> usize {
    if let TagMatch::Yes(length) = opening_tag(block, OUTER) { length } else { 0 }
}

/// True for a call with no repair of its tags but the last.
fn is_intact(call: &ToolCall) -> bool {
    call.error.is_none() && call.repairs.iter().filter(|repair| repair.what == RepairKind::Tag).count() <= 1
}

fn finished(mut call: ToolCall, is_closed: bool) -> ToolCall {
    if !is_closed && call.error.is_none() {
        call.repairs.push(Repair::new(RepairKind::Tag, "the closing tag of <tool_call> was missing"));
    }
    call
}

/// The parser of one block.
struct XmlReader<'f, 'a> {
    /// The tool's name, as soon as it is known.
    name: String,
    find: Option<&'f FindParameters<'a>>,
}

impl XmlReader<'_, '_> {
    fn read(&mut self, outer: &str, inner: &str) -> Result<ToolCall, Flaw> {
        let tokens = tokens(inner).map_err(|UnclosedData(at)| Flaw::new("a CDATA section is not closed by ]]>", at))?;
        let closings = closing_tags(&tokens);
        let named = self.find_name(outer, inner, &tokens, &closings)?;
        self.name = named.name.to_owned();
        let document = self.find.and_then(|find| find(named.name));
        let hints = ToolTags { tag: named.tag, arguments: document.as_deref().map(DeclaredType::root) };
        let tree = Tree::build(inner, tokens, &closings, &hints)?;
        let mut values = Values::new(&tree);
        if let Some(repair) = named.repair {
            values.note_repair(RepairKind::Tag, repair);
        }
        let arguments = arguments(&mut values, &hints)?;
        let arguments = match &document {
            Some(document) => converted(arguments, document),
            None => Value::Object(arguments),
        };
        let (repairs, has_duplicate_keys) = (values.repairs, values.has_duplicates);
        Ok(ToolCall { arguments, repairs, has_duplicate_keys, ..ToolCall::new(named.name, Map::new()) })
    }

    /// Finds the tool's name before anything else is parsed, because its schema decides how the rest is read.
    fn find_name<'t>(
        &self,
        outer: &'t str,
        inner: &'t str,
        tokens: &[Token<'t>],
        closings: &[Option<u32>],
    ) -> Result<ToolName<'t>, Flaw> {
        let mut first = None;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let closing = closings[at].map(|closing| closing as usize);
            match (token.kind, token.name) {
                (TokenKind::Open | TokenKind::Empty, NAME) => {
                    let name = token.value.unwrap_or_else(|| name_text(inner, tokens, at));
                    return if name.is_empty() {
                        Err(Flaw::new("<name> is empty", token.start))
                    } else {
                        Ok(ToolName { name, tag: None, repair: None })
                    };
                }
                // If it is not closed, everything after it is inside it.
                (TokenKind::Open, PARAMS) if closing.is_none() => break,
                (TokenKind::Open | TokenKind::Empty, name) if name != PARAMS && !IGNORED.contains(&name) => {
                    first = first.or(Some((name, at)));
                }
                _ => {}
            }
            at = if token.kind == TokenKind::Open { closing.unwrap_or(at) + 1 } else { at + 1 };
        }
        if let Some(name) = outer_name(outer) {
            return Ok(ToolName { name, tag: None, repair: Some("the name stood in the tag <tool_call>".to_owned()) });
        }
        if let Some((name, at)) = first {
            let is_tool = match self.find {
                Some(find) => find(name).is_some(),
                None => tokens.get(at + 1).is_some_and(|token| token.name == PARAMS),
            };
            if is_tool {
                let repair = format!("the tool's name {name} was used as a tag instead of <name>");
                return Ok(ToolName { name, tag: Some(name), repair: Some(repair) });
            }
        }
        Err(Flaw::new("the call has no <name>", 0))
    }
}

/// The name of the tool, and where it was found.
struct ToolName<'t> {
    name: &'t str,
    /// The tag, if the tool's name was used as one.
    tag: Option<&'t str>,
    repair: Option<String>,
}

/// The text of the name, up to the next tag.
fn name_text<'t>(inner: &'t str, tokens: &[Token<'t>], at: usize) -> &'t str {
    let next = tokens.get(at + 1);
    if let Some(data) = next.filter(|next| next.kind == TokenKind::Data) {
        return data.name.trim();
    }
    inner[tokens[at].end..next.map_or(inner.len(), |next| next.start)].trim()
}

/// The attribute `name` of the opening tag.
fn outer_name(outer: &str) -> Option<&str> {
    let mut rest = outer.get(1 + OUTER.len()..)?;
    while let Some((key, value, after)) = attribute(rest.trim_start()) {
        if key == NAME && !value.is_empty() {
            return Some(value);
        }
        rest = after;
    }
    None
}

/// The tags that a tool's schema declares.
struct ToolTags<'s> {
    tag: Option<&'s str>,
    arguments: Option<DeclaredType<'s>>,
}

impl ToolTags<'_> {
    /// The path inside the arguments; `None` if it is outside.
    fn within<'p, 'n>(&self, path: &'p [&'n str]) -> Option<&'p [&'n str]> {
        match path {
            [tag, PARAMS, rest @ ..] if Some(*tag) == self.tag => Some(rest),
            [tag, rest @ ..] if Some(*tag) == self.tag => Some(rest),
            [PARAMS, rest @ ..] => Some(rest),
            _ => None,
        }
    }
}

impl TagHints for ToolTags<'_> {
    fn is_text(&self, path: &[&str], name: &str) -> bool {
        let Some(mut declared) = self.arguments else { return false };
        let path = match self.within(path) {
            Some([]) if name == PARAMS && self.tag.is_some() => return false,
            Some(path) => path,
            // Parameters beside the name.
            None if path.is_empty() && name != NAME && name != PARAMS && Some(name) != self.tag => path,
            None => return false,
        };
        for step in path.iter().copied().chain([name]) {
            let Some(next) = declared.entry(step).or_else(|| declared.item(0)) else { return false };
            declared = next;
        }
        declared.types().is_text()
    }

    fn belongs(&self, path: &[&str], name: &str) -> Option<bool> {
        if path.is_empty() {
            return Some(name == NAME || name == PARAMS || IGNORED.contains(&name));
        }
        match (self.within(path)?, self.arguments) {
            ([], Some(arguments)) => Some(arguments.has_property(name)),
            _ => None,
        }
    }
}

/// Reads the arguments, in `<params>` or beside it.
fn arguments(values: &mut Values<'_, '_>, hints: &ToolTags<'_>) -> Result<Map<String, Value>, Flaw> {
    let tree = values.tree;
    let mut found = Map::new();
    if tree.has_loose_text(None) {
        return Err(Flaw::new("there is text between the tags of the call", 0));
    }
    for root in &tree.roots {
        let token = tree.open_token(*root);
        match token.name {
            NAME => note_tag_repairs(values, *root),
            name if name == PARAMS || Some(name) == hints.tag => {
                let more = params(values, *root, hints)?;
                merge(values, more, &mut found);
            }
            name if IGNORED.contains(&name) && !hints.arguments.is_some_and(|all| all.has_property(name)) => {}
            name if hints.arguments.is_some_and(|all| all.has_property(name)) => {
                values.note_repair(RepairKind::Tag, format!("<{name}> stood outside of <params>"));
                let more = values.entries(&[*root], hints.arguments)?;
                merge(values, more, &mut found);
            }
            name => return Err(Flaw::new(format!("<{name}> stands outside of <params>"), token.start)),
        }
    }
    Ok(found)
}

fn merge(values: &mut Values<'_, '_>, more: Map<String, Value>, found: &mut Map<String, Value>) {
    for (key, value) in more {
        values.has_duplicates |= found.insert(key, value).is_some();
    }
}

fn note_tag_repairs(values: &mut Values<'_, '_>, element: usize) {
    let token = values.tree.open_token(element);
    if values.tree.elements[element].is_unclosed {
        values.note_repair(RepairKind::Tag, format!("the closing tag of <{}> was missing", token.name));
    }
    if token.is_repaired {
        values.note_repair(RepairKind::Tag, format!("<{}> was written in another way", token.name));
    }
}

/// Reads the arguments in one `<params>`, or in the tool's name used as a tag.
fn params(values: &mut Values<'_, '_>, element: usize, hints: &ToolTags<'_>) -> Result<Map<String, Value>, Flaw> {
    let tree = values.tree;
    note_tag_repairs(values, element);
    let children = &tree.elements[element].children;
    let name = |child: &usize| tree.open_token(*child).name;
    if children.is_empty() {
        return bare_params(values, element);
    }
    if tree.has_loose_text(Some(element)) {
        let what = format!("there is text between the tags of <{}>", tree.open_token(element).name);
        return Err(Flaw::new(what, tree.start(element)));
    }
    if let [only] = children.as_slice()
        && name(only) == PARAMS
        && tree.open_token(element).name != PARAMS
    {
        return params(values, *only, hints);
    }
    values.entries(children, hints.arguments)
}

/// Reads parameters without tags: nothing, or a JSON object.
fn bare_params(values: &mut Values<'_, '_>, element: usize) -> Result<Map<String, Value>, Flaw> {
    let held = values.tree.text_of(element);
    match held.stripped() {
        "" => Ok(Map::new()),
        text => match parse::parse(text) {
            Ok((Value::Object(arguments), has_duplicates)) => {
                values.has_duplicates |= has_duplicates;
                values.note_repair(RepairKind::Tag, "the parameters were written as JSON");
                Ok(arguments)
            }
            _ => Err(Flaw::new("<params> has text in it instead of tags", values.tree.start(element))),
        },
    }
}

/// The search for `</tool_call>` outside CDATA.
#[derive(Debug, Default)]
struct TagEnd {
    /// The end of the text that has been searched.
    at: usize,
    is_in_data: bool,
    /// The number of open elements.
    depth: usize,
    /// The number of open blocks in values of this one.
    nested: usize,
    has_elements: bool,
}

impl TagEnd {
    /// Starts after the opening tag.
    fn new(at: usize) -> Self {
        Self { at, ..Self::default() }
    }

    /// Skips a CDATA section; `false` if its end has not arrived.
    fn skip_data(&mut self, block: &str) -> bool {
        if let Some(length) = memmem::find(&block.as_bytes()[self.at..], CDATA_END.as_bytes()) {
            self.at += length + CDATA_END.len();
            self.is_in_data = false;
            return true;
        }
        // The end may have arrived in part.
        self.at = self.at.max(boundary(block, block.len().saturating_sub(CDATA_END.len() - 1)));
        false
    }

    /// Handles a `<`; `None` if more text is needed.
    fn step(&mut self, rest: &str, is_last: bool) -> Option<BlockEnd> {
        let is_markup = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'!' | b'/' | b'_') || !byte.is_ascii();
        if rest.as_bytes().get(1).is_some_and(|byte| !is_markup(*byte)) {
            self.at += 1;
            return Some(BlockEnd::Pending);
        }
        if CDATA.starts_with(&rest[..boundary(rest, CDATA.len())]) && rest.len() > 1 {
            if rest.len() < CDATA.len() && !is_last {
                return None;
            }
            self.is_in_data = rest.len() >= CDATA.len();
            self.at += CDATA.len().min(rest.len());
            return Some(BlockEnd::Pending);
        }
        match closing_tag(rest, OUTER) {
            TagMatch::Unsure => return None,
            TagMatch::Yes(length) if self.nested == 0 => {
                return Some(BlockEnd::After { length: self.at + length, is_closed: true });
            }
            TagMatch::Yes(length) => {
                self.nested -= 1;
                self.at += length;
                return Some(BlockEnd::Pending);
            }
            TagMatch::No => {}
        }
        match opening_tag(rest, OUTER) {
            TagMatch::Unsure => return None,
            TagMatch::Yes(_) if !self.has_elements => return Some(BlockEnd::Prose { length: self.at }),
            TagMatch::Yes(_) if self.depth == 0 => return Some(BlockEnd::After { length: self.at, is_closed: false }),
            TagMatch::Yes(length) => {
                self.nested += 1;
                self.at += length;
                return Some(BlockEnd::Pending);
            }
            TagMatch::No => {}
        }
        if rest.as_bytes().get(1) == Some(&b'/') {
            self.depth = self.depth.saturating_sub(1);
        } else {
            let opens = opens_element(rest)?;
            self.depth += usize::from(opens);
            self.has_elements |= opens;
        }
        self.at += 1;
        Some(BlockEnd::Pending)
    }
}

impl EndFinder for TagEnd {
    fn advance(&mut self, block: &str, is_last: bool) -> BlockEnd {
        loop {
            if self.is_in_data && !self.skip_data(block) {
                return BlockEnd::Pending;
            }
            let Some(length) = memchr(b'<', &block.as_bytes()[self.at..]) else {
                self.at = block.len();
                return BlockEnd::Pending;
            };
            self.at += length;
            match self.step(&block[self.at..], is_last) {
                Some(BlockEnd::Pending) => {}
                Some(end) => return end,
                None => return BlockEnd::Pending,
            }
        }
    }

    fn done(&self) -> usize {
        self.at
    }

    fn forget(&mut self, bytes: usize) {
        self.at -= bytes;
    }
}
