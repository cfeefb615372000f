//! Calls that are only shown never run.

use toolcrib::text::{Format, Parser, Piece, parse};

use super::call;
use super::cuts::joined;

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
