//! The other ways to write a call, and finding out which it is.

use serde_json::{Value, json};
use toolcrib::call::ToolCall;
use toolcrib::text::{CallFormat, Parser, TextFormat, TextPiece, parse};

use super::cuts::joined;
use super::tool;

/// A message in each format that calls `t` with `{"city": "Oslo", "days": 3}`.
const MESSAGES: [(&str, &str); 14] = [
    ("xml", "<tool_call>\n<name>t</name><params><city>Oslo</city><days>3</days></params></tool_call>"),
    ("hermes", "<tool_call>\n{\"name\": \"t\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n</tool_call>"),
    ("hermes", "<tool_call>{'name': 't', 'arguments': {'city': 'Oslo', 'days': 3,}}</tool_call>"),
    (
        "hermes",
        "<tool_call>[{\"name\": \"t\", \"parameters\": \"{\\\"city\\\": \\\"Oslo\\\", \\\"days\\\": 3}\"}]</tool_call>",
    ),
    ("function", "<function=t>{\"city\": \"Oslo\", \"days\": 3}</function>"),
    ("function", "<function=t>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>"),
    (
        "function",
        "<tool_call>\n<function=t>\n<parameter=city>Oslo</parameter><parameter=days>3</parameter></function>\n</tool_call>",
    ),
    (
        "invoke",
        "<invoke name=\"t\"><parameter name=\"city\">Oslo</parameter><parameter name=\"days\">3</parameter></invoke>",
    ),
    (
        "invoke",
        "<function_calls>\n<invoke name='t'>\n<parameter name='city' string=\"true\">Oslo</parameter>\n\
         <parameter name='days'>3</parameter>\n</invoke>\n</function_calls>",
    ),
    ("fenced", "```tool_call\n{\"name\": \"t\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n```"),
    ("fenced", "~~~json\n{\"name\": \"t\", \"parameters\": {\"city\": \"Oslo\", \"days\": 3}}\n~~~\n"),
    ("react", "Thought: let me see.\nAction: t\nAction Input: {\"city\": \"Oslo\", \"days\": 3}\nObservation: fine"),
    ("react", "Action: `t`\n\nAction Input:\n```json\n{\"city\": \"Oslo\", \"days\": 3}\n```\n"),
    ("react", "  Action: t\n  Action Input: {city: 'Oslo', days: 3}"),
];

fn weather() -> impl Fn(&str) -> Option<std::sync::Arc<toolcrib::schema::Document>> {
    tool(&json!({"city": {"type": "string"}, "days": {"type": "integer"}}))
}

fn format(name: &str) -> Option<TextFormat> {
    let Some(CallFormat::Text(format)) = CallFormat::parse(name) else { panic!("{name} is not a text format") };
    format
}

fn text_of(pieces: Vec<TextPiece>) -> String {
    let texts =
        pieces.into_iter().filter_map(|piece| if let TextPiece::Text(text) = piece { Some(text) } else { None });
    texts.collect()
}

fn only(text: &str, word: &str) -> ToolCall {
    let find = weather();
    let mut calls = parse(text, format(word), Some(&find));
    assert_eq!(calls.len(), 1, "{text}: {calls:?}");
    calls.remove(0)
}

#[test]
fn every_format_is_read_when_it_is_asked_for() {
    for (word, text) in MESSAGES {
        let call = only(text, word);

        assert_eq!(call.error, None, "{text}");
        assert_eq!(call.name, "t", "{text}");
        assert_eq!(call.arguments, json!({"city": "Oslo", "days": 3}), "{text}");
        assert_eq!(call.format, word, "{text}");
    }
}

#[test]
fn every_format_is_found() {
    let find = weather();
    for (word, text) in MESSAGES {
        if text.starts_with("~~~json") {
            continue;
        }
        let mut parser = Parser::new(TextFormat::AUTO);

        let mut pieces = parser.feed(text, Some(&find));
        pieces.extend(parser.finish(Some(&find)));

        let calls =
            pieces.iter().filter(|piece| matches!(piece, TextPiece::Call(call) if call.error.is_none())).count();
        assert_eq!((calls, parser.report().format), (1, Some(word)), "{text}");
        assert!(!parser.report().why.is_empty());
    }
}

