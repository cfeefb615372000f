//! Messages of a server: from bytes to messages of the protocol, in bounded time and memory.
//!
//! A message is scanned before anything is built of it. The scan finds its weight, the memory that its values would take; its
//! depth; and the parts of the envelope, also in a text that is not valid. A result stays text, and the code that asked for it
//! reads it: a list tool by tool, structured content only when the program asks for it.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;
use rmcp::model::{CustomResult, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value, json};

use super::EncodingErrors;
use crate::json::text::without_lone_surrogates;

/// The largest weight of a message, which is that of the Python objects of its values: a million numbers fit.
const MAX_WEIGHT: usize = 40 << 20;
/// The largest weight of a message that is no result: several trees are made of one.
const MAX_PARSED: usize = 2 << 20;
/// The largest weight of values that a tree is made of, which takes up to four times as much.
pub(super) const MAX_TREE: usize = 8 << 20;
/// The number of levels up to which a value can be parsed.
pub(super) const MAX_DEPTH: usize = 127;
/// The number of levels up to which a message is taken for one: a list may have one tool that is nested too deep.
const MAX_LEVELS: usize = 50_000;

/// The weights of values: approximate sizes of Python objects.
const SCALAR: usize = 32;
const KEY: usize = 48;
const ARRAY: usize = 96;
const OBJECT: usize = 224;

/// A message that cannot be read.
#[derive(Debug, PartialEq)]
pub(super) struct Unreadable {
    pub(super) reason: String,
    pub(super) kind: UnreadableKind,
}

/// The kind of a message that cannot be read, as far as its text shows it.
#[derive(Debug, PartialEq)]
pub(super) enum UnreadableKind {
    /// An answer, and the request that it names.
    Answer(Option<RequestId>),
    /// A request of the server.
    Request(RequestId, String),
    Other,
}

/// Reads the message in a line or a body; a batch has several.
pub(super) fn read(bytes: &[u8], errors: EncodingErrors) -> Vec<Result<ServerJsonRpcMessage, Unreadable>> {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let text = match (std::str::from_utf8(bytes), errors) {
        (Ok(text), _) => Cow::Borrowed(text),
        (Err(_), EncodingErrors::Replace) => String::from_utf8_lossy(bytes),
        (Err(_), EncodingErrors::Ignore) => bytes.utf8_chunks().map(|chunk| chunk.valid()).collect(),
        (Err(_), EncodingErrors::Strict) => {
            let text = String::from_utf8_lossy(bytes);
            let envelope = Envelope::new(outline(&text, ENVELOPE).members);
            return vec![Err(envelope.unreadable("it has bytes that are not UTF-8"))];
        }
    };
    if !text.trim_start().starts_with('[') {
        return vec![read_one(&text)];
    }
    let weight = outline(&text, []).weight;
    if weight > MAX_PARSED {
        return vec![Err(Unreadable { reason: TOO_MANY_VALUES.to_owned(), kind: UnreadableKind::Other })];
    }
    elements(&text).map(read_one).collect()
}

const TOO_MANY_VALUES: &str = "it has too many values";

fn read_one(text: &str) -> Result<ServerJsonRpcMessage, Unreadable> {
    let text: &str = &sound(text);
    let found = outline(text, ENVELOPE);
    let envelope = Envelope::new(found.members);
    if found.depth > MAX_LEVELS {
        return Err(envelope.unreadable(&format!("it is nested more than {MAX_LEVELS} levels deep")));
    }
    if found.weight > MAX_WEIGHT {
        return Err(envelope.unreadable(TOO_MANY_VALUES));
    }
    if !found.is_whole || envelope.version != Some("\"2.0\"") {
        return Err(envelope.unreadable("it is not a message of JSON-RPC 2.0"));
    }
    if let (None, Some(result), Some(id)) = (envelope.method, envelope.result, envelope.id()) {
        return match serde_json::from_str::<IgnoredAny>(result) {
            Ok(_) => Ok(JsonRpcMessage::response(text_result(result.to_owned()), id)),
            Err(error) => Err(envelope.unreadable(&format!("its result is not JSON: {error}"))),
        };
    }
    let message = parse::<Value>(text, MAX_PARSED).map_err(|reason| envelope.unreadable(&reason))?;
    message_of(message).ok_or_else(|| envelope.unreadable("it is not a message of the protocol"))
}

/// The members of a message that decide what it is.
const ENVELOPE: [&str; 5] = ["jsonrpc", "id", "method", "result", "error"];

