//! Texts that are meant to hurt: answered with an error that says why, in bounded memory.

use toolcrib::call::ToolCall;
use toolcrib::text::{MAX_CALL_BYTES, MAX_CALLS, MAX_DEPTH, Parser, TextFormat, TextPiece, parse};

use super::call;

const TEN_MEGABYTES: usize = 10 << 20;

/// The calls of a text that comes in pieces of a few kilobytes, as from a provider.
fn fed(text: &str, format: impl Into<Option<TextFormat>>) -> Vec<ToolCall> {
    let mut parser = Parser::new(format);
    let mut pieces = Vec::new();
    for piece in text.as_bytes().chunks(4096) {
        pieces.extend(parser.feed(std::str::from_utf8(piece).expect("ASCII"), None));
    }
    pieces.extend(parser.finish(None));
    pieces.into_iter().filter_map(|piece| if let TextPiece::Call(call) = piece { Some(call) } else { None }).collect()
}

fn errors(calls: &[ToolCall]) -> Vec<&str> {
    calls.iter().map(|call| call.error.as_ref().map_or("", |error| error.what.as_str())).collect()
}

#[test]
fn large_texts_are_errors_of_their_own_kind() {
    let too_long = format!("it was not run, because there are more than {MAX_CALL_BYTES} bytes in the call");
    let deep = "<a>".repeat(100_000);
    let laughs: Vec<String> = (0..90_000).map(|n| format!("<!ENTITY l{n} \"&l{};&l{};\">", n + 1, n + 1)).collect();
    let laughs = laughs.concat();
    let attributes: Vec<String> = (0..1_000_000).map(|n| format!(" a{n}='1'")).collect();
    let attributes = attributes.concat();
    for (what, text) in [
        ("deep", call(&(deep + &"<".repeat(TEN_MEGABYTES)))),
        ("open CDATA", format!("<tool_call><name>t</name><params><a><![CDATA[{}", "x".repeat(TEN_MEGABYTES))),
        ("CDATA in CDATA", call(&"<a><![CDATA[<![CDATA[".repeat(100_000))),
        ("entities", call(&format!("<!DOCTYPE a [{laughs}]><a>&l0;</a>"))),
        ("comments", call(&"<!-- <!--".repeat(200_000))),
        ("instructions", call(&"<? <?".repeat(400_000))),
        ("attributes", call(&format!("<a{attributes}>1</a>"))),
        ("open tag", call(&format!("<a {}", "x".repeat(2 * MAX_CALL_BYTES)))),
        ("ampersands", call(&format!("<a>{}</a>", "&".repeat(2 * MAX_CALL_BYTES)))),
    ] {
        assert_eq!(errors(&fed(&text, TextFormat::AUTO)), [&too_long], "{what}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| call(&("<a>".repeat(depth) + "1" + &"</a>".repeat(depth)));
    let too_deep = format!("the tags are nested more than {MAX_DEPTH} deep");

    assert_eq!(errors(&parse(&nested(MAX_DEPTH - 1), TextFormat::Xml, None)), [""]);
    assert_eq!(errors(&parse(&nested(MAX_DEPTH), TextFormat::Xml, None)), [&too_deep]);
    assert_eq!(errors(&parse(&nested(100_000), TextFormat::Xml, None)), [&too_deep]);
}

#[test]
fn deep_json_is_refused() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);

    let calls =
        parse(&format!("<tool_call>{{\"name\": \"t\", \"arguments\": {deep}}}</tool_call>"), TextFormat::AUTO, None);

    assert!(calls[0].error.is_some());
}

#[test]
fn entities_are_never_expanded() {
    let text = call("<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>");

    let calls = parse(&text, TextFormat::Xml, None);

    assert_eq!(errors(&calls), ["there is text between the tags of <params>"]);
    let calls = parse(&call("<a>&b; &#65;&#x42;</a>"), TextFormat::Xml, None);
    assert_eq!(calls[0].arguments["a"], "&b; AB");
}

#[test]
fn a_message_has_so_many_calls() {
    let text = call("<a>1</a>").repeat(MAX_CALLS + 100);

    let calls = parse(&text, TextFormat::AUTO, None);

    let last =
        format!("this call and all after it were not run, because one message has more than {MAX_CALLS} of them");
    assert_eq!(calls.len(), MAX_CALLS + 1);
    assert!(errors(&calls)[..MAX_CALLS].iter().all(|error| error.is_empty()));
    assert_eq!(errors(&calls)[MAX_CALLS], last);
}

#[test]
fn floods_of_what_looks_like_a_call_are_prose() {
    let full =
        format!("this call and all after it were not run, because one message has more than {MAX_CALLS} of them");
    for (what, text, format) in [
        ("brackets", "<".repeat(TEN_MEGABYTES), TextFormat::AUTO),
        ("openers that stop", "<tool_cal".repeat(100_000), TextFormat::AUTO),
        ("backticks", "`".repeat(MAX_CALL_BYTES), TextFormat::AUTO),
        ("lines of a fence", "```\n".repeat(100_000), Some(TextFormat::Fenced)),
        ("actions", "Action: a\n".repeat(100_000), Some(TextFormat::React)),
        ("blanks", " ".repeat(MAX_CALL_BYTES), TextFormat::AUTO),
        ("closings", "</tool_call>".repeat(100_000), TextFormat::AUTO),
        ("quotation marks", "\" 'a".repeat(200_000), TextFormat::AUTO),
        ("inline code over lines", "`a\n<tool_call><name>\n` ".repeat(50_000), TextFormat::AUTO),
        ("thoughts", "a <think> b\n<thinking>".repeat(50_000), TextFormat::AUTO),
        ("results", "<tool_result>".repeat(100_000), TextFormat::AUTO),
        ("lines of block quotes", "> a\nb\n".repeat(100_000), TextFormat::AUTO),
    ] {
        assert_eq!(errors(&fed(&text, format)), Vec::<&str>::new(), "{what}");
    }
    let openers = fed(&"<tool_call>".repeat(100_000), TextFormat::AUTO);
    assert_eq!(errors(&openers), Vec::<&str>::new());
    let calls = fed(&"<tool_call>{\"</tool_call>".repeat(100_000), TextFormat::Hermes);
    assert_eq!(errors(&calls).last(), Some(&full.as_str()));
}

#[test]
fn a_call_as_long_as_allowed_is_read() {
    let empty = call("<a></a>").len();

    let longest = parse(&call(&format!("<a>{}</a>", "x".repeat(MAX_CALL_BYTES - empty))), TextFormat::Xml, None);
    let longer = parse(
        &(call(&format!("<a>{}</a>", "x".repeat(MAX_CALL_BYTES - empty + 1))) + &call("<a>1</a>")),
        TextFormat::Xml,
        None,
    );

    assert_eq!(errors(&longest), [""]);
    assert_eq!(longer.len(), 2);
    assert!(longer[0].error.is_some() && longer[1].error.is_none());
}