#[test]
fn wrappers_are_no_prose() {
    for (word, text) in MESSAGES.iter().filter(|(word, _)| matches!(*word, "function" | "invoke")) {
        for asked in [*word, "auto"] {
            let mut parser = Parser::new(format(asked));

            let mut pieces = parser.feed(text, None);
            pieces.extend(parser.finish(None));

            assert_eq!(text_of(joined(pieces)).trim(), "", "{text}");
        }
    }
}

#[test]
fn the_first_certain_call_decides() {
    let text = "<function=t>{}</function> and <tool_call><name>t</name></tool_call>";
    let mut parser = Parser::new(TextFormat::AUTO);

    let mut pieces = parser.feed(text, None);
    pieces.extend(parser.finish(None));

    assert_eq!(parser.report().format, Some("function"));
    assert_eq!(parser.report().calls, 1);
    assert_eq!(parser.report().at.map(|place| (place.line, place.column)), Some((1, 1)));
}

#[test]
fn json_in_a_fence_is_a_call_only_if_that_was_asked_for() {
    let find = weather();
    let text = "```json\n{\"name\": \"t\", \"parameters\": {\"days\": 1}}\n```\n";
    let both = format!("```tool-call\n{{\"name\": \"t\", \"arguments\": {{}}}}\n```\n{text}");

    assert_eq!(parse(text, TextFormat::AUTO, Some(&find)), []);
    assert_eq!(parse(&both, TextFormat::AUTO, Some(&find)).len(), 1);
    assert_eq!(parse(text, TextFormat::Fenced, Some(&find)).len(), 1);
    assert_eq!(parse("```json\n{\"a\": 1}\n```\n", TextFormat::Fenced, Some(&find)), []);
}

#[test]
fn what_is_no_call_comes_through() {
    let text = "see\n```json\n{\"a\": 1}\n```\nand\nAction: none\nso be it <function> <invoke> <tool_calls>";
    for word in ["auto"].into_iter().chain(TextFormat::ALL.map(TextFormat::as_str)) {
        let mut parser = Parser::new(format(word));

        let mut pieces = parser.feed(text, None);
        pieces.extend(parser.finish(None));

        assert_eq!(joined(pieces), [TextPiece::Text(text.to_owned())], "{word}");
    }
}

#[test]
fn what_cannot_be_read_is_an_error_with_its_place() {
    for (word, text, what) in [
        ("hermes", "<tool_call><name>t</name></tool_call>", "the arguments are not valid JSON: expected value"),
        (
            "hermes",
            "<tool_call>{\"name\": \"t\", \"city\": \"Oslo\"}</tool_call>",
            "the arguments do not stand in \"arguments\"",
        ),
        (
            "hermes",
            "<tool_call>{\"name\": \"t\", \"arguments\": {\"city\": \"Os</tool_call>",
            "it was not run, because the JSON is not complete",
        ),
        (
            "hermes",
            "<tool_call>{\"name\": \"t\", \"arguments\": \"{\\\"city\\\": \\\"Os\"}</tool_call>",
            "it was not run, because the JSON is not complete",
        ),
        ("function", "<function=t>{\"city\": \"Oslo\"</function>", "it was not run, because the JSON is not complete"),
        ("function", "<function=t>words</function>", "there is text outside of the parameters"),
        ("function", "<function=>{}</function>", "the call has no name"),
        ("invoke", "<invoke id=\"x\"></invoke>", "the call has no name"),
        ("fenced", "```tool_call\nnothing\n```", "the arguments are not valid JSON: expected ident"),
        ("react", "Action: t\nAction Input: two words\n", "the input is not a JSON object"),
        (
            "react",
            "Action: t\nAction Input: {\"city\": \"Os",
            "it was not run, because the text ends inside of the call",
        ),
        ("function", "<function=t><parameter=city>Os", "it was not run, because the text ends inside of the call"),
        (
            "invoke",
            "<invoke name=\"t\"><parameter name=\"city\">Oslo</parameter>",
            "it was not run, because the text ends inside of the call",
        ),
        ("hermes", "<tool_call>{\"name\": \"t\"", "it was not run, because the text ends inside of the call"),
        ("fenced", "```tool_call\n{\"name\": \"t\"\n", "it was not run, because the text ends inside of the call"),
        (
            "fenced",
            "```json\n{\"name\": \"t\", \"arguments\": {}\n",
            "it was not run, because the text ends inside of the call",
        ),
        (
            "hermes",
            "<tool_call>{\"name\": \"t\", \"arguments\": {\"city\": \"Oslo\"}, \"draft\": true}</tool_call>",
            "`draft` stands beside the arguments and not among them",
        ),
        (
            "react",
            "Action: t\nAction Input: {\"city\": \"Oslo\"} \"draft\": true}\n",
            "there is text beside the JSON object of the arguments that may be a part of them",
        ),
        (
            "react",
            "Action: t\nAction Input: {\"city\": \"Oslo\"}\n \"draft\": true\n}\n",
            "there is text beside the JSON object of the arguments that may be a part of them",
        ),
        (
            "function",
            "<function=t>{\"city\": \"Oslo\"} \"draft\": true}</function>",
            "there is text beside the JSON object of the arguments that may be a part of them",
        ),
    ] {
        let call = only(&format!("So.\n\n{text}"), word);

        let error = call.error.expect("an error");
        assert_eq!(error.what, what, "{text}");
        assert!(error.at.is_some_and(|place| place.line >= 3), "{text}: {:?}", error.at);
        assert!(error.how.starts_with("Write a call"), "{text}");
        assert_eq!(call.arguments, json!({}), "{text}");
    }
}

