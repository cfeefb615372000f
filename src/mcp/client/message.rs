//! Messages of a server: from bytes to messages of the protocol, in bounded time and memory.
//!
//! A message is scanned before anything is built of it. The scan finds its weight, the memory that its values would take; its
//! depth; and the parts of the envelope, also in a text that is not valid. A result stays text, and the code that asked for it
//! reads it: a list tool by tool, structured content only when the program asks for it.

use std::borrow::Cow;

use rmcp::model::{CustomResult, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};

use super::EncodingErrors;
use crate::json::text::without_lone_surrogates;
use crate::mcp::outline::{TOO_MANY_VALUES, Token, elements, outline, tokens};

/// The largest weight of a message, which is that of the Python objects of its values: a million numbers fit.
const MAX_WEIGHT: usize = 40 << 20;
/// The largest weight of a message other than a result: several trees are made of one.
const MAX_PARSED: usize = 2 << 20;
/// The largest number of messages in a batch.
const MAX_BATCH: usize = 10_000;
/// The number of levels up to which a message is taken for one: a list may have one tool that is nested too deep.
const MAX_LEVELS: usize = 50_000;

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
    let mut room = Room { all: MAX_WEIGHT, parsed: MAX_PARSED };
    if !text.trim_start().starts_with('[') {
        return vec![read_one(&text, &mut room)];
    }
    let mut batch = elements(&text);
    let mut messages: Vec<_> = batch.by_ref().take(MAX_BATCH).map(|text| read_one(text, &mut room)).collect();
    if batch.next().is_some() {
        let reason = format!("it is a batch of more than {MAX_BATCH} messages");
        messages.push(Err(Unreadable { reason, kind: UnreadableKind::Other }));
    }
    messages
}

/// The weights that the messages of a line or a body may still have.
struct Room {
    all: usize,
    parsed: usize,
}

fn read_one(text: &str, room: &mut Room) -> Result<ServerJsonRpcMessage, Unreadable> {
    let found = outline(text, ENVELOPE);
    let envelope = Envelope::new(found.members);
    if found.depth > MAX_LEVELS {
        return Err(envelope.unreadable(&format!("it is nested more than {MAX_LEVELS} levels deep")));
    }
    room.all = room.all.checked_sub(found.weight).ok_or_else(|| envelope.unreadable(TOO_MANY_VALUES))?;
    if !found.is_whole || envelope.version != Some("\"2.0\"") {
        return Err(envelope.unreadable("it is not a message of JSON-RPC 2.0"));
    }
    if let (None, Some(result), Some(id)) = (envelope.method, envelope.result, envelope.id()) {
        let result = sound(result).into_owned();
        return match serde_json::from_str::<IgnoredAny>(&result) {
            Ok(_) => Ok(JsonRpcMessage::response(text_result(result), id)),
            Err(error) => Err(envelope.unreadable(&format!("its result is not JSON: {error}"))),
        };
    }
    let message = parse::<Value>(&sound(text), room.parsed).map_err(|reason| envelope.unreadable(&reason))?;
    room.parsed = room.parsed.saturating_sub(found.weight);
    message_of(message, envelope.error).ok_or_else(|| envelope.unreadable("it is not a message of the protocol"))
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

    fn is_answer(&self) -> bool {
        self.result.is_some() || self.error.is_some()
    }

    fn unreadable(&self, reason: &str) -> Unreadable {
        let method = self.method.and_then(|method| serde_json::from_str(method).ok());
        let kind = match (method, self.id()) {
            (Some(method), Some(id)) => UnreadableKind::Request(id, method),
            // Lines of a log have such members too.
            (None, id) if self.is_answer() && (self.version.is_some() || id.is_some()) => UnreadableKind::Answer(id),
            _ => UnreadableKind::Other,
        };
        Unreadable { reason: reason.to_owned(), kind }
    }
}

/// Reads a message that is not a result, with the text of its error.
fn message_of(value: Value, error_text: Option<&str>) -> Option<ServerJsonRpcMessage> {
    let Value::Object(mut entries) = value else { return None };
    if entries.contains_key("method") {
        return serde_json::from_value(Value::Object(entries)).ok();
    }
    let id = entries.remove("id").and_then(|id| serde_json::from_value::<RequestId>(id).ok());
    // An answer that says nothing is still the end of its request.
    let error = match (entries.remove("error"), &id) {
        (Some(error), _) => serde_json::from_value(error).unwrap_or_else(|_| invalid_answer(error_text)),
        (None, Some(_)) => invalid_answer(None),
        (None, None) => return None,
    };
    Some(JsonRpcMessage::error(error, id))
}

/// The error of an answer that has neither a result nor a valid error.
fn invalid_answer(error: Option<&str>) -> ErrorData {
    const SHOWN: usize = 300;
    let error: String = error.unwrap_or("null").chars().take(SHOWN).collect();
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
    if let Some(problem) = found.problem() {
        return Err(problem);
    }
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::outline::MAX_TREE;

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
            (r#"{"level":"warn","error":"cache miss"}"#, UnreadableKind::Other),
            (r#"INFO {"result": 5}"#, UnreadableKind::Other),
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
    fn the_answers_of_a_batch_have_the_limits_of_one_answer_together() {
        let answer = |id: usize, count: usize| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":[{}0]}}}}"#, "0,".repeat(count))
        };
        let batch = |answers: &[String]| read(format!("[{}]", answers.join(",")).as_bytes(), EncodingErrors::Replace);

        let large = batch(&[answer(1, 100_000), answer(2, 800_000), answer(3, 800_000), answer(4, 7)]);
        let long = batch(&vec!["7".to_owned(); 100_000]);

        let kinds: Vec<_> = large.into_iter().map(|read| read.map_err(|unreadable| unreadable.kind).err()).collect();
        assert_eq!(kinds, [None, None, Some(UnreadableKind::Answer(Some(RequestId::Number(3)))), None]);
        assert_eq!(long.len(), MAX_BATCH + 1);
        assert!(long.last().unwrap().as_ref().unwrap_err().reason.contains("batch"));
    }

    #[test]
    fn numbers_that_python_cannot_read_are_refused_and_long_ones_are_heavy() {
        let parsed = |number: String| parse::<Value>(&format!("[{number}]"), MAX_TREE);
        let many =
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":[{}0]}}"#, format!("{},", "1".repeat(4000)).repeat(3000));

        assert!(parsed("1".repeat(4301)).unwrap_err().contains("4300 digits"));
        assert!(parsed("1".repeat(4300)).is_ok() && parsed(format!("-{}", "1".repeat(4300))).is_ok());
        assert!(one(&many).unwrap_err().reason.contains("too many values"));
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
