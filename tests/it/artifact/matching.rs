//! The place of a quotation in a text.

use proptest::prelude::*;
use serde_json::Value;
use toolcrib::artifact::{Match, MatchType, Mismatch, find};

/// The text after the place of the quotation is replaced.
fn replace(text: &str, quotation: &str, new: &str) -> Result<String, Mismatch> {
    find(text, quotation).map(|found| splice(text, &found, new))
}

fn splice(text: &str, found: &Match, new: &str) -> String {
    format!("{}{new}{}", &text[..found.span.start], &text[found.span.end..])
}

/// Cases of ArtifactFlow that it refuses because it compares with more than the place.
const FOUND_HERE: [(&str, &str); 2] = [
    ("far_from_start", "Line 35: the quick brown fox number 35 jumps over the lazy dog."),
    (
        "long_pattern_over_32",
        "Line 3: the quick brown fox number 3 jumps over the lazy dog.\n\
         Line 4: the quick brown fox number 4 jumps over the lazy dog.",
    ),
];

#[test]
fn the_cases_of_artifactflow_have_its_results() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../../data/artifact_update_cases.json")).unwrap();
    for case in &cases {
        let field = |name: &str| case[name].as_str().unwrap_or_default();
        let (content, old, new) = (field("content"), field("old_str"), field("new_str"));

        let found = find(content, old);

        match FOUND_HERE.iter().find(|(id, _)| *id == field("id")) {
            Some((_, place)) => assert_eq!(&content[found.unwrap().span], *place),
            None => match found {
                Ok(found) => {
                    assert_eq!(splice(content, &found, new), field("new_content"), "{}", field("id"));
                    assert_eq!(found.kind.as_str(), field("match_type"), "{}", field("id"));
                    assert!((found.similarity - case["similarity"].as_f64().unwrap()).abs() < 1e-9);
                }
                // ArtifactFlow counts the edits of one alignment, which is not the best.
                Err(error) => assert_eq!(error.to_string(), field("message").replace("18", "14"), "{}", field("id")),
            },
        }
    }
}

#[test]
fn an_exact_quotation_must_be_unique() {
    let text = "a\nx = 1\nb\nx = 1\n";

    let error = find(text, "x = 1").unwrap_err();

    assert_eq!(error.to_string(), "Text 'x = 1...' appears 2 times (must be unique)");
    assert_eq!(error.lines(), [2, 4]);
    assert!(matches!(find("aaa", "aa"), Err(Mismatch::Repeated { count: 2, .. })), "overlapping places are two");
}

#[test]
fn an_empty_quotation_is_all_of_an_empty_text() {
    assert_eq!(replace("", "", "first line").unwrap(), "first line");
    assert!(matches!(find("ab", ""), Err(Mismatch::Repeated { count: 3, .. })));
}

#[test]
fn spaces_and_look_alikes_make_no_difference() {
    for (text, quotation, place) in [
        ("one\r\ntwo  three\r\nfour", "two three\nfour", "two  three\r\nfour"),
        ("He said: “it’s” – done", "He said: \"it's\" - done", "He said: “it’s” – done"),
        ("a\u{a0}b and c", "a b and", "a\u{a0}b and"),
        ("the cafe\u{301} is open", "the café is", "the cafe\u{301} is"),
        ("end of line   \nnext", "line\nnext", "line   \nnext"),
    ] {
        let found = find(text, quotation).unwrap();

        assert_eq!((&text[found.span], found.kind), (place, MatchType::Normalized));
    }
}

#[test]
fn a_letter_is_never_cut() {
    let text = "the ﬁnal word";

    assert!(find(text, "the f").is_err());
}

#[test]
fn two_equally_similar_places_are_refused_with_their_lines() {
    let text = "alpha beta gamma delta\nother\nalpha beta gamma delta\n";

    let error = find(text, "alpha beta gamna delta").unwrap_err();

    assert_eq!(
        error.to_string(),
        "Text 'alpha beta gamna delta...' has several equally similar places, at lines 1, 3 (edit distance: 1): quote the \
         text exactly, or more of it"
    );
    assert_eq!(error.lines(), [1, 3]);
}

#[test]
fn the_better_of_two_similar_places_is_taken() {
    let text = "alpha beta gamma delta 1\nalpha beta gamma delta 22\n";

    assert_eq!(replace(text, "alpha betta gamma delta 22", "new").unwrap(), "alpha beta gamma delta 1\nnew\n");
}

#[test]
fn an_edit_at_the_edge_of_the_quotation_is_undone_to_the_edge_of_a_word() {
    let text = "alpha beta\ngamma delta\nepsilon zeta\n";

    for quotation in ["Xamma delta", "Xgamma delta", "gamma deltX", "gamma deltaX", "ggamma delta"] {
        assert_eq!(replace(text, quotation, "new").unwrap(), "alpha beta\nnew\nepsilon zeta\n", "{quotation}");
    }
    for quotation in ["agmma delta", "gamma detla X"] {
        let place = replace(text, quotation, "new");

        assert!(place.is_err() || place == Ok("alpha beta\nnew\nepsilon zeta\n".to_owned()), "{quotation}: {place:?}");
    }
}

#[test]
fn too_different_a_place_is_refused() {
    let error = find("The cat sat on the mat.", "The cow sits at a mat!!").unwrap_err();

    assert!(matches!(error, Mismatch::Different { .. }), "{error:?}");
}