#[test]
fn a_closing_tag_in_a_value_is_a_value() {
    for (word, text) in [
        ("hermes", "<tool_call>{\"name\": \"t\", \"arguments\": {\"city\": \"</tool_call> \\\" x\"}}</tool_call>"),
        ("function", "<function=t>{\"city\": \"</function> \\\" x\"}</function>"),
        ("function", "<function=t><parameter=city></function> \" x</parameter></function>"),
        ("invoke", "<invoke name=\"t\"><parameter name=\"city\"></invoke> \" x</parameter></invoke>"),
    ] {
        let call = only(text, word);

        assert_eq!(call.error, None, "{text}");
        assert!(call.arguments["city"].as_str().is_some_and(|city| city.ends_with("> \" x")), "{call:?}");
    }
}

#[test]
fn a_forgotten_closing_tag_is_mended() {
    let both = json!({"city": "Oslo", "days": 3});
    for (word, text, repairs) in [
        ("function", "<function=t><parameter=city>Oslo<parameter=days>3</parameter></function>", 1),
        ("function", "<function=t><parameter=city>Oslo</parameter><parameter=days>3</function>", 1),
        ("function", "<function=t><parameter=city>Oslo</parameter><parameter=days>3</parameter></tool_call>", 1),
        (
            "hermes",
            "<tool_call>{\"name\": \"t\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}} <tool_call>...</tool_call>",
            1,
        ),
    ] {
        let call = only(text, word);

        assert_eq!(call.error, None, "{text}");
        assert_eq!(call.arguments, both, "{text}");
        assert_eq!(call.repairs.len(), repairs, "{text}: {:?}", call.repairs);
    }
}

#[test]
fn an_input_that_has_not_begun_at_the_end_of_the_text_is_cut_off() {
    for text in [
        "Action: t\nAction Input:",
        "Action: t\nAction Input: ",
        "Action: t\nAction Input:\n",
        "Action: t\nAction Input:\n\n",
        &format!("Action: t\nAction Input:{}", " ".repeat(512)),
        &format!("Action: t\nAction Input:{}", "\n".repeat(5000)),
    ] {
        let call = only(text, "react");

        assert!(call.error.is_some() || call.is_truncated, "{text:?}: {call:?}");
    }
    let call = only("Action: t\nAction Input:\nObservation: none", "react");
    assert_eq!((call.error, call.is_truncated), (None, false));
}

#[test]
fn a_plain_input_that_ends_in_an_open_string_is_cut_off() {
    let find = tool(&json!({"query": {"type": "string"}}));
    let read = |input: &str| {
        let calls = parse(&format!("Action: t\nAction Input: {input}"), TextFormat::React, Some(&find));
        calls.into_iter().next().expect("a call")
    };
    for input in ["\"", "\"*.t", "\"*.t\n", "\"a \\\"b\\\"", "\"a\\\\\\", "\"a\" or \"b"] {
        let call = read(input);

        assert!(call.error.is_some() && call.is_truncated, "{input:?}: {call:?}");
    }
    for (input, query) in [("\"*.t\"", "*.t"), ("5\" pipes", "5\" pipes"), ("\"a\" or \"b\"", "\"a\" or \"b\"")] {
        let call = read(input);

        assert_eq!((call.error, call.arguments), (None, json!({"query": query})), "{input:?}");
    }
}

