//! Texts without number: nothing panics, nothing is lost, and nothing depends on how it was cut.
//!
//! `cargo test --release --test it fuzz -- --ignored` tries a million; `TOOLCRIB_FUZZ_CASES` says how many. A text that broke
//! something belongs into `tests/data/text_corpus/`.

use std::fs;
use std::path::Path;

use toolcrib::schema::docstring;
use toolcrib::text::TextFormat;

use super::cases;
use super::cuts::{FORMATS, WORDS, cut, every_place};

/// Numbers that look random: the same for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % below.max(1)
    }
}

/// What the kept texts and the cases have.
fn corpus() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/text_corpus");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let kept = paths.iter().map(|path| fs::read_to_string(path).expect("a text"));
    kept.chain(cases().iter().filter_map(|case| case["text"].as_str().map(str::to_owned))).collect()
}

/// Another text near one of the corpus: pieces are taken out, doubled, exchanged, cut off, or put in.
fn mutated(random: &mut Random, corpus: &[String]) -> String {
    let mut letters: Vec<char> = corpus[random.next(corpus.len())].chars().collect();
    for _ in 0..=random.next(4) {
        let from = random.next(letters.len() + 1);
        let to = (from + random.next(12)).min(letters.len());
        match random.next(6) {
            0 => drop(letters.drain(from..to)),
            1 => {
                let piece: Vec<char> = letters[from..to].to_vec();
                letters.splice(from..from, piece);
            }
            2 => letters.truncate(to),
            3 => {
                let other = &corpus[random.next(corpus.len())];
                let start = random.next(other.len());
                let piece: Vec<char> = other.chars().skip(start).take(random.next(40)).collect();
                letters.splice(from..to, piece);
            }
            4 => {
                letters.splice(from..from, WORDS[random.next(WORDS.len())].chars());
            }
            _ => {
                let letter = u32::try_from(random.next(0x300)).ok().and_then(char::from_u32).unwrap_or('\u{fffd}');
                letters.insert(from, letter);
            }
        }
    }
    letters.into_iter().collect()
}

fn try_out(text: &str, format: Option<TextFormat>, random: &mut Random) {
    let whole = cut(text, format, &[]);
    let places: Vec<usize> = every_place(text).into_iter().filter(|_| random.next(3) == 0).collect();
    let pieces = cut(text, format, &places);

    assert_eq!(pieces, whole, "{format:?} {text:?} cut at {places:?}");
}

fn fuzz(times: usize, seed: u64) {
    let corpus = corpus();
    let mut random = Random(seed);
    for _ in 0..times {
        let text = mutated(&mut random, &corpus);
        let format = FORMATS[random.next(FORMATS.len())];
        try_out(&text, format, &mut random);
        drop(docstring::parse(&text));
    }
}

#[test]
fn the_corpus_holds() {
    let mut random = Random(1);
    for text in corpus() {
        for format in FORMATS {
            try_out(&text, format, &mut random);
            assert_eq!(cut(&text, format, &every_place(&text)), cut(&text, format, &[]), "{format:?} {text:?}");
        }
    }
}

#[test]
fn some_thousand_texts_hold() {
    fuzz(5_000, 0x9E37_79B9_7F4A_7C15);
}

#[test]
#[ignore = "takes minutes: a million texts, in release mode"]
fn prop_a_million_texts_hold() {
    let asked = std::env::var("TOOLCRIB_FUZZ_CASES").ok().and_then(|count| count.parse().ok());
    let seed = std::env::var("TOOLCRIB_FUZZ_SEED").ok().and_then(|seed| seed.parse().ok());
    fuzz(asked.unwrap_or(1_000_000), seed.unwrap_or(0xD1B5_4A32_D192_ED03));
}
