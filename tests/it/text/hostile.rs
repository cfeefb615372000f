//! Texts that are meant to hurt: answered with an error that says why, in bounded memory.

use toolcrib::call::ToolCall;
use toolcrib::text::{CALL_BYTES, CALLS, DEPTH, Format, Parser, Piece, parse};

use super::call;

const TEN_MEGABYTES: usize = 10 << 20;

/// The calls of a text that comes in pieces of a few kilobytes, as from a provider.
fn fed(text: &str, format: Format) -> Vec<ToolCall> {
    let mut parser = Parser::new(format);
    let mut pieces = Vec::new();
    for piece in text.as_bytes().chunks(4096) {
        pieces.extend(parser.feed(std::str::from_utf8(piece).expect("ASCII"), None));
    }
    pieces.extend(parser.finish(None));
    pieces.into_iter().filter_map(|piece| if let Piece::Call(call) = piece { Some(call) } else { None }).collect()
}

fn errors(calls: &[ToolCall]) -> Vec<&str> {
    calls.iter().map(|call| call.error.as_ref().map_or("", |error| error.what.as_str())).collect()
}

#[test]
fn large_texts_are_errors_of_their_own_kind() {
    let too_long = format!("it was not run, because there are more than {CALL_BYTES} bytes in the call");
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
        ("open tag", call(&format!("<a {}", "x".repeat(2 * CALL_BYTES)))),
        ("ampersands", call(&format!("<a>{}</a>", "&".repeat(2 * CALL_BYTES)))),
    ] {
        assert_eq!(errors(&fed(&text, Format::Auto)), [&too_long], "{what}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| call(&("<a>".repeat(depth) + "1" + &"</a>".repeat(depth)));
    let too_deep = format!("the tags are nested more than {DEPTH} deep");

    assert_eq!(errors(&parse(&nested(DEPTH - 1), Format::Xml, None)), [""]);
    assert_eq!(errors(&parse(&nested(DEPTH), Format::Xml, None)), [&too_deep]);
    assert_eq!(errors(&parse(&nested(100_000), Format::Xml, None)), [&too_deep]);
}

#[test]
fn deep_json_is_refused() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);

    let calls =
        parse(&format!("<tool_call>{{\"name\": \"t\", \"arguments\": {deep}}}</tool_call>"), Format::Auto, None);

    assert!(calls[0].error.is_some());
}

#[test]
fn entities_are_never_expanded() {
    let text = call("<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>");

    let calls = parse(&text, Format::Xml, None);

    assert_eq!(errors(&calls), ["there is text between the tags of <params>"]);
    let calls = parse(&call("<a>&b; &#65;&#x42;</a>"), Format::Xml, None);
    assert_eq!(calls[0].arguments["a"], "&b; AB");
}

#[test]
fn a_message_has_so_many_calls() {
    let text = call("<a>1</a>").repeat(CALLS + 100);

    let calls = parse(&text, Format::Auto, None);

    let last = format!("this call and all after it were not run, because one message has more than {CALLS} of them");
    assert_eq!(calls.len(), CALLS + 1);
    assert!(errors(&calls)[..CALLS].iter().all(|error| error.is_empty()));
    assert_eq!(errors(&calls)[CALLS], last);
}

#[test]
fn floods_of_what_looks_like_a_call_are_prose() {
    let full = format!("this call and all after it were not run, because one message has more than {CALLS} of them");
    for (what, text, format) in [
        ("brackets", "<".repeat(TEN_MEGABYTES), Format::Auto),
        ("openers that stop", "<tool_cal".repeat(100_000), Format::Auto),
        ("backticks", "`".repeat(CALL_BYTES), Format::Auto),
        ("lines of a fence", "```\n".repeat(100_000), Format::Fenced),
        ("actions", "Action: a\n".repeat(100_000), Format::React),
        ("blanks", " ".repeat(CALL_BYTES), Format::Auto),
        ("closings", "</tool_call>".repeat(100_000), Format::Auto),
        ("quotation marks", "\" 'a".repeat(200_000), Format::Auto),
        ("inline code over lines", "`a\n<tool_call><name>\n` ".repeat(50_000), Format::Auto),
        ("thoughts", "a <think> b\n<thinking>".repeat(50_000), Format::Auto),
        ("results", "<tool_result>".repeat(100_000), Format::Auto),
        ("lines of block quotes", "> a\nb\n".repeat(100_000), Format::Auto),
    ] {
        assert_eq!(errors(&fed(&text, format)), Vec::<&str>::new(), "{what}");
    }
    let openers = fed(&"<tool_call>".repeat(100_000), Format::Auto);
    assert_eq!(errors(&openers), Vec::<&str>::new());
    let calls = fed(&"<tool_call>{\"</tool_call>".repeat(100_000), Format::Hermes);
    assert_eq!(errors(&calls).last(), Some(&full.as_str()));
}

#[test]
fn floods_of_openers_are_one_piece_of_prose_to_artifactflow() {
    for fallback in [true, false] {
        let text = "<tool_call>".repeat(500_000);
        let mut parser = Parser::new(Format::ArtifactFlow { fallback });

        let before = parser.feed(&text, None);
        let after = parser.finish(None);

        assert_eq!(before, []);
        assert_eq!(after, [Piece::Text(text)]);
    }
}

#[test]
fn artifactflow_reads_calls_of_any_length_and_number() {
    let format = Format::ArtifactFlow { fallback: true };
    let long = call(&format!("<a>{}</a>", "x".repeat(2 * CALL_BYTES)));

    let calls = fed(&(long + &call("<a>1</a>").repeat(CALLS + 100)), format);

    assert_eq!(calls.len(), CALLS + 101);
    assert!(calls.iter().all(|call| call.name == "t" && call.error.is_none()));
}

#[test]
fn a_call_as_long_as_allowed_is_read() {
    let empty = call("<a></a>").len();

    let longest = parse(&call(&format!("<a>{}</a>", "x".repeat(CALL_BYTES - empty))), Format::Xml, None);
    let longer = parse(
        &(call(&format!("<a>{}</a>", "x".repeat(CALL_BYTES - empty + 1))) + &call("<a>1</a>")),
        Format::Xml,
        None,
    );

    assert_eq!(errors(&longest), [""]);
    assert_eq!(longer.len(), 2);
    assert!(longer[0].error.is_some() && longer[1].error.is_none());
}