#[test]
fn a_plain_input_is_the_only_parameter() {
    let find = tool(&json!({"query": {"type": "string"}}));
    for (input, query) in [("cats and dogs", "cats and dogs"), ("\"cats\"", "cats"), ("12", "12")] {
        let text = format!("Action: t\nAction Input: {input}\nObservation: none");

        let calls = parse(&text, TextFormat::React, Some(&find));

        assert_eq!(calls[0].arguments, json!({"query": query}), "{input}");
    }
}

#[test]
fn values_of_tags_have_their_declared_type() {
    let find = tool(&json!({
        "code": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
        "deep": {"type": "object", "properties": {"n": {"type": "integer"}}}, "zip": {"type": "string"},
    }));
    let text = "<function=t><parameter=code>\n  if a < b & c:\n    pass\n</parameter><parameter=tags>[\"1\"]</parameter>\
                <parameter=deep>{\"n\": \"4\"}</parameter><parameter=zip>01234</parameter></function>";

    let calls = parse(text, TextFormat::Function, Some(&find));

    assert_eq!(
        calls[0].arguments,
        json!({"code": "  if a < b & c:\n    pass", "tags": ["1"], "deep": {"n": 4}, "zip": "01234"})
    );
}

#[test]
fn without_tools_values_of_tags_are_guessed() {
    let calls =
        parse("<function=t><parameter=n>3</parameter><parameter=l>[1]</parameter></function>", TextFormat::AUTO, None);

    assert_eq!(calls[0].arguments, json!({"n": 3, "l": [1]}));
}

#[test]
fn duplicate_keys_are_told() {
    for (word, text) in [
        ("hermes", "<tool_call>{\"name\": \"t\", \"arguments\": {\"days\": 1, \"days\": 2}}</tool_call>"),
        ("function", "<function=t><parameter=days>1</parameter><parameter=days>2</parameter></function>"),
        ("react", "Action: t\nAction Input: {\"days\": 1, \"days\": 2}\n"),
    ] {
        let call = only(text, word);

        assert!(call.has_duplicate_keys, "{text}");
        assert_eq!(call.arguments.get("days"), Some(&Value::from(2)), "{text}");
    }
}

#[test]
fn what_follows_an_observation_of_the_models_own_is_text() {
    for input in ["{\"city\": \"Oslo\"}", "Oslo"] {
        let text = format!(
            "Action: t\nAction Input: {input}\nObservation: rain\nAction: t\nAction Input: {{\"city\": \"Rome\"}}\n"
        );
        let find = tool(&json!({"city": {"type": "string"}}));
        for asked in [TextFormat::AUTO, Some(TextFormat::React)] {
            let mut parser = Parser::new(asked);

            let mut pieces = parser.feed(&text, Some(&find));
            pieces.extend(parser.finish(Some(&find)));

            assert_eq!(parser.report().calls, 1, "{text}");
            assert!(parser.report().stopped.is_some(), "{text}");
            assert!(text_of(pieces).ends_with("{\"city\": \"Rome\"}\n"), "{text}");
        }
    }
    let before = "Observation: none yet\nAction: t\nAction Input: {}\n";
    assert_eq!(parse(before, TextFormat::React, None).len(), 1);
}

#[test]
fn a_call_that_is_cut_off_keeps_the_name_that_was_read() {
    for (word, text) in MESSAGES {
        let text = if text.starts_with("~~~") { text.trim_end().trim_end_matches('~') } else { text };
        let Some(cut) = text.rfind("Oslo").filter(|_| !text.contains("[{") && !text.contains("city: '")) else {
            continue;
        };

        let call = only(&text[..cut], word);

        assert!(call.error.is_some(), "{text}");
        assert_eq!(call.name, "t", "{text}");
    }
    let unreadable = only("<tool_call>{\"name\": \"t\", \"arguments\": {\"city\": ]]}</tool_call>", "hermes");
    assert_eq!(unreadable.name, "t");
}