/// Random words by a fixed recurrence, so that each run has the same texts.
struct Words(u64);

impl Words {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }

    fn letter(&mut self) -> char {
        char::from(b'a' + u8::try_from(self.next(26)).unwrap())
    }

    fn line(&mut self) -> String {
        let words = (0..5 + self.next(8)).map(|_| (0..2 + self.next(8)).map(|_| self.letter()).collect::<String>());
        words.collect::<Vec<_>>().join(" ")
    }

    /// One letter lost, added or changed, or two exchanged.
    fn typo(&mut self, line: &str) -> String {
        let mut letters: Vec<char> = line.chars().collect();
        let at = self.next(letters.len() - 1);
        match self.next(4) {
            0 => drop(letters.remove(at)),
            1 => letters.insert(at, self.letter()),
            2 => letters[at] = self.letter(),
            _ => letters.swap(at, at + 1),
        }
        letters.into_iter().collect()
    }
}

#[test]
fn a_long_quotation_with_typos_is_found_in_a_text_of_words_that_are_repeated() {
    let mut random = Words(7);
    let words: Vec<String> = (0..2_000).map(|_| random.line().split(' ').next().unwrap().to_owned()).collect();
    let mut text = String::new();
    while text.len() < 1_000_000 {
        text.push_str(&words[random.next(words.len())]);
        text.push(if random.next(9) == 0 { '\n' } else { ' ' });
    }
    let line_end = |from: usize| from + text[from..].find('\n').unwrap();
    for length in [1_000, 3_000, 20_000] {
        let span = line_end(500_000) + 1..line_end(500_000 + length);
        let quotation = format!("{}##{}", &text[span.start..span.start + 400], &text[span.start + 402..span.end]);

        let found = find(&text, &quotation).unwrap();

        assert_eq!((found.kind, found.span), (MatchType::Fuzzy, span));
    }
}

#[test]
fn a_quotation_of_one_letter_or_of_many_different_ones_takes_little_memory() {
    let same = "a".repeat(1 << 21);
    let different: String = (0..2_000_000_u32).filter_map(|at| char::from_u32(0x1_0000 + at % 100_000)).collect();

    for (text, quotation) in [(&*same, &*format!("b{}b", &same[..4_000])), ("a", &different)] {
        assert!(matches!(find(text, quotation), Err(Mismatch::Missing { .. })));
    }
}

#[test]
fn a_quotation_with_a_typo_is_found_or_refused_but_never_misplaced() {
    let mut words = Words(1);
    let (mut right, mut refused, mut total) = (0, 0, 0);
    for lines in [3, 10, 30, 100] {
        for _ in 0..500 {
            let mut document: Vec<String> = (0..lines).map(|_| words.line()).collect();
            let at = words.next(lines);
            let quotation = words.typo(&document[at]);
            let text = document.join("\n");
            if text.contains(&quotation) {
                // An exact quotation of another text, or no typo at all.
                continue;
            }
            document[at] = "NEW".to_owned();
            total += 1;

            match replace(&text, &quotation, "NEW") {
                Ok(new) => {
                    assert_eq!(new, document.join("\n"), "{quotation}");
                    right += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(total > 1900);
    assert!(refused * 100 <= total * 5, "{right} right, {refused} refused");
}

fn document() -> impl Strategy<Value = String> {
    prop_oneof!["[ab \n]{0,80}", "[a-d’‘ \r\n\u{a0}ﬁé]{0,60}", "\\PC{0,60}", "([a-z]{1,8}[ \n]){0,40}"]
}

proptest! {
    #[test]
    fn a_place_is_always_whole_letters_of_the_text(text in document(), quotation in document()) {
        if let Ok(found) = find(&text, &quotation) {
            prop_assert!(text.get(found.span.clone()).is_some_and(|place| !place.is_empty()));
            prop_assert!(found.similarity >= 0.7);
        }
    }

    #[test]
    fn a_unique_part_of_the_text_is_its_own_place(text in "[a-f \n“é]{1,60}", from in 0..60_usize, length in 1..60_usize) {
        let letters: Vec<char> = text.chars().collect();
        let (before, part): (String, String) =
            (letters.iter().take(from).collect(), letters.iter().skip(from).take(length).collect());
        prop_assume!(!part.is_empty());

        match find(&text, &part) {
            Ok(found) => {
                prop_assert_eq!(found.kind, MatchType::Exact);
                prop_assert_eq!(found.span, before.len()..before.len() + part.len());
            }
            Err(error) => {
                let is_repeated = matches!(error, Mismatch::Repeated { .. });
                prop_assert!(is_repeated);
            }
        }
    }

    #[test]
    fn a_changed_letter_inside_a_unique_line_is_found(lines in prop::collection::vec("[a-z]{3,9}( [a-z]{3,9}){4,9}", 1..12), at in 0..12_usize, letter in 3..15_usize) {
        let text = lines.join("\n");
        let at = at % lines.len();
        let mut quotation: Vec<char> = lines[at].chars().collect();
        quotation[letter] = 'é';
        let quotation: String = quotation.into_iter().collect();

        if let Ok(found) = find(&text, &quotation) {
            let before: usize = lines[..at].iter().map(|line| line.len() + 1).sum();
            prop_assert_eq!(found.span, before..before + lines[at].len());
        }
    }
}
