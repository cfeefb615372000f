//! Docstrings of every style, held to the cases that both suites read.

use proptest::prelude::*;
use serde_json::Value;
use toolcrib::schema::docstring::{Style, parse};

const CASES: &str = include_str!("../data/docstring_cases.json");

#[test]
fn every_case_is_read_as_recorded() -> Result<(), serde_json::Error> {
    let cases: Vec<Value> = serde_json::from_str(CASES)?;

    for case in &cases {
        let doc = parse(case["doc"].as_str().unwrap_or_default());

        let params: Vec<Value> = doc
            .params
            .iter()
            .map(|param| [Some(param.name.clone()), param.description.clone()].into_iter().collect())
            .collect();
        let style = match doc.style {
            Style::Rest => "DocstringStyle.REST",
            Style::Google => "DocstringStyle.GOOGLE",
            Style::Numpy => "DocstringStyle.NUMPYDOC",
            Style::Epydoc => "DocstringStyle.EPYDOC",
        };
        assert_eq!(Value::from(doc.short), case["short"], "{}", case["id"]);
        assert_eq!(Value::from(doc.long), case["long"], "{}", case["id"]);
        assert_eq!(Value::from(params), case["params"], "{}", case["id"]);
        assert_eq!(style, case["style"], "{}", case["id"]);
    }
    Ok(())
}

/// Each of these makes every position look like a beginning, which costs a careless reader quadratic time.
#[test]
fn a_mebibyte_of_anything_is_read() {
    let patterns = [
        "\n",
        " \n",
        "(",
        "\n:param x: y",
        "\n@param x: y",
        "param ",
        "ab ",
        "Note\n\n",
        "\nArgs:\n a: b",
        "\n.. deprecated",
        "\u{3000}\n",
    ];
    let openings = ["", "Args:\n \n \n  a", "@foo"];

    for opening in openings {
        for pattern in patterns {
            let mut text = String::from(opening);
            text.push_str(&pattern.repeat((1 << 20) / pattern.len()));
            text.push_str(" ): x");

            let doc = parse(&text);

            assert!(doc.params.len() <= text.len());
        }
    }
}

proptest! {
    #[test]
    fn any_text_has_an_answer(text in any::<String>()) {
        let doc = parse(&text);

        prop_assert!(doc.description(true).is_none_or(|description| !description.is_empty()));
    }

    #[test]
    fn any_pile_of_pieces_has_an_answer(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();

        let doc = parse(&text);

        for param in &doc.params {
            let last = doc.params.iter().rfind(|other| other.name == param.name);
            prop_assert_eq!(doc.param(&param.name), last.and_then(|last| last.description.as_deref()));
        }
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "Args:",
        "Returns:",
        "Attributes:",
        "\n",
        "\n    ",
        "\n\n",
        "a",
        "b (int)",
        ":",
        ": ",
        " ",
        "\t",
        "\r",
        "(",
        ")",
        "Parameters",
        "\n----------\n",
        "Examples\n--------\n",
        ">>> ",
        ".. deprecated::",
        ":param x:",
        ":rtype: ",
        ":type x: ",
        "@param x: ",
        "@return: ",
        "@yield:",
        "@type x:",
        "?",
        "\u{3000}",
        "\u{a0}",
        "\x1c",
        "é",
        "甲",
    ])
}
