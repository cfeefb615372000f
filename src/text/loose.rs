//! ArtifactFlow's way out when a block is not XML: patterns that take what looks like a call and drop the rest.
//!
//! It loses arguments, and is here because a program may count on what it gives. Nothing but the compatible reading uses it.

use std::collections::HashMap;

use memchr::{memchr_iter, memmem};
use serde_json::{Map, Value};

use super::number::{guess, strip};

/// Reads what stands between the outer tags; `None` if there is no name at all.
pub(super) fn read(inner: &str) -> Option<(String, Map<String, Value>)> {
    let name = strip(between(inner, "<name>", "</name>")?).to_owned();
    let params = between(inner, "<params>", "</params>").unwrap_or("");
    let arguments = pairs(params).into_iter().map(|(tag, content)| (tag.to_owned(), value(content)));
    Some((name, arguments.collect()))
}

/// What stands between an opening and the first closing after it.
fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let start = memmem::find(text.as_bytes(), open.as_bytes())? + open.len();
    let length = memmem::find(&text.as_bytes()[start..], close.as_bytes())?;
    Some(&text[start..start + length])
}

/// Every plain tag with what stands between it and the next closing tag of its name, none inside another.
fn pairs(text: &str) -> Vec<(&str, &str)> {
    let mut closings: HashMap<&str, Vec<usize>> = HashMap::new();
    for at in memchr_iter(b'<', text.as_bytes()) {
        if let Some(name) = text[at + 1..].strip_prefix('/').and_then(plain_tag) {
            closings.entry(name).or_default().push(at);
        }
    }
    let (mut found, mut from) = (Vec::new(), 0);
    for at in memchr_iter(b'<', text.as_bytes()) {
        let Some(name) = plain_tag(&text[at + 1..]).filter(|_| at >= from) else { continue };
        let start = at + name.len() + "<>".len();
        let Some(places) = closings.get(name) else { continue };
        if let Some(end) = places.get(places.partition_point(|place| *place < start)) {
            found.push((name, &text[start..*end]));
            from = end + name.len() + "</>".len();
        }
    }
    found
}

/// The name of the plain tag whose opening bracket is gone.
fn plain_tag(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'))?;
    (end > 0 && text[end..].starts_with('>')).then(|| &text[..end])
}

fn value(content: &str) -> Value {
    let has_tag = memchr_iter(b'<', content.as_bytes()).any(|at| plain_tag(&content[at + 1..]).is_some());
    if has_tag { pairs(content).into_iter().map(|(_, item)| scalar(item)).collect() } else { scalar(content) }
}

/// The first CDATA section as it is, or the text without blanks around.
fn scalar(content: &str) -> Value {
    guess(between(content, "<![CDATA[", "]]>").unwrap_or_else(|| strip(content)))
}
