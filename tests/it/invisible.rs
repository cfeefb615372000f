//! Characters that are not seen: everything that shows text of others agrees about them.

#![allow(clippy::expect_used)]

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::json;
use toolcrib::json::invisible::is_invisible;
use toolcrib::policy::{AuditRecord, Decision};
use toolcrib::schema::check::{Checker, Mode};
use toolcrib::schema::{Document, Node};
use toolcrib::text::TextFormat;
use toolcrib::text::instructions::{ToolDescription, instructions, write_call};

/// The characters of all planes that have any beyond ideographs, but ASCII and blanks, which each place treats in its own way.
fn characters() -> Vec<char> {
    let all = ('\u{80}'..='\u{1ffff}').chain('\u{e0000}'..='\u{e0fff}');
    all.filter(|character| !character.is_whitespace() && *character != '\u{85}').collect()
}

fn audited(text: &str) -> String {
    let arguments = json!({"text": text});
    let record = AuditRecord {
        time: Timestamp::UNIX_EPOCH,
        call: "c",
        tool: "t",
        arguments_hash: [0; 32],
        arguments: Some(&arguments),
        caller: None,
        session: None,
        path: &[],
        rule: None,
        decision: Decision::Allow,
        shadow: None,
        answered_by: None,
        answer: None,
        outcome: None,
    };
    record.to_line()
}

fn refused(text: &str) -> String {
    let checker =
        Checker::compile(&json!({"type": "object", "properties": {"n": {"type": "integer"}}})).expect("a schema");
    let letters: Vec<char> = text.chars().collect();
    let answers = letters.chunks(8).map(|piece| {
        let piece: String = piece.iter().collect();
        let problems = checker.check(&json!({"n": piece}), Mode::Check, &[]).expect_err("text is not an integer");
        problems[0].found.to_string()
    });
    answers.collect()
}

fn described(text: &str) -> String {
    let parameters = Document::new(&Node::from(json!({"type": "object", "properties": {}})));
    instructions(TextFormat::Xml, &[ToolDescription { name: "t", description: text, parameters: &parameters }])
}

fn written(text: &str) -> String {
    let arguments = json!({"text": text});
    write_call(TextFormat::Hermes, "t", arguments.as_object().expect("an object"))
}

#[test]
fn every_place_that_shows_text_hides_the_same_characters() {
    let characters = characters();
    let text: String = characters.iter().collect();

    for (place, shown) in [
        ("the audit log", audited(&text)),
        ("an answer about arguments", refused(&text)),
        ("a description in a prompt", described(&text)),
        ("a call in a prompt", written(&text)),
    ] {
        let shown: HashSet<char> = shown.chars().collect();
        for character in &characters {
            let is_shown = shown.contains(character);
            assert_ne!(is_shown, is_invisible(*character), "{place}: U+{:04X}", u32::from(*character));
        }
    }
}

#[test]
fn an_escape_of_a_character_beyond_the_first_plane_can_be_read_back() {
    let shown = refused("\u{e0041}");

    assert_eq!(shown, "\"\\udb40\\udc41\" (a string)");
}