struct Envelope<'a> {
    version: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    result: Option<&'a str>,
    error: Option<&'a str>,
}

impl<'a> Envelope<'a> {
    fn new([version, id, method, result, error]: [Option<&'a str>; 5]) -> Self {
        Self { version, id, method, result, error }
    }

    fn id(&self) -> Option<RequestId> {
        serde_json::from_str(self.id?).ok()
    }

    fn unreadable(&self, reason: &str) -> Unreadable {
        let method = self.method.and_then(|method| serde_json::from_str(method).ok());
        let kind = match (method, self.id()) {
            (Some(method), Some(id)) => UnreadableKind::Request(id, method),
            (None, id) if self.result.is_some() || self.error.is_some() => UnreadableKind::Answer(id),
            _ => UnreadableKind::Other,
        };
        Unreadable { reason: reason.to_owned(), kind }
    }
}

/// Reads a message that is not a result.
fn message_of(value: Value) -> Option<ServerJsonRpcMessage> {
    let Value::Object(mut entries) = value else { return None };
    if entries.contains_key("method") {
        return serde_json::from_value(Value::Object(entries)).ok();
    }
    let id = entries.remove("id").and_then(|id| serde_json::from_value::<RequestId>(id).ok());
    // An answer that says nothing is still the end of its request.
    let error = match (entries.remove("error"), &id) {
        (Some(error), _) => serde_json::from_value(error.clone()).unwrap_or_else(|_| invalid_answer(&error)),
        (None, Some(_)) => invalid_answer(&Value::Null),
        (None, None) => return None,
    };
    Some(JsonRpcMessage::error(error, id))
}

/// The error of an answer that has neither a result nor a valid error.
fn invalid_answer(error: &Value) -> ErrorData {
    const SHOWN: usize = 300;
    let error: String = error.to_string().chars().take(SHOWN).collect();
    ErrorData::internal_error(format!("the server sent an invalid answer, with the error {error}"), None)
}

/// A request of the server without its parameters, which are too large or broken. It is refused because they are missing.
pub(super) fn without_params(id: &RequestId, method: &str) -> Option<ServerJsonRpcMessage> {
    serde_json::from_value(json!({"jsonrpc": "2.0", "id": id, "method": method})).ok()
}

/// A result that stays text on its way through rmcp, which would try its types one by one and drop what it does not know.
fn text_result(text: String) -> ServerResult {
    ServerResult::CustomResult(CustomResult(Value::String(text)))
}

/// The same answer with a result by its type, which rmcp's transport needs of some; as it is if that is not possible.
pub(super) fn typed(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        JsonRpcMessage::Response(mut answer) => {
            if let ServerResult::CustomResult(CustomResult(Value::String(text))) = &answer.result
                && let Ok(result) = parse(text, MAX_PARSED)
            {
                answer.result = result;
            }
            JsonRpcMessage::Response(answer)
        }
        message => message,
    }
}

/// The text of a result.
pub(super) fn text_of_result(result: ServerResult) -> String {
    match result {
        ServerResult::CustomResult(CustomResult(Value::String(text))) => text,
        result => serde_json::to_string(&result).unwrap_or_default(),
    }
}

/// Parses JSON of a limited weight.
pub(super) fn parse<T: DeserializeOwned>(text: &str, max_weight: usize) -> Result<T, String> {
    let found = outline(text, []);
    if found.weight > max_weight {
        return Err(TOO_MANY_VALUES.to_owned());
    }
    if found.depth > MAX_DEPTH {
        return Err(format!("it is nested more than {MAX_DEPTH} levels deep"));
    }
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

/// The approximate size of a value, by the same weights as that of a text, with its strings.
pub(super) fn weight_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => SCALAR,
        Value::String(text) => SCALAR + text.len(),
        Value::Array(items) => ARRAY + items.iter().map(weight_of).sum::<usize>(),
        Value::Object(entries) => weight_of_object(entries),
    }
}

/// The same of an object.
pub(super) fn weight_of_object(entries: &Map<String, Value>) -> usize {
    let entries = entries.iter().map(|(name, value)| KEY + name.len() + weight_of(value));
    OBJECT + entries.sum::<usize>()
}

/// The result of a scan of JSON text, which need not be valid.
pub(super) struct Outline<'a, const N: usize> {
    /// The texts of members of the outermost object, in the order of the names that were asked for.
    pub(super) members: [Option<&'a str>; N],
    pub(super) weight: usize,
    pub(super) depth: usize,
    /// True if the text is one object, closed at its end.
    is_whole: bool,
}

