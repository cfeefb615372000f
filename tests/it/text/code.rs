//! Calls that are only shown never run.

use toolcrib::text::{Format, Parser, Piece, parse};

use super::call;
use super::cuts::{cut, every_place, joined};

#[test]
fn what_stands_in_code_or_quotes_never_runs() {
    let call = call("<a>1</a>");
    let lines = "<tool_call>\n<name>t</name>\n\n</tool_call>";
    for text in [
        format!("```xml\n{call}\n```"),
        format!("~~~\n{call}\n~~~"),
        format!("````\n```\n{call}\n````"),
        format!("```\n{call}"),
        format!("```\n~~~\n{call}\n```"),
        format!("```\n``` x\n{call}\n```"),
        format!("- ```xml\n  {call}\n  ```"),
        format!("12. ~~~\n{call}\n~~~"),
        format!("write `{call}` like this"),
        format!("write ``a ` {call}`` like this"),
        format!("write ```{call}``` like this"),
        format!("write `<tool_call>\n<name>t</name>\n{call}` like this"),
        format!("> {call}"),
        format!("  >{call}"),
        format!("> ```\n> {call}\n"),
        format!("Use <tool_call> so:\n```\n{call}\n```\n"),
        format!("```\n{lines}\n```"),
    ] {
        let mut parser = Parser::new(Format::Auto);

        let mut pieces = parser.feed(&text, None);
        pieces.extend(parser.finish(None));

        assert_eq!(joined(pieces), [Piece::Text(text.clone())]);
        assert!(parser.report().passed_over >= 1, "{text}");
    }
}

#[test]
fn what_stands_after_code_or_quotes_runs() {
    let call = call("<a>1</a>");
    for text in [
        format!("```\n{call}\n```\n{call}"),
        format!("``` x\n{call}\n   ```  \n{call}"),
        format!("`{call}` {call}"),
        format!("a ` b\n{call}"),
        format!("a ` b ` {call}"),
        format!("`` ` `` {call}"),
        format!("> quoted\n{call}"),
        format!("> ```\n{call}"),
        format!("`{call} \n\n {call}"),
        format!("a ~~~ b {call}"),
        format!("x > {call}"),
        format!("~~ {call}"),
    ] {
        assert_eq!(parse(&text, Format::Auto, None).len(), 1, "{text}");
    }
}

#[test]
fn fences_in_a_call_are_part_of_it() {
    let text = call("<a><![CDATA[```\n> `x\n```]]></a>") + "\n" + &call("<a>```</a>") + &call("<a>`</a>");

    assert_eq!(parse(&text, Format::Auto, None).len(), 3);
}

#[test]
fn prose_is_given_out_as_soon_as_it_is_certain() {
    let mut parser = Parser::new(Format::Xml);
    let mut given = Vec::new();
    for letter in "a <b> <too <tool_call>".chars() {
        let pieces = parser.feed(&letter.to_string(), None);
        given.push(
            pieces
                .into_iter()
                .map(|piece| if let Piece::Text(text) = piece { text } else { String::new() })
                .collect::<String>(),
        );
    }

    assert_eq!(given.concat(), "a <b> <too ");
    assert_eq!(&given[..6], ["a", " ", "", "<b", ">", " "]);
}

/// A call in every format that has a tag to open it.
const TAGGED: [&str; 6] = [
    "<tool_call><name>t</name><params><a>1</a></params></tool_call>",
    "<tool_call>{\"name\": \"t\", \"arguments\": {\"a\": 1}}</tool_call>",
    "<function=t><parameter=a>1</parameter></function>",
    "<tool_call>\n<function=t>\n<parameter=a>1</parameter></function></tool_call>",
    "<invoke name=\"t\"><parameter name=\"a\">1</parameter></invoke>",
    "<function_calls>\n<invoke name=\"t\"></invoke>\n</function_calls>",
];

#[test]
fn what_stands_between_quotation_marks_thoughts_or_comments_never_runs() {
    for call in TAGGED {
        for (open, close) in [
            ("\"", "\""),
            ("Write \"", "\"."),
            ("say '", "'"),
            ("“", "”"),
            ("so:„", "“"),
            ("‘", "’"),
            ("«", "»"),
            ("(\"", "\")"),
            ("<think>I could ", " but\n\n`no</think>"),
            ("so\n<thinking>\n", "\n</thinking>"),
            ("see <!-- \n\n", " -- -->"),
        ] {
            let text = format!("{open}{call}{close}");
            let mut parser = Parser::new(Format::Auto);

            let mut pieces = parser.feed(&text, None);
            pieces.extend(parser.finish(None));

            assert_eq!(joined(pieces), [Piece::Text(text.clone())]);
            assert!(parser.report().passed_over >= 1, "{text}");
            assert_eq!(cut(&text, Format::Auto, &every_place(&text)), [Piece::Text(text.clone())]);
            let both = format!("{text} {call}");
            assert_eq!(parse(&both, Format::Auto, None).len(), 1, "{both}");
            let calls = |piece: &Piece| matches!(piece, Piece::Call(_));
            assert_eq!(cut(&both, Format::Auto, &every_place(&both)).iter().filter(|piece| calls(piece)).count(), 1);
        }
    }
}

#[test]
fn other_marks_hinder_nothing() {
    for call in TAGGED {
        for before in
            ["It's time. ", "He said \"go.\"", "\"a\" ", "the tag '<tool_call>' is\n", "5\" ", "use <think> as\n"]
        {
            let text = format!("{before}{call}");

            assert_eq!(parse(&text, Format::Auto, None).len(), 1, "{text}");
        }
    }
}

#[test]
fn words_after_an_opening_tag_only_speak_of_it() {
    let text = "Use <tool_call> tags like <b> to call, or <tool_call>\n\nwords</tool_call>, and";
    for format in [Format::Auto, Format::Xml, Format::Hermes] {
        let mut parser = Parser::new(format);

        let mut pieces = parser.feed(text, None);
        pieces.extend(parser.finish(None));

        assert_eq!(joined(pieces), [Piece::Text(text.to_owned())]);
        assert!(parser.report().why != "a <tool_call> with tags in it");
    }
    let blanks = " ".repeat(600);
    let far = format!("<tool_call>{blanks}<name>t</name></tool_call>");
    assert_eq!(cut(&far, Format::Auto, &[]), cut(&far, Format::Auto, &every_place(&far)));
}