#[test]
fn a_complete_call_without_its_last_closing_tag_is_read() {
    for (word, text) in [
        ("hermes", "<tool_call>\n{\"name\": \"t\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}"),
        ("hermes", "<tool_call>\n{\"name\": \"t\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n</tool_c"),
        ("function", "<function=t>{\"city\": \"Oslo\", \"days\": 3}\n"),
        ("xml", "<tool_call><name>t</name><params><city>Oslo</city><days>3</days></params>\n"),
        ("fenced", "```tool_call\n{\"name\": \"t\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}"),
        ("fenced", "```tool_call\n{\"name\": \"t\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n``"),
    ] {
        let call = only(text, word);

        assert_eq!(call.error, None, "{text}");
        assert_eq!(call.arguments, json!({"city": "Oslo", "days": 3}), "{text}");
        assert!(!call.is_truncated && call.repairs.len() == 1, "{text}: {:?}", call.repairs);
    }
}

#[test]
fn an_incomplete_call_without_its_last_closing_tag_is_not_run() {
    for (word, text) in [
        ("hermes", "<tool_call>\n{\"name\": \"t\", \"arguments\": {\"city\": \"Oslo\"}"),
        ("xml", "<tool_call><name>t</name><params><city>Oslo</city>"),
        ("xml", "<tool_call><name>t</name><params><city>to </params>"),
        ("xml", "<tool_call><name>t</name><params><city><![CDATA[</params>"),
    ] {
        let call = only(text, word);

        assert!(call.is_truncated && call.error.is_some(), "{text}: {call:?}");
    }
}

#[test]
fn a_value_keeps_the_line_break_at_its_end_unless_one_is_at_its_start() {
    let find = tool(&json!({"text": {"type": "string"}}));
    for (written, value) in [
        ("    x = 1\n", "    x = 1\n"),
        ("\n    x = 1\n", "    x = 1"),
        ("\n    x = 1\n\n", "    x = 1\n"),
        ("\r\nx\r\n", "x"),
        ("\n", ""),
        ("x", "x"),
    ] {
        let text = format!("<invoke name=\"t\"><parameter name=\"text\">{written}</parameter></invoke>");

        let calls = parse(&text, TextFormat::AUTO, Some(&find));

        assert_eq!(calls[0].arguments, json!({"text": value}), "{written:?}");
    }
}

#[test]
fn null_is_no_value_where_there_may_be_none() {
    let find = tool(&json!({"maybe": {"type": ["string", "null"]}, "text": {"type": "string"}}));
    let text = "<function=t><parameter=maybe>null</parameter><parameter=text>null</parameter></function>";

    let calls = parse(text, TextFormat::AUTO, Some(&find));

    assert_eq!(calls[0].arguments, json!({"maybe": null, "text": "null"}));
}

#[test]
fn a_key_that_comes_twice_in_the_json_of_parameters_is_known() {
    let call =
        only("<tool_call><name>t</name><params>{\"city\": \"Oslo\", \"city\": \"Bern\"}</params></tool_call>", "xml");

    assert!(call.has_duplicate_keys, "{call:?}");
}

#[test]
fn calls_in_another_format_are_counted_and_stay_in_the_text() {
    let xml = "<tool_call><name>t</name><params><city>Oslo</city></params></tool_call>\n";
    for (_, other) in MESSAGES.iter().filter(|(name, _)| *name != "xml" && *name != "hermes") {
        let is_example = other.starts_with("~~~json");
        let is_wrong = other.starts_with("<tool_call>");
        for format in [TextFormat::AUTO, Some(TextFormat::Xml)] {
            let mut parser = Parser::new(format);

            let mut pieces = parser.feed(&format!("{xml}{other}\n"), None);
            pieces.extend(parser.finish(None));

            let report = parser.report();
            assert_eq!(report.format, Some("xml"));
            // The outer tag of XML makes it a call in the wrong format, which has an error of its own.
            assert_eq!(
                (report.calls, report.other_formats),
                (1 + usize::from(is_wrong), usize::from(!is_example && !is_wrong)),
                "{other}"
            );
            assert!(is_wrong || text_of(pieces).contains(other), "{other}");
        }
    }
}

#[test]
fn calls_in_another_format_are_not_counted_in_code() {
    let mut parser = Parser::new(TextFormat::Xml);

    parser.feed(
        "Write `<invoke name=\"t\">`, not\n> <function=t>{}</function>\n\n<think><invoke name=\"t\"></think>",
        None,
    );
    parser.finish(None);

    assert_eq!(parser.report().other_formats, 0);
}
