//! Calls that are only shown never run.

use toolcrib::text::{Parser, TextFormat, TextPiece, parse};

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
        format!("> The page says\n{call}\nend"),
        format!("> The page says\nso\n  {call}\nend"),
        format!("- > The page says\n{call}\nend"),
        format!("> ```\n> x\n> ```\n> so\n{call}"),
        format!("`run\n{call}\nnow`"),
        format!("The page says ` run\n{call}\nnow `"),
        format!("`` a\n` {call}\n``"),
        "`run\n<tool_call>\n<name>t</name>\n\n</tool_call>\nnow`".to_owned(),
        format!("```\nx\n    ```\n{call}\n```"),
        format!("```\nx\n \t```\n{call}\n```"),
        format!("- ```\n  x\n      ```\n{call}\n  ```"),
        format!("Use <tool_call> so:\n```\n{call}\n```\n"),
        format!("```\n{lines}\n```"),
    ] {
        let mut parser = Parser::new(TextFormat::AUTO);

        let mut pieces = parser.feed(&text, None);
        pieces.extend(parser.finish(None));

        assert_eq!(joined(pieces), [TextPiece::Text(text.clone())]);
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
        format!("> quoted\n\n{call}"),
        format!("> quoted\n> \n{call}"),
        format!("> # quoted\n{call}"),
        format!("> quoted\n---\n{call}"),
        format!("> quoted\n- {call}"),
        format!("> quoted\n```\nx\n```\n{call}"),
        format!("> ```\n{call}"),
        format!("> ```\n> code\n> ```\n{call}"),
        format!("a ` b\n{call} c\n\n `"),
        format!("`a\n{call}"),
        format!("the \"`\" key.\n{call}"),
        format!("```\nx\n   ```\n{call}"),
        format!("1. foo\n\n    ```\n    x\n    ```\n{call}"),
        format!("`{call} \n\n {call}"),
        format!("a ~~~ b {call}"),
        format!("x > {call}"),
        format!("~~ {call}"),
    ] {
        assert_eq!(parse(&text, TextFormat::AUTO, None).len(), 1, "{text}");
    }
}

#[test]
fn fences_in_a_call_are_part_of_it() {
    let text = call("<a><![CDATA[```\n> `x\n```]]></a>") + "\n" + &call("<a>```</a>") + &call("<a>`</a>");

    assert_eq!(parse(&text, TextFormat::AUTO, None).len(), 3);
}

#[test]
fn prose_is_given_out_as_soon_as_it_is_certain() {
    let mut parser = Parser::new(TextFormat::Xml);
    let mut given = Vec::new();
    for letter in "a <b> <too <tool_call>".chars() {
        let pieces = parser.feed(&letter.to_string(), None);
        given.push(
            pieces
                .into_iter()
                .map(|piece| if let TextPiece::Text(text) = piece { text } else { String::new() })
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
            let mut parser = Parser::new(TextFormat::AUTO);

            let mut pieces = parser.feed(&text, None);
            pieces.extend(parser.finish(None));

            assert_eq!(joined(pieces), [TextPiece::Text(text.clone())]);
            assert!(parser.report().passed_over >= 1, "{text}");
            assert_eq!(cut(&text, TextFormat::AUTO, &every_place(&text)), [TextPiece::Text(text.clone())]);
            let both = format!("{text} {call}");
            assert_eq!(parse(&both, TextFormat::AUTO, None).len(), 1, "{both}");
            let calls = |piece: &TextPiece| matches!(piece, TextPiece::Call(_));
            assert_eq!(
                cut(&both, TextFormat::AUTO, &every_place(&both)).iter().filter(|piece| calls(piece)).count(),
                1
            );
        }
    }
}

/// The pieces of a text, the same however it is cut, and how many calls were passed over.
fn read(text: &str) -> (Vec<TextPiece>, usize) {
    let mut parser = Parser::new(TextFormat::AUTO);
    let mut pieces = parser.feed(text, None);
    pieces.extend(parser.finish(None));
    let pieces = joined(pieces);
    assert_eq!(cut(text, TextFormat::AUTO, &every_place(text)), pieces, "{text}");
    (pieces, parser.report().passed_over)
}

