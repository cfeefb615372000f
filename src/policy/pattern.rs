//! Patterns: globs over names and texts, and regular expressions over arguments.
//!
//! In a glob `*` is any number of characters, `?` is one, `[a-z]` is one of those and `[!a-z]` one of the others; a backslash
//! escapes the next character. A glob matches the whole text, and the text is not a path: `*` crosses slashes, and case matters.
//! Braces are refused, because a list of globs says the same more plainly.
//!
//! `args_pattern` is searched in the canonical text of the arguments. A string inside of them cannot pass for a key,
//! because its quotes are escaped, but a nested object can: `{"note": {"command": "ls"}}` has `"command":"ls"` in it. A
//! pattern with `\0` is therefore searched in a text where each argument stands between two zero bytes, which
//! nothing else can contain: `\0"command":"ls"\0` is found for the argument `command` and nothing inside of another.

use std::fmt::Write;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::json::canonical;

/// The longest glob, in bytes.
const LIMIT: usize = 1024;

/// The longest regular expression in bytes, and the limits of its automata.
const LENGTH: usize = 4096;
const SIZE: usize = 1 << 20;
const NEST: u32 = 64;

/// A glob with wildcards.
#[derive(Debug, Clone)]
pub(super) struct Glob {
    prefix: Box<str>,
    suffix: Box<str>,
    /// None for `prefix*suffix`, the most common form, which needs no automaton.
    regex: Option<Regex>,
}

/// A glob, or the one text that it stands for.
#[derive(Debug, Clone)]
pub(super) enum Parsed {
    Exact(Box<str>),
    Glob(Glob),
}

impl Parsed {
    /// True if the whole text matches.
    pub(super) fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => **exact == *text,
            Self::Glob(glob) => glob.is_match(text),
        }
    }
}

impl Glob {
    /// True if the whole text matches.
    pub(super) fn is_match(&self, text: &str) -> bool {
        match &self.regex {
            Some(regex) => regex.is_match(text),
            None => text.strip_prefix(&*self.prefix).is_some_and(|rest| rest.ends_with(&*self.suffix)),
        }
    }

    /// The text that every match begins with; may be empty.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The text that every match ends with; may be empty.
    pub(super) fn suffix(&self) -> &str {
        &self.suffix
    }
}

/// Parses a glob by translating it to a regular expression; the error is a clause on what is wrong with it.
pub(super) fn parse(pattern: &str) -> Result<Parsed, String> {
    const ANY: &str = ".*";
    if pattern.is_empty() {
        return Err("it is empty".to_owned());
    }
    if pattern.len() > LIMIT {
        return Err(format!("it is longer than {LIMIT} bytes"));
    }
    // `text` is the literal text since the last wildcard, and the prefix of the glob until there is one.
    let (mut expression, mut prefix, mut text) = (String::new(), None, String::new());
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let wildcard = match letter {
            // `**` means the same as `*`.
            '*' if text.is_empty() && expression.ends_with(ANY) => continue,
            '*' => ANY.to_owned(),
            '?' => ".".to_owned(),
            '[' => class(&mut letters)?,
            '{' | '}' => return Err(format!("it has the brace `{letter}`: write a list of globs, or `\\{letter}`")),
            '\\' => {
                text.push(letters.next().ok_or("it ends in a backslash, which escapes nothing")?);
                continue;
            }
            letter => {
                text.push(letter);
                continue;
            }
        };
        if prefix.is_none() {
            prefix = Some(text.clone());
        }
        expression += &regex::escape(&text);
        expression += &wildcard;
        text.clear();
    }
    let Some(prefix) = prefix else { return Ok(Parsed::Exact(text.into())) };
    let is_plain = expression == regex::escape(&prefix) + ANY;
    let compile = || Regex::new(&format!(r"\A(?s:{expression}{})\z", regex::escape(&text)));
    let regex = if is_plain { None } else { Some(compile().map_err(|error| error.to_string())?) };
    Ok(Parsed::Glob(Glob { prefix: prefix.into(), suffix: text.into(), regex }))
}

