//! Regular expressions over the arguments, in time that grows with the text only.
//!
//! `args_pattern` is searched in the canonical text of the arguments. A string inside of them cannot pass for a key,
//! because its quotes are escaped, but a nested object can: `{"note": {"command": "ls"}}` has `"command":"ls"` in it. A
//! pattern that says `\0` is therefore searched in a text where each argument stands between two zero bytes, which
//! nothing else can contain: `\0"command":"ls"\0` is found for the argument `command` and nothing inside of another.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use crate::json::canonical;

/// The longest expression, and what its automata may take.
const LENGTH: usize = 4096;
const SIZE: usize = 1 << 20;
const NEST: u32 = 64;

/// Reads a regular expression; the error says what is wrong with it.
pub(super) fn regex(source: &str) -> Result<Regex, String> {
    if source.len() > LENGTH {
        return Err(format!("the expression is longer than {LENGTH} bytes"));
    }
    RegexBuilder::new(source).size_limit(SIZE).dfa_size_limit(SIZE).nest_limit(NEST).build().map_err(
        |error| match error {
            regex::Error::CompiledTooBig(_) => "the expression stands for more states than a rule may have".to_owned(),
            // The last line of a syntax error says what it is; those before show where.
            error => {
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("`{source}` is no regular expression: {reason}")
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

/// The texts of one call's arguments, each made when the first pattern asks for it.
#[derive(Debug, Default)]
pub(super) struct Texts {
    plain: Option<String>,
    framed: Option<String>,
}

impl ArgumentsPattern {
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        let (source, is_framed) = with_zeros(source);
        Ok(Self { regex: regex(&source)?, is_framed })
    }

    /// Whether it is found; never in a call without arguments.
    pub(super) fn is_match(&self, arguments: &Value, texts: &mut Texts) -> bool {
        let Value::Object(entries) = arguments else { return false };
        let text = if self.is_framed {
            texts.framed.get_or_insert_with(|| framed(entries))
        } else {
            texts.plain.get_or_insert_with(|| canonical(arguments))
        };
        self.regex.is_match(text)
    }
}

/// Spells a zero byte as the engine does, and tells whether there was one.
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
    use serde_json::json;

    use super::*;

    fn matches(pattern: &str, arguments: &Value) -> bool {
        ArgumentsPattern::parse(pattern).unwrap().is_match(arguments, &mut Texts::default())
    }

    #[test]
    fn a_pattern_is_searched_in_the_canonical_text() {
        assert!(matches(r#""a":1,"b":2"#, &json!({"b": 2, "a": 1})));
        assert!(matches(r#""command":"git "#, &json!({"z": 1, "command": "git log"})));
        assert!(!matches(r#""command":"git "#, &json!({"command": "echo git "})));
        assert!(matches("^\\{\\}$", &json!({})));
    }

    #[test]
    fn a_call_without_arguments_has_no_text() {
        assert!(!matches("", &Value::Null));
    }

    #[test]
    fn a_framed_pattern_cannot_be_forged() {
        let pattern = r#"\0"command":"git [a-z]+"\0"#;

        assert!(matches(pattern, &json!({"a": 1, "command": "git log", "z": 1})));
        for forged in [
            json!({"command": "rm", "note": {"command": "git log"}}),
            json!({"command": "rm", "note": "\0\"command\":\"git log\"\0"}),
            json!({"command": "rm", "\0\"command\":\"git log\"\0": 1}),
            json!({"command": "git log; rm"}),
            json!({"command": ["git log"]}),
        ] {
            assert!(!matches(pattern, &forged), "{forged}");
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
}
