//! ArtifactFlow's format: `<tool_call>` with a `<name>` and `<params>`, one element for each argument.

use serde_json::{Map, Value};

use super::declared::{Declared, converted};
use super::ending::TagEnd;
use super::opening::{After, Tag, after, tag};
use super::token::{CDATA, CDATA_END, Kind, OpenData, Token, attribute, tokens};
use super::tree::{Expect, Flaw, Tree, mates};
use super::value::Values;
use super::{At, Block, Ending, Find, Opening, Reading, Spot, TextFormat};
use crate::call::{Repair, RepairKind, ToolCall};

pub(super) const HOW: &str = "Write a call as <tool_call><name>TOOL</name><params><KEY><![CDATA[VALUE]]></KEY></params></tool_call>, \
                              with every tag closed and every value in CDATA.";

const NAME: &str = "name";
const PARAMS: &str = "params";

/// What may stand beside the name and the parameters without being one of them.
const BESIDES: [&str; 2] = ["reason", "id"];

/// `<tool_call><name>…</name><params>…</params></tool_call>`
#[derive(Debug)]
pub(super) struct Xml;

impl TextFormat for Xml {
    fn word(&self) -> &'static str {
        "xml"
    }

    fn how(&self) -> &'static str {
        HOW
    }

    fn opens(&self, at: At<'_>) -> Opening {
        if at.spot != Spot::Tag {
            return Opening::No;
        }
        match tag(at.rest, "tool_call") {
            Tag::No => Opening::No,
            Tag::Unsure => Opening::Unsure,
            Tag::Yes(length) => match after(&at.rest[length..]) {
                After::Nothing => Opening::Unsure,
                // Words after it only speak of it; JSON is a call in the wrong format.
                After::Text(rest) if rest.starts_with(['<', '{', '[']) => Opening::Yes("a <tool_call> with tags in it"),
                After::Text(_) => Opening::No,
            },
        }
    }

    fn ending(&self, block: &str) -> Box<dyn Ending> {
        Box::new(TagEnd::new(outer_tag(block)))
    }

    fn read(&self, block: &Block<'_>, find: Option<&Find<'_>>) -> Reading {
        let start = outer_tag(block.text);
        let end = if block.is_closed { block.text.rfind("</").unwrap_or(start) } else { block.text.len() };
        let inner = &block.text[start..end];
        if !inner.contains(char::is_alphanumeric) {
            return Reading::Prose;
        }
        let mut draft = Draft { name: String::new(), find };
        let call = match draft.read(&block.text[..start], inner) {
            Ok(call) => block.call(self, call),
            Err(flaw) => block.unreadable(self, &draft.name, flaw.what, start + flaw.at),
        };
        Reading::Calls(vec![finished(call, block.is_closed)])
    }

    fn name_in<'t>(&self, block: &'t str) -> &'t str {
        let start = outer_tag(block);
        let written = block[start..].trim_start().strip_prefix("<name>").and_then(|rest| rest.split_once("</name>"));
        let written = written.map_or("", |(written, _)| written.trim());
        let plain = written.strip_prefix(CDATA).and_then(|rest| rest.strip_suffix(CDATA_END)).unwrap_or(written).trim();
        if plain.contains('<') { "" } else { plain }
    }

    fn as_dyn(&self) -> &dyn TextFormat {
        self
    }
}

/// How long the opening tag is.
fn outer_tag(block: &str) -> usize {
    if let Tag::Yes(length) = tag(block, "tool_call") { length } else { 0 }
}

fn finished(mut call: ToolCall, is_closed: bool) -> ToolCall {
    if !is_closed && call.error.is_none() {
        call.repairs.push(Repair::new(RepairKind::Tag, "the closing tag of <tool_call> was missing"));
    }
    call
}

/// A call that is being read.
struct Draft<'f, 'a> {
    /// The tool's name as soon as it is known.
    name: String,
    find: Option<&'f Find<'a>>,
}

impl Draft<'_, '_> {
    fn read(&mut self, outer: &str, inner: &str) -> Result<ToolCall, Flaw> {
        let tokens = tokens(inner).map_err(|OpenData(at)| Flaw::new("a CDATA section is not closed by ]]>", at))?;
        let mates = mates(&tokens);
        let named = self.named(outer, inner, &tokens, &mates)?;
        self.name = named.name.to_owned();
        let document = self.find.and_then(|find| find(named.name));
        let expected = Expected { tag: named.tag, arguments: document.as_deref().map(Declared::root) };
        let tree = Tree::build(inner, tokens, &mates, &expected)?;
        let mut values = Values::new(&tree);
        if let Some(repair) = named.repair {
            values.mend(RepairKind::Tag, repair);
        }
        let arguments = arguments(&mut values, &expected)?;
        let arguments = match &document {
            Some(document) => converted(arguments, document),
            None => Value::Object(arguments),
        };
        let (repairs, has_duplicate_keys) = (values.repairs, values.has_duplicates);
        Ok(ToolCall { arguments, repairs, has_duplicate_keys, ..ToolCall::new(named.name, Map::new()) })
    }