/// Parses the rest of a class after its opening bracket, and translates it.
fn class(letters: &mut std::str::Chars<'_>) -> Result<String, String> {
    const UNCLOSED: &str = "it has a `[` without its `]`: write `\\[` for the letter";
    let is_negated = letters.as_str().starts_with(['!', '^']);
    if is_negated {
        letters.next();
    }
    let start = if is_negated { "[^" } else { "[" };
    let mut class = start.to_owned();
    loop {
        let from = match letters.next().ok_or(UNCLOSED)? {
            ']' if class != start => break,
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
        // Writing to a string does not fail.
        let _ = write!(class, "\\x{{{:x}}}-\\x{{{:x}}}", u32::from(from), u32::from(to));
    }
    Ok(class + "]")
}

/// Compiles a regular expression, which matches in time linear in the text; the error is a clause on what is wrong with it.
pub(super) fn regex(source: &str) -> Result<Regex, String> {
    if source.len() > LENGTH {
        return Err(format!("the expression is longer than {LENGTH} bytes"));
    }
    RegexBuilder::new(source).size_limit(SIZE).dfa_size_limit(SIZE).nest_limit(NEST).build().map_err(
        |error| match error {
            regex::Error::CompiledTooBig(_) => "the expression has more states than a rule may have".to_owned(),
            // The last line of a syntax error is its message; those before show the position.
            error => {
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("invalid regular expression `{source}`: {reason}")
            }
        },
    )
}

/// A regular expression over all arguments.
#[derive(Debug, Clone)]
pub(super) struct ArgumentsPattern {
    regex: Regex,
    is_framed: bool,
}

/// The texts of one call's arguments, each made when the first pattern needs it.
#[derive(Debug, Default)]
pub(super) struct ArgumentTexts {
    plain: Option<String>,
    framed: Option<String>,
}

impl ArgumentsPattern {
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        let (source, is_framed) = with_zeros(source);
        Ok(Self { regex: regex(&source)?, is_framed })
    }

    /// True if the expression is found; never in a call without arguments.
    pub(super) fn is_match(&self, arguments: &Value, texts: &mut ArgumentTexts) -> bool {
        let Value::Object(entries) = arguments else { return false };
        let text = if self.is_framed {
            texts.framed.get_or_insert_with(|| framed(entries))
        } else {
            texts.plain.get_or_insert_with(|| canonical(arguments))
        };
        self.regex.is_match(text)
    }
}

/// Translates `\0` to the engine's spelling of a zero byte; the flag is true if there was one.
fn with_zeros(source: &str) -> (String, bool) {
    let mut text = String::with_capacity(source.len());
    let mut letters = source.chars().peekable();
    let mut is_framed = false;
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some('0')) => {
                letters.next();
                text.push_str("\\x00");
                is_framed = true;
            }
            ('\\', Some(_)) => {
                text.push('\\');
                text.extend(letters.next());
            }
            ('\0', _) => {
                text.push_str("\\x00");
                is_framed = true;
            }
            _ => text.push(letter),
        }
    }
    (text, is_framed || source.contains("\\x00"))
}

fn framed(entries: &Map<String, Value>) -> String {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    let parts = entries.into_iter().map(|(key, value)| {
        let key = canonical(&Value::String(key.clone()));
        format!("\0{key}:{}\0", canonical(value))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn finds(pattern: &str, arguments: &Value) -> bool {
        ArgumentsPattern::parse(pattern).unwrap().is_match(arguments, &mut ArgumentTexts::default())
    }

    #[test]
    fn a_pattern_is_searched_in_the_canonical_text() {
        assert!(finds(r#""a":1,"b":2"#, &json!({"b": 2, "a": 1})));
        assert!(finds(r#""command":"git "#, &json!({"z": 1, "command": "git log"})));
        assert!(!finds(r#""command":"git "#, &json!({"command": "echo git "})));
        assert!(finds("^\\{\\}$", &json!({})));
    }

    #[test]
    fn a_call_without_arguments_has_no_text() {
        assert!(!finds("", &Value::Null));
    }

    #[test]
    fn a_framed_pattern_cannot_be_forged() {
        let pattern = r#"\0"command":"git [a-z]+"\0"#;

        assert!(finds(pattern, &json!({"a": 1, "command": "git log", "z": 1})));
        for forged in [
            json!({"command": "rm", "note": {"command": "git log"}}),
            json!({"command": "rm", "note": "\0\"command\":\"git log\"\0"}),
            json!({"command": "rm", "\0\"command\":\"git log\"\0": 1}),
            json!({"command": "git log; rm"}),
            json!({"command": ["git log"]}),
        ] {
            assert!(!finds(pattern, &forged), "{forged}");
        }
    }

    #[test]
    fn an_expression_that_would_take_much_is_refused() {
        for bomb in
            ["(a{1000}){1000}", "((((a{100}){100}){100}){100}){100}", "\\w{5000}", &"(".repeat(100), &"a".repeat(5000)]
        {
            assert!(regex(bomb).is_err());
        }
        assert!(regex("(").unwrap_err().ends_with("unclosed group"));
    }

    #[test]
    fn an_expression_that_others_choke_on_is_quick() {
        let text = "a".repeat(200_000);

        assert!(!regex("^(a+)+$").unwrap().is_match(&format!("{text}!")));
        assert!(!regex("(a|aa)+b").unwrap().is_match(&text));
    }

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

    #[test]
    fn the_longest_globs_can_be_compiled() {
        for pattern in ["?".repeat(LIMIT), "[!a]".repeat(LIMIT / 4), "a*".repeat(LIMIT / 2)] {
            assert!(matches(&pattern, &"a".repeat(LIMIT)) != pattern.contains('!'), "{pattern}");
        }
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
