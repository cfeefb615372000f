//! However a message is cut, the same comes of it.

use proptest::prelude::*;
use toolcrib::text::{ParseReport, Parser, TextFormat, TextPiece};

use super::cases;

pub(super) const FORMATS: [Option<TextFormat>; 7] = [
    TextFormat::AUTO,
    Some(TextFormat::Xml),
    Some(TextFormat::Hermes),
    Some(TextFormat::Function),
    Some(TextFormat::Invoke),
    Some(TextFormat::Fenced),
    Some(TextFormat::React),
];

/// Neighbouring pieces of prose as one.
pub(super) fn joined(pieces: Vec<TextPiece>) -> Vec<TextPiece> {
    let mut joined: Vec<TextPiece> = Vec::new();
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(TextPiece::Text(before)), TextPiece::Text(text)) => before.push_str(&text),
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

pub(super) fn cut(text: &str, format: Option<TextFormat>, places: &[usize]) -> Vec<TextPiece> {
    read(text, format, places).0
}

fn read(text: &str, format: Option<TextFormat>, places: &[usize]) -> (Vec<TextPiece>, ParseReport) {
    let mut parser = Parser::new(format);
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places {
        pieces.extend(parser.feed(&text[from..*place], None));
        from = *place;
    }
    pieces.extend(parser.feed(&text[from..], None));
    pieces.extend(parser.finish(None));
    (joined(pieces), parser.report().clone())
}

pub(super) fn every_place(text: &str) -> Vec<usize> {
    text.char_indices().map(|(at, _)| at).skip(1).collect()
}

/// Words that matter to the reader, and some that do not.
#[rustfmt::skip]
pub(super) const WORDS: [&str; 90] = [
    "<tool_call>",
    "</tool_call>",
    "<tool_call",
    "<TOOL_CALL >",
    "</tool_call ",
    "<name>",
    "</name>",
    "t",
    "<params>",
    "</params>",
    "<a>",
    "</a>",
    "<a=",
    "<a/>",
    "<b x='1'>",
    "1",
    "<![CDATA[",
    "]]>",
    "]]",
    "<!--",
    "-->",
    "&amp;",
    "&",
    "<",
    ">",
    "\n",
    "```",
    "```xml\n",
    "~~~",
    "`",
    "``",
    "> ",
    "- ",
    " ",
    "é",
    "\r\n",
    "words",
    "{",
    "}",
    "\"",
    "\\",
    "{\"name\": \"t\", \"arguments\": {\"a\": 1}}",
    "<tool_call>{\"name\": \"t\"}</tool_call>",
    "<function=t>",
    "</function>",
    "<function_calls>",
    "</function_calls>",
    "<invoke name=\"t\">",
    "</invoke>",
    "<parameter=a>",
    "<parameter name='a'>",
    "</parameter>",
    "```json\n",
    "```tool_call\n",
    "\n```\n",
    "Action: t\n",
    "Action Input: ",
    "\nObservation:",
    "\nAction: t\nAction Input: {\"a\": 1}",
    "\n\n",
    "\n<think>",
    "</think>",
    "'",
    "“",
    "”",
    "«",
    "»",
    " \"",
    "-",
    " '",
    "„",
    "‘",
    "’",
    "「",
    "90s",
    "5",
    "` ",
    "\n    ```\n",
    "\n> a\n",
    "\n---\n",
    "\n- ",
    "<Think>",
    "<think x>",
    " <think> ",
    "</think >",
    "<tool_result>",
    "</tool_result>",
    "\\\"",
    "<tool_call><name>t</name>\n\n</tool_call>",
    "<tool_call><name>t</name><params><a>1</a></params></tool_call>",
];

fn words() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(WORDS.to_vec())
}

fn texts() -> impl Strategy<Value = String> {
    proptest::collection::vec(words(), 0..30).prop_map(|words| words.concat())
}

#[test]
fn every_case_can_be_cut_everywhere() {
    for case in cases() {
        let text = case["text"].as_str().expect("a text");
        for format in FORMATS {
            let whole = cut(text, format, &[]);

            assert_eq!(cut(text, format, &every_place(text)), whole, "{} {format:?}", case["id"]);
            for place in every_place(text) {
                assert_eq!(cut(text, format, &[place]), whole, "{} {format:?} at {place}", case["id"]);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_cutting_gives_the_same(text in texts(), seed in any::<u64>()) {
        let mut random = seed | 1;
        let places = every_place(&text);
        let chosen: Vec<usize> = places.iter().copied().filter(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random >> 62 == 0
        }).collect();
        for format in FORMATS {
            let whole = read(&text, format, &[]);

            prop_assert_eq!(&read(&text, format, &chosen), &whole, "{:?}", format);
            prop_assert_eq!(&read(&text, format, &places), &whole, "{:?}", format);
        }
    }

    #[test]
    fn prose_without_a_call_comes_through_as_it_is(text in "[a-z <>&`\n~]{0,60}") {
        let pieces = cut(&text, TextFormat::AUTO, &every_place(&text));

        let expected = if text.is_empty() { vec![] } else { vec![TextPiece::Text(text)] };
        prop_assert_eq!(pieces, expected);
    }
}
