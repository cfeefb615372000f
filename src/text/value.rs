//! What elements stand for: text, lists and objects, by the declared types, or by their looks if nothing is declared.

use serde_json::{Map, Value};

use super::declared::{Declared, Types};
use super::limits::REPAIRS;
use super::number::guess;
use super::strict::reference;
use super::token::VALUE;
use super::tree::{Flaw, Tree};
use crate::call::{Repair, RepairKind};

/// What an element is called that stands for an item of a list.
const ITEM: &str = "item";

/// Reads the values of a tree and notes what was mended on the way.
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
    pub(super) fn mend(&mut self, what: RepairKind, text: impl Into<String>) {
        let repair = Repair::new(what, Into::<String>::into(text)).at(self.path.join("."));
        if self.repairs.len() < REPAIRS && !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }

    /// Elements as the entries of an object.
    pub(super) fn entries(
        &mut self,
        elements: &[usize],
        declared: Option<Declared<'_>>,
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

    /// The value of an element. `declared` is `None` if the tool is not known.
    pub(super) fn value(&mut self, element: usize, declared: Option<Declared<'_>>) -> Result<Value, Flaw> {
        let token = *self.tree.open_token(element);
        self.path.push(token.name);
        let this = &self.tree.elements[element];
        let (is_unclosed, is_text) = (this.is_unclosed, this.is_text);
        let children = this.children.as_slice();
        if is_unclosed {
            self.mend(RepairKind::Tag, format!("the closing tag of <{}> was missing", token.name));
        }
        if token.is_mended {
            self.mend(RepairKind::Tag, format!("<{}> was written in another way", token.name));
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

    fn leaf(&mut self, element: usize, declared: Option<Declared<'_>>) -> Result<Value, Flaw> {
        let token = *self.tree.open_token(element);
        let held = self.tree.text_of(element);
        if held.has_stray {
            self.mend(RepairKind::Markup, "a bare & or < was taken as it is");
        }
        if let Some(written) = token.value {
            if !held.stripped().is_empty() {
                let what = format!("<{}> has one value in its tag and another inside", token.name);
                return Err(Flaw::new(what, token.start));
            }
            return Ok(if declared.is_some() { Value::from(written) } else { guess(written) });
        }
        match token.said.filter(|_| held.stripped().is_empty()) {
            Some((VALUE, written)) => {
                self.mend(RepairKind::Tag, format!("the value of <{}> stood in an attribute", token.name));
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
        let stripped = held.stripped();
        let opens = |letter: char, of: Types| stripped.starts_with(letter) && (types.has(of) || types == Types::ANY);
        if (opens('[', Types::ARRAY) || opens('{', Types::OBJECT))
            && let Ok(parsed) = serde_json::from_str(stripped)
        {
            return Ok(parsed);
        }
        let is_meant = (types.has(Types::STRING) && !declared.is_listed()) || types == Types::ANY;
        Ok(Value::String(if is_meant { held.meant() } else { stripped.to_owned() }))
    }

    fn parts(&mut self, children: &[usize], declared: Option<Declared<'_>>) -> Result<Value, Flaw> {
        let types = declared.map_or(Types::ANY, Declared::types);
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

/// The text of an attribute.
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