    /// Finds out which tool is meant, before anything else is read: its schema says how to read the rest.
    fn named<'t>(
        &self,
        outer: &'t str,
        inner: &'t str,
        tokens: &[Token<'t>],
        mates: &[Option<u32>],
    ) -> Result<Named<'t>, Flaw> {
        let mut first = None;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let mate = mates[at].map(|mate| mate as usize);
            match (token.kind, token.name) {
                (Kind::Open | Kind::Empty, NAME) => {
                    let name = token.value.unwrap_or_else(|| name_text(inner, tokens, at));
                    return if name.is_empty() {
                        Err(Flaw::new("<name> is empty", token.start))
                    } else {
                        Ok(Named { name, tag: None, repair: None })
                    };
                }
                // If it is not closed, all that follows is inside of it.
                (Kind::Open, PARAMS) if mate.is_none() => break,
                (Kind::Open | Kind::Empty, name) if name != PARAMS && !BESIDES.contains(&name) => {
                    first = first.or(Some((name, at)));
                }
                _ => {}
            }
            at = if token.kind == Kind::Open { mate.unwrap_or(at) + 1 } else { at + 1 };
        }
        if let Some(name) = outer_name(outer) {
            return Ok(Named { name, tag: None, repair: Some("the name stood in the tag <tool_call>".to_owned()) });
        }
        if let Some((name, at)) = first {
            let is_tool = match self.find {
                Some(find) => find(name).is_some(),
                None => tokens.get(at + 1).is_some_and(|token| token.name == PARAMS),
            };
            if is_tool {
                let repair = format!("the tool's name {name} was used as a tag instead of <name>");
                return Ok(Named { name, tag: Some(name), repair: Some(repair) });
            }
        }
        Err(Flaw::new("the call has no <name>", 0))
    }
}

/// Which tool is meant, and how that was said.
struct Named<'t> {
    name: &'t str,
    /// The tag that the tool's name was used as.
    tag: Option<&'t str>,
    repair: Option<String>,
}

/// The text of the name, up to whatever follows it.
fn name_text<'t>(inner: &'t str, tokens: &[Token<'t>], at: usize) -> &'t str {
    let next = tokens.get(at + 1);
    if let Some(data) = next.filter(|next| next.kind == Kind::Data) {
        return data.name.trim();
    }
    inner[tokens[at].end..next.map_or(inner.len(), |next| next.start)].trim()
}

fn outer_name(outer: &str) -> Option<&str> {
    let mut rest = outer.get("<tool_call".len()..)?;
    while let Some((key, value, after)) = attribute(rest.trim_start()) {
        if key == NAME && !value.is_empty() {
            return Some(value);
        }
        rest = after;
    }
    None
}

/// What the tool's schema says about the tags.
struct Expected<'s> {
    tag: Option<&'s str>,
    arguments: Option<Declared<'s>>,
}

impl Expected<'_> {
    /// The path inside of the arguments; `None` if it is outside.
    fn within<'p, 'n>(&self, path: &'p [&'n str]) -> Option<&'p [&'n str]> {
        match path {
            [tag, PARAMS, rest @ ..] if Some(*tag) == self.tag => Some(rest),
            [tag, rest @ ..] if Some(*tag) == self.tag => Some(rest),
            [PARAMS, rest @ ..] => Some(rest),
            _ => None,
        }
    }
}

impl Expect for Expected<'_> {
    fn is_text(&self, path: &[&str], name: &str) -> bool {
        let Some(mut declared) = self.arguments else { return false };
        let path = match self.within(path) {
            Some([]) if name == PARAMS && self.tag.is_some() => return false,
            Some(path) => path,
            // Parameters that stand beside the name.
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
            return Some(name == NAME || name == PARAMS || BESIDES.contains(&name));
        }
        match (self.within(path)?, self.arguments) {
            ([], Some(arguments)) => Some(arguments.names_it(name)),
            _ => None,
        }
    }
}

/// The arguments, wherever they stand.
fn arguments(values: &mut Values<'_, '_>, expected: &Expected<'_>) -> Result<Map<String, Value>, Flaw> {
    let tree = values.tree;
    let mut found = Map::new();
    if tree.has_loose_text(None) {
        return Err(Flaw::new("there is text between the tags of the call", 0));
    }
    for root in &tree.roots {
        let token = tree.open_token(*root);
        match token.name {
            NAME => mend_tag(values, *root),
            name if name == PARAMS || Some(name) == expected.tag => {
                let more = params(values, *root, expected)?;
                merge(values, more, &mut found);
            }
            name if BESIDES.contains(&name) && !expected.arguments.is_some_and(|all| all.names_it(name)) => {}
            name if expected.arguments.is_some_and(|all| all.names_it(name)) => {
                values.mend(RepairKind::Tag, format!("<{name}> stood outside of <params>"));
                let more = values.entries(&[*root], expected.arguments)?;
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

fn mend_tag(values: &mut Values<'_, '_>, element: usize) {
    let token = values.tree.open_token(element);
    if values.tree.elements[element].is_unclosed {
        values.mend(RepairKind::Tag, format!("the closing tag of <{}> was missing", token.name));
    }
    if token.is_mended {
        values.mend(RepairKind::Tag, format!("<{}> was written in another way", token.name));
    }
}

/// The arguments of one `<params>`, or of the tool's name in its place.
fn params(values: &mut Values<'_, '_>, element: usize, expected: &Expected<'_>) -> Result<Map<String, Value>, Flaw> {
    let tree = values.tree;
    mend_tag(values, element);
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
        return params(values, *only, expected);
    }
    values.entries(children, expected.arguments)
}

/// Parameters without a tag: nothing, or an object as JSON.
fn bare_params(values: &mut Values<'_, '_>, element: usize) -> Result<Map<String, Value>, Flaw> {
    let held = values.tree.text_of(element);
    match held.stripped() {
        "" => Ok(Map::new()),
        text => match serde_json::from_str(text) {
            Ok(Value::Object(arguments)) => {
                values.mend(RepairKind::Tag, "the parameters were written as JSON");
                Ok(arguments)
            }
            _ => Err(Flaw::new("<params> has text in it instead of tags", values.tree.start(element))),
        },
    }
}