fn calls(text: &str) -> usize {
    read(text).0.iter().filter(|piece| matches!(piece, TextPiece::Call(_))).count()
}

/// Texts before and behind a call that is quoted.
const QUOTED: [(&str, &str); 36] = [
    ("The page says \"Hello ", "\" and so on."),
    ("The page says \" ", "\" and so on."),
    ("The page says \"\n", "\n\" and so on."),
    ("The page says: \"one\ntwo\n  ", "\nthree\" and so on."),
    ("The page says “Please run ", " now” and so on."),
    ("The page says “Please ‘run ", "’ now” and so on."),
    ("The page says “don’t ‘run’ ", " now” and so on."),
    ("La page dit « Bonjour ", " » et voilà."),
    ("La page dit ‹ Bonjour ", " › et voilà."),
    ("Die Seite sagt „Bitte ", " ausführen“."),
    ("Die Seite sagt »Bitte ", " ausführen«."),
    ("Die Seite sagt ‚Bitte ", " ausführen‘."),
    ("Sidan säger ”Kör ", " nu”."),
    ("The page says 'do ", " now' ok."),
    ("The page says 'don't ", " now' ok."),
    ("The page says '3 of the '90s: ", "' ok."),
    ("The page says '\n", "\n' ok."),
    ("The page says ‘do ", " now’ ok."),
    ("页面说“请运行 ", " 谢谢”。"),
    ("页面说\"请运行 ", " 谢谢\"。"),
    ("页面说「", "」。"),
    ("页面说「请\n", "」。"),
    ("页面说『请 ", " 谢谢』。"),
    ("It says \"x `y` ", "\" ok."),
    ("It says \"x `\"` ", "\" ok."),
    ("It says \\\"", "\\\" ok."),
    ("It says \\\"so ", "\\\" ok."),
    ("It says \"He said \"hi\" and ", "\" ok."),
    ("It says **\"so ", "\"** ok."),
    ("{\"text\": \"so ", "\"}"),
    ("The size is 5\" and it says \"so ", "\" ok."),
    ("It's 'so ", "' ok."),
    ("the dogs' page says 'so ", "' ok."),
    ("A \"word\" and \"another ", " word\" ok."),
    ("\"First.\n\n\"Second ", "\" ok."),
    ("The page says \"so\n- ", "\" ok."),
];

#[test]
fn a_call_within_a_quotation_never_runs() {
    for call in TAGGED {
        for (before, behind) in QUOTED {
            let text = format!("{before}{call}{behind}");
            let (pieces, passed_over) = read(&text);

            assert_eq!(pieces, [TextPiece::Text(text.clone())]);
            assert!(passed_over >= 1, "{text}");
            assert_eq!(calls(&format!("{before}{call} and {call}{behind}")), 0, "{text}");
            assert_eq!(calls(&format!("{text} So I run\n{call}")), 1, "{text}");
            assert_eq!(calls(&format!("{before}{call}\n\n{call}")), 1, "{text}");
        }
    }
}

#[test]
fn a_line_or_a_fence_within_a_quotation_is_no_call() {
    for call in ["Action: t\nAction Input: {\"a\": 1}", "```tool_call\n{\"name\": \"t\", \"arguments\": {}}\n```"] {
        assert_eq!(calls(&format!("The page says \"so\n{call}\n\"")), 0);
        assert_eq!(calls(&format!("The page says \"so\"\n{call}\n")), 1);
        assert_eq!(calls(&format!("The page says 'so\n\n{call}\n")), 1);
    }
    assert_eq!(calls("> The page says\nAction: t\nAction Input: {\"a\": 1}"), 0);
    assert_eq!(calls("`run\nAction: t\nAction Input: {\"a\": 1}\nnow`"), 0);
    assert_eq!(calls("`run\nAction: t\nAction Input: {\"a\": 1}\nnow"), 1);
}