/// Scans a text for the members of its outermost object.
pub(super) fn outline<'a, const N: usize>(text: &'a str, names: [&str; N]) -> Outline<'a, N> {
    let mut members = [None; N];
    let (mut weight, mut depth, mut deepest, mut is_whole) = (0, 0_usize, 0, false);
    // The member that is being scanned: its place among the names, and the start of its value.
    let mut open: Option<(usize, usize)> = None;
    let mut last_text: Option<Range<usize>> = None;
    for (token, place) in tokens(text) {
        if depth == 1 && matches!(token, Token::Comma | Token::Close(_)) {
            if let Some((member, start)) = open.take() {
                members[member] = Some(text[start..place.start].trim());
            }
        }
        is_whole = depth == 1 && token == Token::Close(b'}');
        match token {
            Token::Open(bracket) => {
                weight += if bracket == b'[' { ARRAY } else { OBJECT };
                depth += 1;
                deepest = deepest.max(depth);
            }
            Token::Close(_) => depth = depth.saturating_sub(1),
            Token::Colon => {
                // The text before it was a name.
                weight += KEY - SCALAR;
                if depth == 1
                    && open.is_none()
                    && let Some(name) = last_text.clone()
                    && let Some(member) = names.iter().position(|known| *known == &text[name.start + 1..name.end - 1])
                {
                    open = Some((member, place.end));
                }
            }
            Token::Text | Token::Scalar => weight += SCALAR,
            Token::Comma => {}
        }
        last_text = (token == Token::Text && place.len() > 1).then_some(place);
    }
    // The rest of a text that was cut off.
    if let Some((member, start)) = open {
        members[member] = Some(text[start..].trim());
    }
    let is_whole = is_whole && text.trim_start().starts_with('{');
    Outline { members, weight, depth: deepest, is_whole }
}

/// The elements of the outermost array of a text.
pub(super) fn elements(text: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut start) = (0_usize, None);
    tokens(text).filter_map(move |(token, place)| {
        let ends = depth == 1 && matches!(token, Token::Comma | Token::Close(_));
        let element = if ends { start.take().map(|start: usize| text[start..place.start].trim()) } else { None };
        if depth == 1 && !ends && start.is_none() {
            start = Some(place.start);
        }
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        element
    })
}

/// The number of members of the outermost object of a text.
pub(super) fn member_count(text: &str) -> usize {
    let mut depth = 0_usize;
    let is_member = |(token, _): &(Token, Range<usize>)| {
        match token {
            Token::Open(_) => depth += 1,
            Token::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        *token == Token::Colon && depth == 1
    };
    tokens(text).filter(is_member).count()
}

/// The text without white space between its values.
pub(super) fn compact(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    for (_, place) in tokens(text) {
        compact.push_str(&text[place]);
    }
    compact
}

/// JSON text in which numbers that JSON does not have are null, and halves of characters are replaced. Programs write both.
fn sound(text: &str) -> Cow<'_, str> {
    let whole = if text.contains("\\u") { without_lone_surrogates(text) } else { None };
    let text = whole.map_or(Cow::Borrowed(text), Cow::Owned);
    let is_foreign = |text: &str| matches!(text, "NaN" | "Infinity" | "-Infinity");
    if !["NaN", "Infinity"].iter().any(|word| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some()) {
        return text;
    }
    let (mut sound, mut kept) = (String::with_capacity(text.len()), 0);
    for (token, place) in tokens(&text) {
        if token == Token::Scalar && is_foreign(&text[place.clone()]) {
            sound.push_str(&text[kept..place.start]);
            sound.push_str("null");
            kept = place.end;
        }
    }
    sound.push_str(&text[kept..]);
    Cow::Owned(sound)
}

/// A part of JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    Text,
    /// A number or a word.
    Scalar,
}

/// The tokens of a text and their places. Every text has some; the last one may be cut off.
fn tokens(text: &str) -> impl Iterator<Item = (Token, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += bytes.get(at..)?.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let start = at;
        let token = match bytes[at] {
            bracket @ (b'[' | b'{') => Token::Open(bracket),
            bracket @ (b']' | b'}') => Token::Close(bracket),
            b',' => Token::Comma,
            b':' => Token::Colon,
            b'"' => Token::Text,
            _ => Token::Scalar,
        };
        at = match token {
            Token::Text => end_of_text(bytes, at + 1),
            Token::Scalar => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"[]{},:\"".contains(byte);
                bytes[at..].iter().position(is_end).map_or(bytes.len(), |length| at + length)
            }
            _ => at + 1,
        };
        Some((token, start..at))
    })
}

