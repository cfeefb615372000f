//! Calls in the text of models: parsed, repaired, refused.

#![allow(clippy::expect_used)]

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib::call::{RepairKind, ToolCall};
use toolcrib::schema::{Document, Node};
use toolcrib::text::{TextFormat, parse};

mod code;
mod cuts;
mod declared;
mod dialects;
mod fuzz;
mod hostile;
mod repairs;

/// The cases that both suites read.
fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../data/xml_cases.json")).expect("the cases are JSON")
}

/// Calls in the form of the cases.
fn plain(calls: &[ToolCall]) -> Value {
    let plain = calls.iter().map(|call| json!({"name": call.name, "params": call.arguments}));
    plain.collect()
}

/// A tool `t` with these parameters, and no other.
fn tool(properties: &Value) -> impl Fn(&str) -> Option<Arc<Document>> + use<> {
    let schema = json!({"type": "object", "properties": properties});
    let document = Arc::new(Document::new(&Node::from(schema)));
    move |name| (name == "t").then(|| Arc::clone(&document))
}

/// A call of `t` with these parameters.
fn call(params: &str) -> String {
    format!("<tool_call><name>t</name><params>{params}</params></tool_call>")
}

/// The only call of a text.
fn only(text: &str, find: Option<&toolcrib::text::FindParameters<'_>>) -> ToolCall {
    let mut calls = parse(text, TextFormat::Xml, find);
    assert_eq!(calls.len(), 1, "{text}: {calls:?}");
    calls.remove(0)
}

#[test]
fn the_strict_cases_are_read_alike_where_nothing_is_lost() {
    // These lose keys, lose text, drop the call, or stand in a fence.
    let others = [
        "code_fence",
        "unclosed_call",
        "no_name",
        "empty_name",
        "params_text_only",
        "param_outside_params",
        "nested_dict_lost",
        "nested_two_levels",
        "mixed_content",
    ];
    for case in cases() {
        let (id, text) = (case["id"].as_str().expect("an id"), case["text"].as_str().expect("a text"));
        if id.starts_with("fb_") || others.contains(&id) {
            continue;
        }

        let calls = parse(text, TextFormat::Xml, None);

        assert_eq!(plain(&calls), case["calls"], "{id}");
        // That a name comes twice is nothing that was mended, but it is told.
        let mut repairs = calls.iter().flat_map(|call| &call.repairs);
        assert!(repairs.all(|repair| repair.what == RepairKind::Duplicate), "{id}: {calls:?}");
        assert!(calls.iter().all(|call| call.error.is_none()), "{id}: {calls:?}");
    }
}

#[test]
fn what_loses_arguments_in_artifactflow_is_an_error_or_read_in_full() {
    for (id, expected) in [
        ("no_name", None),
        ("empty_name", None),
        ("params_text_only", None),
        ("param_outside_params", None),
        ("unclosed_call", Some(json!({"x": 1}))),
        ("mixed_content", None),
        ("nested_dict_lost", Some(json!({"opts": {"depth": 2, "mode": "fast"}}))),
        ("nested_two_levels", Some(json!({"rows": [{"a": 1, "b": 2}, {"a": 3}]}))),
        ("fb_raw_lt", Some(json!({"a": "1 < 2"}))),
        ("fb_cdata_not_stripped", Some(json!({"bad": "a & b", "ok": "keep"}))),
        ("fb_trailing_after_cdata", Some(json!({"bad": "a & b", "ok": "mid tail"}))),
        ("fb_list", Some(json!({"bad": "a & b", "v": [1, "two"]}))),
        ("fb_attr_param", Some(json!({"bad": "a & b", "q": "hei"}))),
        ("fb_hyphen_param", Some(json!({"bad": "a & b", "max-results": 5}))),
        ("fb_name_cdata", Some(json!({"bad": "a & b"}))),
        ("fb_name_in_params", Some(json!({"name": "inner", "q": "a & b"}))),
        ("fb_unescaped_entity", Some(json!({"a": "x&nbsp;y"}))),
        ("fb_mismatched_close", None),
        ("fb_missing_params_close", Some(json!({"a": 1}))),
        ("fb_cdata_end_inside", Some(json!({"code": "a[b[01]]>"}))),
        ("fb_close_tag_in_cdata", Some(json!({"doc": "write </tool_call> to end"}))),
        ("fb_nested_tool_call", Some(json!({}))),
        ("fb_crlf", Some(json!({"bad": "a & b", "a": "l1\nl2"}))),
        ("fb_unclosed_cdata_tag", Some(json!({"id": "doc", "content": "long text"}))),
        ("fb_unclosed_cdata_tag_mid", Some(json!({"a": 1, "b": 2}))),
        ("fb_thinking_quote", Some(json!({"a": 1}))),
    ] {
        let case = cases().into_iter().find(|case| case["id"] == id).expect("a case");

        let call = only(case["text"].as_str().expect("a text"), None);

        assert_eq!(call.error.is_some(), expected.is_none(), "{id}: {call:?}");
        assert_eq!(call.arguments, expected.unwrap_or(json!({})), "{id}");
    }
}

#[test]
fn the_calls_with_repair_are_what_artifactflow_later_made_of_them() {
    for case in cases().iter().filter(|case| case.get("calls_with_repair").is_some()) {
        let calls = parse(case["text"].as_str().expect("a text"), TextFormat::AUTO, None);

        assert_eq!(plain(&calls), case["calls_with_repair"], "{}", case["id"]);
        assert!(!calls[0].repairs.is_empty(), "{}", case["id"]);
    }
}

#[test]
fn an_error_says_what_where_and_how() {
    let text = "One moment.\n\n  <tool_call>\n<name>t</name>\n<params>\n  <a>1</b>\n</params></tool_call>";

    let call = only(text, None);

    assert_eq!(
        call.error.expect("an error").to_string(),
        "</b> stands where </a> is expected at line 6 column 7. Write a call as \
         <tool_call><name>TOOL</name><params><KEY><![CDATA[VALUE]]></KEY></params></tool_call>, with every tag closed and \
         every value in CDATA."
    );
    assert_eq!(call.name, "t");
}
