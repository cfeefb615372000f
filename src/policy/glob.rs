//! Wildcards over a whole text, letter by letter.
//!
//! `*` is any number of letters, `?` is one, `[a-z]` is one of those and `[!a-z]` one of the others; a backslash makes
//! the next letter an ordinary one. A text is no path here: `*` crosses slashes, no letter is folded, and a letter is a
//! whole one, not a byte of it. Braces are refused, because a list of globs says the same more plainly.
//!
//! Each literal part is searched once, from left to right, so that the time grows with the text and not with the ways
//! in which it could be cut.

/// The longest glob.
pub(super) const LIMIT: usize = 1024;

/// A pattern of a whole text.
#[derive(Debug, Clone)]
pub(super) struct Glob {
    first: Segment,
    /// What stands between stars and after the last one; empty if there is no star.
    more: Box<[Segment]>,
}

/// What stands between two stars.
#[derive(Debug, Clone)]
enum Segment {
    Text(Box<str>),
    Letters(Box<[Letter]>),
}

#[derive(Debug, Clone)]
enum Letter {
    Is(char),
    Any,
    In { ranges: Box<[(char, char)]>, is_negated: bool },
}

/// A glob, or the one text that it stands for.
#[derive(Debug, Clone)]
pub(super) enum Parsed {
    Exact(Box<str>),
    Glob(Glob),
}

/// Reads a glob; the error says what is wrong with it.
pub(super) fn parse(pattern: &str) -> Result<Parsed, String> {
    if pattern.is_empty() {
        return Err("it is empty".to_owned());
    }
    if pattern.len() > LIMIT {
        return Err(format!("it is longer than {LIMIT} bytes"));
    }
    let mut segments = vec![Vec::new()];
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let read = match letter {
            // Stars side by side say no more than one.
            '*' if segments.len() > 1 && segments.last().is_some_and(Vec::is_empty) => continue,
            '*' => {
                segments.push(Vec::new());
                continue;
            }
            '?' => Letter::Any,
            '[' => class(&mut letters)?,
            '\\' => Letter::Is(letters.next().ok_or("it ends in a backslash, which escapes nothing")?),
            '{' | '}' => return Err(format!("it has the brace `{letter}`: write a list of globs, or `\\{letter}`")),
            letter => Letter::Is(letter),
        };
        if let Some(segment) = segments.last_mut() {
            segment.push(read);
        }
    }
    let mut segments = segments.into_iter().map(Segment::new);
    let first = segments.next().unwrap_or_else(|| Segment::Text("".into()));
    let more: Box<[_]> = segments.collect();
    Ok(match first {
        Segment::Text(text) if more.is_empty() => Parsed::Exact(text),
        first => Parsed::Glob(Glob { first, more }),
    })
}

/// Reads the rest of a class, whose bracket is open.
fn class(letters: &mut std::str::Chars<'_>) -> Result<Letter, String> {
    const UNCLOSED: &str = "it has a `[` without its `]`: write `\\[` for the letter";
    let is_negated = letters.as_str().starts_with(['!', '^']);
    if is_negated {
        letters.next();
    }
    let mut ranges = Vec::new();
    loop {
        let from = match letters.next().ok_or(UNCLOSED)? {
            ']' if !ranges.is_empty() => break,
            '\\' => letters.next().ok_or(UNCLOSED)?,
            letter => letter,
        };
        let mut ahead = letters.clone();
        let to = match (ahead.next(), ahead.next()) {
            (Some('-'), Some(to)) if to != ']' => {
                letters.nth(1);
                if to == '\\' { letters.next().ok_or(UNCLOSED)? } else { to }
            }
            _ => from,
        };
        if to < from {
            return Err(format!("its range `{from}-{to}` is the wrong way round"));
        }
        ranges.push((from, to));
    }
    Ok(Letter::In { ranges: ranges.into(), is_negated })
}

impl Glob {
    /// Whether the whole text is of this form.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let Some(mut rest) = self.first.strip_start(text) else { return false };
        let Some((last, between)) = self.more.split_last() else { return rest.is_empty() };
        for segment in between {
            match segment.strip_first(rest) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        last.ends(rest)
    }

