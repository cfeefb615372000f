//! Texts by the million, made of those in the corpus: nothing panics, nothing takes long, and JSON stays what it is.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use toolcrib::call::repair::{ArgumentStream, Names, mend_names, read, read_strictly};
use toolcrib::call::wire::{read_all_text, read_text};

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
        let _ = mend_names(&again, &schema, Names::default());
        assert_eq!(read_strictly(&again.to_string()).map(|reading| reading.arguments), Ok(reading.arguments.clone()));
    }
    let mut stream = ArgumentStream::default();
    let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    stream.feed(&text[..middle]);
    let _ = stream.partial();
    stream.feed(&text[middle..]);
    let _ = stream.partial();
    assert_eq!(stream.finish(), reading);
    let _ = (read_text(text, None, &|_, _| None), read_all_text(text, None, &|_, _| None));
}

fn fuzz(count: usize, seed: u64) -> Duration {
    let (corpus, mut chance, mut longest) = (corpus(), Chance(seed), Duration::ZERO);
    for _ in 0..count {
        let text = mutated(&mut chance, &corpus);
        let begun = Instant::now();
        hold(&text);
        longest = longest.max(begun.elapsed());
    }
    longest
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
    let longest = fuzz(1_000_000, 0x0123_4567_89AB_CDEF);

    println!("the longest of 1000000 texts took {longest:?}");
}

#[test]
#[ignore = "measures: cargo test --release prop_ -- --ignored --nocapture"]
fn prop_time_grows_with_the_length() {
    for (name, make) in hostile() {
        let times: Vec<f64> = [1usize << 17, 1 << 18, 1 << 19, (1 << 20) - 64]
            .into_iter()
            .map(|size| {
                let text = make(size);
                let begun = Instant::now();
                let _ = read(&text);
                begun.elapsed().as_secs_f64() * 1e3
            })
            .collect();

        println!("{name:20} {:8.1} {:8.1} {:8.1} {:8.1} ms", times[0], times[1], times[2], times[3]);
        // Eight times the length: linear time grows by 8, quadratic time by 64.
        assert!(times[3] < 24.0 * times[0].max(1.0), "{name}: {times:.1?} ms");
    }
}

type Make = fn(usize) -> String;

fn hostile() -> Vec<(&'static str, Make)> {
    vec![
        ("open string", |n| format!("{{\"a\": \"{}", "x\\n".repeat(n / 3))),
        ("quotes", |n| format!("{{{}", "'".repeat(n))),
        ("double quotes", |n| format!("{{{}", "\"".repeat(n))),
        ("words in quotes", |n| format!("{{{}", "'a' ".repeat(n / 4))),
        ("backslashes", |n| format!("{{\"a\": \"{}", "\\".repeat(n))),
        ("foreign escapes", |n| format!("{{\"a\": \"{}\"}}", "\\d".repeat(n / 2))),
        ("comments", |n| format!("{{\"a\": {}", "/*".repeat(n / 2))),
        ("line comments", |n| format!("{{\"a\": {}1}}", "// x\n".repeat(n / 5))),
        ("fences", |n| "```".repeat(n / 3)),
        ("objects", |n| "{\"a\": 1} ".repeat(n / 9)),
        ("colons", |n| format!("{{{}", "a:".repeat(n / 2))),
        ("missing commas", |n| format!("{{\"a\": [{}", "1 ".repeat(n / 2))),
        ("missing quotes", |n| format!("{{\"a\": [{}]}}", "\"b, ".repeat(n / 4))),
        ("trailing commas", |n| format!("{{\"a\": [1{}]}}", ",".repeat(n))),
        ("long strings", |n| format!("{{\"a\": [{}]}}", "\"\"\"x\"\"\",".repeat(n / 8))),
        ("wrappers", |n| format!("{{\"a\": {}", "f(1,".repeat(n / 4))),
        ("concatenation", |n| format!("{{\"a\": {}", "\"x\" + ".repeat(n / 6))),
        ("closing", |n| format!("{{\"a\": 1}}{}", "}".repeat(n))),
        ("python objects", |n| format!("{{'a': [{}]}}", "{'b': True, 'c': None},".repeat(n / 23))),
    ]
}