/// The end of a string that begins before `at`.
fn end_of_text(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<ServerJsonRpcMessage, Unreadable> {
        read(text.as_bytes(), EncodingErrors::Replace).pop().unwrap()
    }

    fn result_of(text: &str) -> String {
        match one(text).unwrap() {
            JsonRpcMessage::Response(answer) => text_of_result(answer.result),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_stays_text() {
        let text = r#" {"jsonrpc" : "2.0", "id": 7, "result": {"b": [1.50, {"id": "x"}], "a": "\"}"} } "#;

        assert_eq!(result_of(text), r#"{"b": [1.50, {"id": "x"}], "a": "\"}"}"#);
    }

    #[test]
    fn numbers_that_json_does_not_have_are_null_and_texts_keep_them() {
        let text = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[NaN,-Infinity ,\"NaN\",{\"NaN\":Infinity}]}";

        assert_eq!(result_of(text), r#"[null,null ,"NaN",{"NaN":null}]"#);
    }

    #[test]
    fn the_request_of_an_answer_is_found_in_a_broken_text() {
        let broken = [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"a":nothing}}"#, UnreadableKind::Answer(Some(RequestId::Number(7)))),
            (r#"{"jsonrpc":"2.0","result":{"id":3,"a":["#, UnreadableKind::Answer(None)),
            (r#"{"result":{},"id":"x"}"#, UnreadableKind::Answer(Some(RequestId::String("x".into())))),
            (
                r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":nothing}"#,
                UnreadableKind::Request(RequestId::Number(7), "ping".to_owned()),
            ),
            ("INFO result", UnreadableKind::Other),
            (r#"{"jsonrpc": "#, UnreadableKind::Other),
            ("\"", UnreadableKind::Other),
        ];
        for (text, kind) in broken {
            assert_eq!(one(text).unwrap_err().kind, kind, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced_or_refused() {
        let line = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"a\xffb\"}";

        let strict = read(line, EncodingErrors::Strict).pop().unwrap();

        assert_eq!(strict.unwrap_err().kind, UnreadableKind::Answer(Some(RequestId::Number(7))));
        for (errors, text) in [(EncodingErrors::Replace, "\"a\u{fffd}b\""), (EncodingErrors::Ignore, "\"ab\"")] {
            let JsonRpcMessage::Response(answer) = read(line, errors).pop().unwrap().unwrap() else { panic!() };
            assert_eq!(text_of_result(answer.result), text);
        }
    }

    #[test]
    fn millions_of_values_are_counted_and_never_built() {
        let answer = |values: String| format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"a":[{values}0]}}}}"#);
        let heavy = ["[],".repeat(5_000_000), "{},".repeat(4_000_000), "{\"a\":1},".repeat(200_000)];
        for values in heavy {
            let error = one(&answer(values)).unwrap_err();

            assert_eq!(error.kind, UnreadableKind::Answer(Some(RequestId::Number(7))));
            assert!(error.reason.contains("too many values"));
        }
        assert!(one(&answer("0.25,".repeat(1_000_000))).is_ok());
        assert!(one(&answer(format!("\"{}\",", "x".repeat(15 << 20)))).is_ok());
    }

    #[test]
    fn elements_and_compact_text_are_found_without_a_tree() {
        let text = r#" [ {"a": [1, 2]} , "b,c" ,[] ,-1.5 ] "#;

        assert_eq!(elements(text).collect::<Vec<_>>(), [r#"{"a": [1, 2]}"#, "\"b,c\"", "[]", "-1.5"]);
        assert_eq!(compact(text), r#"[{"a":[1,2]},"b,c",[],-1.5]"#);
        assert_eq!(elements("[]").count() + elements("7").count(), 0);
        assert_eq!(member_count(r#"{"a": {"b": 1}, "c:": [{"d": 2}]}"#), 2);
    }

    #[test]
    fn depth_does_not_use_the_stack() {
        let deep = |levels: usize| {
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{}{}}}"#, "[".repeat(levels), "]".repeat(levels))
        };

        assert!(one(&deep(1_000)).is_ok());
        assert!(one(&deep(100_000)).unwrap_err().reason.contains("levels"));
        assert!(parse::<Value>(&"[".repeat(1_000), MAX_TREE).unwrap_err().contains("levels"));
    }
}