    /// The text that everything of this form begins with; may be empty.
    pub(super) fn prefix(&self) -> &str {
        self.first.text()
    }

    /// The text that everything of this form ends with; may be empty.
    pub(super) fn suffix(&self) -> &str {
        self.more.last().map_or("", Segment::text)
    }
}

impl Segment {
    fn new(letters: Vec<Letter>) -> Self {
        let text: Option<String> =
            letters.iter().map(|letter| if let Letter::Is(letter) = letter { Some(*letter) } else { None }).collect();
        match text {
            Some(text) => Self::Text(text.into()),
            None => Self::Letters(letters.into()),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Letters(_) => "",
        }
    }

    /// What is left after this at the beginning.
    fn strip_start<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Text(part) => text.strip_prefix(&**part),
            Self::Letters(letters) => {
                let mut rest = text.chars();
                letters.iter().all(|letter| rest.next().is_some_and(|seen| letter.is(seen))).then_some(rest.as_str())
            }
        }
    }

    /// What is left after the first place where this stands.
    fn strip_first<'t>(&self, text: &'t str) -> Option<&'t str> {
        match self {
            Self::Text(part) => text.find(&**part).map(|at| &text[at + part.len()..]),
            Self::Letters(_) => text.char_indices().find_map(|(at, _)| self.strip_start(&text[at..])),
        }
    }

    fn ends(&self, text: &str) -> bool {
        match self {
            Self::Text(part) => text.ends_with(&**part),
            Self::Letters(letters) => {
                let mut rest = text.chars();
                letters.iter().rev().all(|letter| rest.next_back().is_some_and(|seen| letter.is(seen)))
            }
        }
    }
}

impl Letter {
    fn is(&self, seen: char) -> bool {
        match self {
            Self::Is(letter) => *letter == seen,
            Self::Any => true,
            Self::In { ranges, is_negated } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&seen)) != *is_negated
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        match parse(pattern).unwrap() {
            Parsed::Exact(exact) => *exact == *text,
            Parsed::Glob(glob) => glob.is_match(text),
        }
    }

    #[test]
    fn a_glob_is_about_the_whole_text() {
        for (pattern, text, expected) in [
            ("read", "read", true),
            ("read", "read_file", false),
            ("read_*", "read_file", true),
            ("read_*", "read_", true),
            ("read_*", "xread_file", false),
            ("*_file", "read_file", true),
            ("*_file", "read_files", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("aba*aba", "aba", false),
            ("aba*aba", "abaaba", true),
            ("*", "", true),
            ("**", "a/b", true),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a-c]x", "éx", true),
            ("[]]", "]", true),
            ("[a-]", "-", true),
            (r"[\]-a]", "^", true),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("*?", "", false),
            ("*[0-9]*", "ab7c", true),
            ("*[0-9]?", "ab7c", true),
            ("Read", "read", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn what_is_no_glob_is_refused() {
        for (pattern, word) in [
            ("", "empty"),
            ("[a", "without"),
            ("[]", "without"),
            (r"a\", "backslash"),
            ("{a,b}", "brace"),
            ("[z-a]", "wrong way"),
        ] {
            assert!(parse(pattern).unwrap_err().contains(word), "{pattern}");
        }
        assert!(parse(&"a".repeat(LIMIT + 1)).is_err());
    }

    /// The definition, without any care for time.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, _) => text.is_empty(),
            (Some(('*', rest)), None) => by_definition(rest, text),
            (Some(('*', rest)), Some((_, after))) => by_definition(rest, text) || by_definition(pattern, after),
            (Some((letter, rest)), Some((seen, after))) => {
                (letter == seen || *letter == '?') && by_definition(rest, after)
            }
            (Some(_), None) => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_glob_is_what_its_definition_says(pattern in "[ab?*]{1,8}", text in "[abé]{0,8}") {
            let expected = by_definition(&pattern.chars().collect::<Vec<_>>(), &text.chars().collect::<Vec<_>>());

            prop_assert_eq!(matches(&pattern, &text), expected);
        }
    }
}
