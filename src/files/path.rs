//! Logical paths: the names by which a model calls files, and the form in which it is shown them.

use std::fmt;
use std::str::FromStr;

use super::error::FileError;
use crate::json::invisible::{Escaped, is_invisible};
use crate::store::TEMPORARY;

/// The longest path in bytes, as in Linux.
const MAX_LENGTH: usize = 4096;
/// The longest name in bytes, as in Linux.
const MAX_NAME: usize = 255;
/// The largest number of names in a path.
const MAX_DEPTH: usize = 128;

/// Texts that a path must not contain anywhere.
const REFUSED: [&str; 5] = ["..", "*", "?", "\\", "//"];

/// An absolute path under a logical root, such as `/workspace/notes.txt`.
///
/// There is one spelling for each file: a path has no `..`, no `.`, no empty names, no wildcards, no backslashes and no control
/// characters. A slash at the end is removed.
///
/// ```
/// use toolcrib::files::LogicalPath;
///
/// let path: LogicalPath = "/workspace/notes/".parse().unwrap();
///
/// assert_eq!(path.as_str(), "/workspace/notes");
/// assert!("/workspace/../etc/passwd".parse::<LogicalPath>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogicalPath(String);

impl LogicalPath {
    /// The path, without a slash at its end.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of a folder, with a slash at its end.
    #[must_use]
    pub fn as_folder(&self) -> String {
        format!("{}/", self.0)
    }

    /// The part of the path after a prefix, without a slash at its beginning; empty for the prefix itself. None if the path is
    /// not beneath the prefix.
    #[must_use]
    pub fn beneath(&self, prefix: &Self) -> Option<&str> {
        let rest = self.0.strip_prefix(&prefix.0)?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }
}

impl FromStr for LogicalPath {
    type Err = FileError;

    fn from_str(text: &str) -> Result<Self, FileError> {
        let invalid = |reason: &str| FileError::InvalidPath { path: shown(text), reason: reason.to_owned() };
        if text.is_empty() {
            return Err(invalid("it is empty"));
        }
        if text.len() > MAX_LENGTH {
            return Err(invalid("it is too long"));
        }
        if text.chars().any(char::is_control) {
            return Err(invalid("it contains a control character"));
        }
        if let Some(refused) = REFUSED.into_iter().find(|refused| text.contains(refused)) {
            return Err(invalid(&format!("it contains `{refused}`")));
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(invalid("it is not absolute, such as /workspace/notes.txt"));
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        for (depth, name) in rest.split('/').enumerate() {
            if name == "." {
                return Err(invalid("it contains the name `.`"));
            }
            if name.len() > MAX_NAME {
                return Err(invalid("it contains a name that is too long"));
            }
            if is_temporary(name.as_bytes()) {
                return Err(invalid("it contains a reserved name"));
            }
            if depth >= MAX_DEPTH {
                return Err(invalid("it has too many names"));
            }
        }
        Ok(Self(if rest.is_empty() { String::new() } else { format!("/{rest}") }))
    }
}

impl fmt::Display for LogicalPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if self.0.is_empty() { "/" } else { &self.0 };
        text.chars().try_for_each(|character| show(formatter, character))
    }
}

/// True for the name of a file that is being written, which is reserved.
pub(super) fn is_temporary(name: &[u8]) -> bool {
    name.starts_with(TEMPORARY.0.as_bytes()) && name.ends_with(TEMPORARY.1.as_bytes())
}

/// The longest text that an error message repeats, in characters.
const SHOWN: usize = 256;

/// A text of the model as an error message repeats it: on one line, visible, and not longer than needed.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    displayed(shown.as_bytes())
}

/// A name of the file system as a model reads it.
///
/// Characters that are invisible, or that change the order or the lines of the text around them, are escaped, and so are bytes
/// that are not UTF-8. A file name cannot forge a line of a listing.
pub(super) fn displayed(name: &[u8]) -> String {
    struct Name<'a>(&'a [u8]);
    impl fmt::Display for Name<'_> {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            for chunk in self.0.utf8_chunks() {
                chunk.valid().chars().try_for_each(|character| show(formatter, character))?;
                chunk.invalid().iter().try_for_each(|byte| write!(formatter, "\\x{byte:02x}"))?;
            }
            Ok(())
        }
    }
    Name(name).to_string()
}

fn show(formatter: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    if is_invisible(character) { write!(formatter, "{}", Escaped(character)) } else { write!(formatter, "{character}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> LogicalPath {
        text.parse().unwrap()
    }

    #[test]
    fn a_path_has_one_spelling() {
        for text in
            ["/workspace/a", "/workspace/a.b/ c.", "/~", "/%2e%2e/x", "/w/e\u{301}", "/w/\u{e9}", "/w/\u{202e}a"]
        {
            assert_eq!(path(text).as_str(), text);
        }
        assert_eq!(path("/workspace/").as_str(), "/workspace");
        assert_eq!(path("/").to_string(), "/");
    }

    #[test]
    fn a_path_outside_of_the_rules_is_invalid() {
        let long = format!("/w/{}", "a".repeat(256));
        let longer = format!("/w/{}", "a/".repeat(2500));
        let deep = format!("/w{}", "/a".repeat(1000));
        let refused = [
            "",
            "a",
            "~/a",
            "./a",
            "/a/../b",
            "/a..b",
            "/a//b",
            "//a",
            "/a\\b",
            "/a*",
            "/a?",
            "/a/./b",
            "/.",
            "/a\0b",
            "/a\nb",
            "/a\u{85}b",
            "/a/.toolcrib-1.tmp",
            &long,
            &longer,
            &deep,
        ];

        for text in refused {
            let error = text.parse::<LogicalPath>().unwrap_err();
            assert!(matches!(&error, FileError::InvalidPath { path, .. } if path.len() < 2000), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_prefix_covers_whole_names() {
        assert_eq!(path("/work/a/b").beneath(&path("/work/a/")), Some("b"));
        assert_eq!(path("/work/a").beneath(&path("/work/a/")), Some(""));
        assert_eq!(path("/work/ab").beneath(&path("/work/a")), None);
        assert_eq!(path("/work").beneath(&path("/work/a")), None);
    }

    #[test]
    fn a_name_cannot_forge_a_line() {
        assert_eq!(displayed(b"a\n[DIR] b"), "a\\u000a[DIR] b");
        assert_eq!(displayed("a\u{202e}b\u{200b}".as_bytes()), "a\\u202eb\\u200b");
        assert_eq!(displayed(b"a\xff\xfeb"), "a\\xff\\xfeb");
        assert_eq!(displayed("naïve 中文 ❤\u{fe0f}".as_bytes()), "naïve 中文 ❤\u{fe0f}");
    }
}