#[test]
fn other_marks_hinder_nothing() {
    for call in TAGGED {
        for before in [
            "It's time. ",
            "He said \"go.\"",
            "\"a\" ",
            "the tag '<tool_call>' is\n",
            "5\" ",
            "use <think> as\n",
            "I wait for the <tool_result> block, or an <Observation>.\n",
            "don't, can’t, won't\n",
            "Back in the '90s (or ’80s, or ‘70s) ",
            "'tis time. ",
            "A 27\" screen, 6'2\" tall, and the users' names\n",
            "It said \"no.\n\nAnd then: \"yes\".\n",
            "It said \"no.\n \t\n",
            "It said \"no.\r\n\r\n",
            "I look for \"iPhone 15\" and 'iPad 3'. ",
            "Two paragraphs end.\" ",
            "Nested “one ‘two’ three” and «un “deux” trois». ",
            "Suche nach „Wetter“ und „Regen\": ",
            "Home » News » ",
            "{\"a\": \"b\", \"c\": \"\"}\n",
            "x = \"\"; y = \"it's\"; z = '\"'\n",
            "<a href=\"x\">it</a> ",
            "the \"don't\" list: ",
            "「日本」と『東京』。",
            "He said “I'm here”. ",
            "(\"a\")(\"b\") ",
            "\"\"\"doc\"\"\" ",
            "“Un”expected “quotes”, ‘all’ closed.\n",
        ] {
            let text = format!("{before}{call}");

            assert_eq!(calls(&text), 1, "{text}");
        }
    }
}

#[test]
fn what_stands_in_a_thought_or_in_an_echoed_result_never_runs() {
    for call in TAGGED {
        for name in [
            "think",
            "Think",
            "THINK",
            "thinking",
            "thought",
            "Thoughts",
            "reasoning",
            "tool_result",
            "Tool_Result",
            "tool_response",
            "observation",
            "function_results",
        ] {
            for (before, attributes, after) in [
                ("", "", ""),
                ("", " x", ""),
                ("", " type=\"x\"", "so "),
                ("", "\n a='1'", "so\n\n"),
                ("So.\n  ", "", "I could `not \"quote "),
                ("So. ", "", "I could "),
                ("The result is ", "", "\n"),
                ("The result is ", " x", "  \nso "),
                ("The result is ", "", "<name>x</name>"),
                ("The result is ", "", " so "),
                ("> a\n", "", "so\n\n"),
            ] {
                let text = format!("{before}<{name}{attributes}>{after}{call}{after}</{name} >");
                let (pieces, passed_over) = read(&text);

                assert_eq!(pieces, [TextPiece::Text(text.clone())]);
                assert!(passed_over >= 1, "{text}");
                assert_eq!(calls(&format!("{text}\n\n{call}")), 1, "{text}");
                assert_eq!(calls(&format!("{before}<{name}{attributes}>\n{call}")), 0, "{text}");
            }
        }
    }
}

#[test]
fn words_after_an_opening_tag_only_speak_of_it() {
    let text = "Use <tool_call> tags like <b> to call, or <tool_call>\n\nwords</tool_call>, and";
    for format in [TextFormat::AUTO, Some(TextFormat::Xml), Some(TextFormat::Hermes)] {
        let mut parser = Parser::new(format);

        let mut pieces = parser.feed(text, None);
        pieces.extend(parser.finish(None));

        assert_eq!(joined(pieces), [TextPiece::Text(text.to_owned())]);
        assert!(parser.report().why != "a <tool_call> with tags in it");
    }
    let blanks = " ".repeat(600);
    let far = format!("<tool_call>{blanks}<name>t</name></tool_call>");
    assert_eq!(cut(&far, TextFormat::AUTO, &[]), cut(&far, TextFormat::AUTO, &every_place(&far)));
}
