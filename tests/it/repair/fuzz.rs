//! Texts by the million, made of those in the corpus: nothing panics, and JSON stays what it is.

use std::fs;
use std::path::Path;

use serde_json::Value;
use toolcrib::call::repair::{ArgumentStream, ParameterNames, read, read_strictly, repair_names};
use toolcrib::text::{read_all_text, read_text};

/// Pieces that texts are broken with.
const PIECES: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    "'",
    ":",
    ",",
    "\\",
    "/",
    "//",
    "/*",
    "*/",
    "#",
    "`",
    "```",
    "```json\n",
    "\n",
    "\t",
    " ",
    "\\u",
    "\\ud83d",
    "\\\"",
    "\"\"\"",
    "True",
    "None",
    "NaN",
    "-",
    ".",
    "0",
    "1e9",
    "...",
    "(",
    ")",
    ";",
    "=",
    "\u{feff}",
    "\u{201c}",
    "é",
    "😀",
];

struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most.max(1) as u64).unwrap_or_default()
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/repair_corpus");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a text")).collect()
}

fn mutated(chance: &mut Chance, corpus: &[Vec<u8>]) -> String {
    let mut bytes = corpus[chance.below(corpus.len())].clone();
    for _ in 0..=chance.below(5) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(6) {
            0 => bytes.truncate(at),
            1 => {
                let end = (at + chance.below(8)).min(bytes.len());
                bytes.drain(at..end);
            }
            2 => {
                let piece = PIECES[chance.below(PIECES.len())];
                bytes.splice(at..at, piece.repeat(1 + chance.below(3)).bytes());
            }
            3 if at < bytes.len() => bytes[at] = u8::try_from(chance.below(256)).unwrap_or_default(),
            4 => {
                let other = &corpus[chance.below(corpus.len())];
                let start = chance.below(other.len() + 1);
                let tail = other[start..].to_vec();
                bytes.splice(at..at, tail);
            }
            _ => {
                let end = (at + chance.below(30)).min(bytes.len());
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hold(text: &str) {
    let schema = serde_json::json!({"properties": {"a": {"type": "array"}, "b_c": {"type": "object"}}});
    let reading = read(text);
    let strict = read_strictly(text);
    if let Ok(strict) = &strict {
        assert_eq!(reading.as_ref(), Ok(strict), "{text}");
    }
    if let Ok(reading) = &reading {
        assert!(!reading.repairs.is_empty() || strict.is_ok(), "nothing is listed for {text}");
        let again = Value::Object(reading.arguments.clone());
        let _ = repair_names(&again, &schema, ParameterNames::default());
        assert_eq!(read_strictly(&again.to_string()).map(|reading| reading.arguments), Ok(reading.arguments.clone()));
    }
    let mut stream = ArgumentStream::default();
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    stream.feed(&text[..middle]);
    let _ = stream.partial();
    stream.feed(&text[middle..]);
    let _ = stream.partial();
    assert_eq!(stream.finish(), reading);
    let _ = (read_text(text, None, None), read_all_text(text, None, None));
}

fn fuzz(count: usize, seed: u64) {
    let (corpus, mut chance) = (corpus(), Chance(seed));
    for _ in 0..count {
        hold(&mutated(&mut chance, &corpus));
    }
}

#[test]
fn texts_of_the_corpus_and_their_neighbours_do_no_harm() {
    for text in corpus() {
        hold(&String::from_utf8_lossy(&text));
    }
    fuzz(2_000, 0x9E37_79B9_7F4A_7C15);
}

#[test]
#[ignore = "a million texts take minutes: cargo test --release prop_ -- --ignored"]
fn prop_a_million_texts_do_no_harm() {
    let asked = std::env::var("TOOLCRIB_FUZZ_CASES").ok().and_then(|count| count.parse().ok());
    fuzz(asked.unwrap_or(1_000_000), 0x0123_4567_89AB_CDEF);
}

#[test]
fn texts_that_repeat_one_mistake_do_no_harm() {
    for make in hostile() {
        hold(&make(4096));
    }
}

type Make = fn(usize) -> String;

fn hostile() -> [Make; 19] {
    [
        |n| format!("{{\"a\": \"{}", "x\\n".repeat(n / 3)),
        |n| format!("{{{}", "'".repeat(n)),
        |n| format!("{{{}", "\"".repeat(n)),
        |n| format!("{{{}", "'a' ".repeat(n / 4)),
        |n| format!("{{\"a\": \"{}", "\\".repeat(n)),
        |n| format!("{{\"a\": \"{}\"}}", "\\d".repeat(n / 2)),
        |n| format!("{{\"a\": {}", "/*".repeat(n / 2)),
        |n| format!("{{\"a\": {}1}}", "// x\n".repeat(n / 5)),
        |n| "```".repeat(n / 3),
        |n| "{\"a\": 1} ".repeat(n / 9),
        |n| format!("{{{}", "a:".repeat(n / 2)),
        |n| format!("{{\"a\": [{}", "1 ".repeat(n / 2)),
        |n| format!("{{\"a\": [{}]}}", "\"b, ".repeat(n / 4)),
        |n| format!("{{\"a\": [1{}]}}", ",".repeat(n)),
        |n| format!("{{\"a\": [{}]}}", "\"\"\"x\"\"\",".repeat(n / 8)),
        |n| format!("{{\"a\": {}", "f(1,".repeat(n / 4)),
        |n| format!("{{\"a\": {}", "\"x\" + ".repeat(n / 6)),
        |n| format!("{{\"a\": 1}}{}", "}".repeat(n)),
        |n| format!("{{'a': [{}]}}", "{'b': True, 'c': None},".repeat(n / 23)),
    ]
}
