//! Listing folders, searching names in a tree, and the metadata of a file, in bounded memory.

use std::collections::BinaryHeap;
use std::os::fd::{AsFd, OwnedFd};

use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};
use tokio_util::sync::CancellationToken;

use super::error::{FileError, Subject};
use super::path::{LogicalPath, displayed, is_temporary};
use super::root::{Root, again, size};

/// The largest number of entries that one search looks at.
const MAX_VISITED: usize = 200_000;
/// The deepest folder that a search enters.
const MAX_DEPTH: usize = 128;
/// The longest pattern in bytes, the largest number of excluded patterns and of their bytes, and the size of an automaton.
const MAX_PATTERN: usize = 1024;
const MAX_PATTERNS: usize = 100;
const MAX_PATTERNS_BYTES: usize = 8 * 1024;
const MAX_AUTOMATON: usize = 4 << 20;

/// The type of an entry of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, which is never followed.
    Link,
    /// A pipe, socket or device, which is never opened.
    Other,
}

impl EntryKind {
    fn of(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }

    /// The word in the metadata of a file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Folder => "directory",
            Self::Link => "link",
            Self::Other => "other",
        }
    }
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name, which need not be UTF-8.
    pub name: Vec<u8>,
    /// The type.
    pub kind: EntryKind,
    /// The size in bytes, if it was asked for.
    pub size: Option<u64>,
}

impl Entry {
    /// The name as a model reads it, with invisible characters escaped.
    #[must_use]
    pub fn displayed(&self) -> String {
        displayed(&self.name)
    }
}

/// The metadata of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    /// The type.
    pub kind: EntryKind,
    /// The size in bytes.
    pub size: u64,
    /// The time of the last change, in nanoseconds since 1970.
    pub modified: i128,
    /// The permission bits.
    pub mode: u32,
}

impl From<Stat> for FileFacts {
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_cast,
        clippy::cast_lossless,
        reason = "the types differ between systems"
    )]
    fn from(stat: Stat) -> Self {
        Self {
            kind: EntryKind::of(FileType::from_raw_mode(stat.st_mode)),
            size: size(&stat),
            modified: i128::from(stat.st_mtime) * 1_000_000_000 + stat.st_mtime_nsec as i128,
            mode: u32::from(stat.st_mode) & 0o777,
        }
    }
}

/// The entries of a folder and their total number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listing {
    /// The first entries, by name.
    pub(super) entries: Vec<Entry>,
    /// The number of entries, also of those that are left out.
    pub(super) total: usize,
}

/// Reads the entries of a folder: the first `limit` of them by name.
pub(super) fn folder(
    folder: OwnedFd,
    with_sizes: bool,
    limit: usize,
    subject: Subject<'_>,
    cancel: &CancellationToken,
) -> Result<Listing, FileError> {
    let mut first: BinaryHeap<(Vec<u8>, EntryKind)> = BinaryHeap::new();
    let mut total = 0;
    let handle = folder.try_clone().map_err(|_| subject.failed(rustix::io::Errno::MFILE))?;
    for_each(folder, subject, cancel, |name, kind| {
        total += 1;
        first.push((name.to_vec(), kind));
        if first.len() > limit {
            first.pop();
        }
        true
    })?;
    let mut entries = Vec::with_capacity(first.len());
    for (name, kind) in first.into_sorted_vec() {
        let size = if with_sizes && kind == EntryKind::File {
            // Gone meanwhile: an entry without a size.
            again(|| statat(&handle, &*name, AtFlags::SYMLINK_NOFOLLOW)).ok().map(|stat| size(&stat))
        } else {
            None
        };
        entries.push(Entry { name, kind, size });
    }
    Ok(Listing { entries, total })
}

/// Calls a function with the name and the type of each entry, until it returns false.
fn for_each(
    folder: OwnedFd,
    subject: Subject<'_>,
    cancel: &CancellationToken,
    mut take: impl FnMut(&[u8], EntryKind) -> bool,
) -> Result<(), FileError> {
    let failed = |errno| subject.failed(errno);
    let mut entries = Dir::new(folder).map_err(failed)?;
    while let Some(entry) = entries.read() {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." || is_temporary(name) {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not store the type in the folder.
            FileType::Unknown => {
                let folder = entries.fd().map_err(failed)?;
                let stat = statat(folder.as_fd(), entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
                stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
            }
            kind => kind,
        };
        if !take(name, EntryKind::of(kind)) {
            break;
        }
        if cancel.is_cancelled() {
            return Err(FileError::Cancelled);
        }
    }
    Ok(())
}

/// The names that a search looks for, or leaves out: one automaton for all patterns, so that many cost little more than one.
#[derive(Debug)]
pub(super) struct NamePattern {
    /// Matches whole names and paths.
    globs: Regex,
    /// Matches a part of a name.
    texts: Regex,
}

impl NamePattern {
    /// Parses a pattern: `*` is any number of characters, `**/` any number of folders, `?` is one character, `[a-z]` is one of those
    /// and `[!a-z]` one of the others. A name that contains the text matches as well.
    pub(super) fn parse(text: &str) -> Result<Self, FileError> {
        let invalid =
            |reason: &str| FileError::argument(format!("invalid pattern `{}`: {reason}", super::path::shown(text)));
        if text.is_empty() {
            return Err(invalid("it is empty"));
        }
        if text.len() > MAX_PATTERN {
            return Err(invalid("it is too long"));
        }
        // A range that is the wrong way round.
        Self::compiled([text]).ok_or_else(|| invalid("it has an invalid class"))
    }

    /// Parses patterns of which any may match; none if there are none.
    pub(super) fn parse_any(texts: &[String]) -> Result<Option<Self>, FileError> {
        let (count, bytes) = (texts.len(), texts.iter().map(String::len).sum::<usize>());
        if count > MAX_PATTERNS || bytes > MAX_PATTERNS_BYTES {
            return Err(FileError::argument(format!(
                "too many patterns: expected at most {MAX_PATTERNS}, of {MAX_PATTERNS_BYTES} bytes together, got {count} of \
                 {bytes} bytes: use patterns that match more names"
            )));
        }
        if texts.is_empty() {
            return Ok(None);
        }
        texts.iter().try_for_each(|text| Self::parse(text).map(drop))?;
        let compiled = Self::compiled(texts.iter().map(String::as_str));
        compiled.map(Some).ok_or_else(|| FileError::argument("the patterns are too large together: use fewer of them"))
    }

    fn compiled<'t>(texts: impl IntoIterator<Item = &'t str>) -> Option<Self> {
        let (globs, texts): (Vec<String>, Vec<String>) =
            texts.into_iter().map(|text| (translated(text), regex::escape(text))).unzip();
        let build = |source: String| {
            RegexBuilder::new(&source).size_limit(MAX_AUTOMATON).dfa_size_limit(MAX_AUTOMATON).build().ok()
        };
        let globs = build(format!(r"\A(?s:{})\z", globs.join("|")))?;
        Some(Self { globs, texts: build(texts.join("|"))? })
    }

    /// True if the name or the path matches, or the name contains the text.
    fn is_match(&self, name: &str, relative: &str) -> bool {
        // At the top, where both are the same, once is enough.
        self.globs.is_match(name.as_bytes())
            || (relative.len() > name.len() && self.globs.is_match(relative.as_bytes()))
            || self.texts.is_match(name.as_bytes())
    }
}

/// A glob as a regular expression.
fn translated(glob: &str) -> String {
    // Any bytes: the automaton is much smaller than that of any characters, and matches the same texts.
    const ANY: &str = "(?-u:.)*";
    const FOLDERS: &str = "(?:(?-u:.)*/)?";
    let mut expression = String::new();
    let mut rest = glob;
    while let Some(character) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("**/")
            && (expression.is_empty() || expression.ends_with('/') || expression.ends_with(FOLDERS))
        {
            expression.push_str(FOLDERS);
            rest = after;
            continue;
        }
        rest = &rest[character.len_utf8()..];
        match character {
            '*' if expression.ends_with(ANY) => {}
            '*' => expression.push_str(ANY),
            '?' => expression.push('.'),
            '[' => match class(rest) {
                Some((class, after)) => {
                    expression.push_str(&class);
                    rest = after;
                }
                None => expression.push_str(r"\["),
            },
            character => expression.push_str(&regex::escape(character.encode_utf8(&mut [0; 4]))),
        }
    }
    expression
}

/// A class as a regular expression, and the text after it; none if it is not closed.
fn class(text: &str) -> Option<(String, &str)> {
    let (start, text) = text.strip_prefix('!').map_or(("[", text), |text| ("[^", text));
    // A bracket at the beginning is a member of the class.
    let first = text.chars().next()?;
    let end = first.len_utf8() + text[first.len_utf8()..].find(']')?;
    let members: String = text[..end]
        .chars()
        .map(|member| if member == '-' { "-".to_owned() } else { format!("\\x{{{:x}}}", u32::from(member)) })
        .collect();
    let members = if let Some(rest) = members.strip_prefix('-') { format!("\\-{rest}") } else { members };
    let members = if let Some(rest) = members.strip_suffix('-') { format!("{rest}\\-") } else { members };
    Some((format!("{start}{members}]"), &text[end + 1..]))
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Found {
    /// The paths, as a model reads them; those of folders end in a slash.
    pub(super) paths: Vec<String>,
    /// True if the search ended at a limit.
    pub(super) is_truncated: bool,
}

/// Searches the names beneath a folder, in the order of their paths.
pub(super) fn search(
    root: &Root,
    relative: &str,
    (pattern, excluded): (&NamePattern, Option<&NamePattern>),
    limit: usize,
    subject: Subject<'_>,
    cancel: &CancellationToken,
) -> Result<Found, FileError> {
    let base = LogicalPath::as_str(subject.path);
    let (mut found, mut visited) = (Found::default(), 0);
    // Folders are opened one after the other, each from the root, so that a deep tree needs no more descriptors than a flat one.
    let mut folders: Vec<(Vec<u8>, usize)> = vec![(Vec::new(), 0)];
    while let Some((below, depth)) = folders.pop() {
        let handle = match root.open_folder(&joined(relative.as_bytes(), &below), subject) {
            Ok(handle) => handle,
            Err(error) if depth == 0 => return Err(error),
            // Removed, replaced or unreadable meanwhile, or another mount: not part of the result.
            Err(_) => continue,
        };
        let mut entries = Vec::new();
        for_each(handle, subject, cancel, |name, kind| {
            visited += 1;
            entries.push((name.to_vec(), kind));
            visited <= MAX_VISITED
        })?;
        if visited > MAX_VISITED {
            found.is_truncated = true;
        }
        entries.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let mut deeper = Vec::new();
        for (name, kind) in entries {
            let path = joined(&below, &name);
            let (name, text) = (String::from_utf8_lossy(&name), String::from_utf8_lossy(&path));
            if excluded.is_some_and(|excluded| excluded.is_match(&name, &text)) {
                continue;
            }
            if pattern.is_match(&name, &text) {
                if found.paths.len() >= limit {
                    found.is_truncated = true;
                    return Ok(found);
                }
                let slash = if kind == EntryKind::Folder { "/" } else { "" };
                found.paths.push(format!("{base}/{}{slash}", displayed(&path)));
            }
            if kind == EntryKind::Folder && depth < MAX_DEPTH {
                deeper.push((path, depth + 1));
            }
        }
        if found.is_truncated {
            return Ok(found);
        }
        folders.extend(deeper.into_iter().rev());
    }
    Ok(found)
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() || name.is_empty() { [folder, name].concat() } else { [folder, b"/", name].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        NamePattern::parse(pattern).unwrap().is_match(name, name)
    }

    #[test]
    fn a_pattern_is_a_glob_or_a_part_of_the_name() {
        for (pattern, name) in [
            ("*.py", "a.py"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[]x]", "]"),
            ("[-a]", "-"),
            ("[a-]", "-"),
            ("not", "notes.txt"),
            ("[", "a[b"),
            ("*", "\u{1f600}\n"),
            ("**/a.py", "a.py"),
            ("**/a.py", "b/c/a.py"),
            ("b/**/a.py", "b/a.py"),
            ("**/**/a.py", "a.py"),
            ("b/**", "b/c/a.py"),
            ("a.c", "a.c"),
            ("(x", "(x"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.py", "a.pyc"),
            ("a?c", "ac"),
            ("[!a-c]x", "ax"),
            ("a.c", "abc"),
            ("Notes", "notes"),
            ("**/a.py", "ba.py"),
            ("b/**/a.py", "bx/a.py"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn an_invalid_pattern_is_an_error() {
        for pattern in ["", "[z-a]", &"a".repeat(2000), &"[a-z]*".repeat(170)] {
            if let Err(error) = NamePattern::parse(pattern) {
                assert!(error.to_string().starts_with("invalid pattern `"), "{error}");
            }
        }
        assert!(NamePattern::parse("[z-a]").is_err());
    }

    #[test]
    fn any_of_several_patterns_matches() {
        let texts = ["*.py", "node_modules", "b/*", "[!a-y]?"].map(str::to_owned);
        let any = NamePattern::parse_any(&texts).unwrap().unwrap();

        for (name, path) in [("a.py", "x/a.py"), ("my_node_modules", "m"), ("c", "b/c"), ("z\u{e9}", "q/z\u{e9}")] {
            assert!(any.is_match(name, path), "{name} {path}");
        }
        assert!(!any.is_match("a.pyc", "c/a.pyc"));
        assert!(NamePattern::parse_any(&[]).unwrap().is_none());
    }

    #[test]
    fn an_unlimited_number_of_patterns_is_refused() {
        let many: Vec<String> = (0..101).map(|number| format!("*{number}")).collect();
        let long = vec!["a".repeat(1000); 9];

        assert!(NamePattern::parse_any(&many[..100]).is_ok());
        for refused in [many, long] {
            let error = NamePattern::parse_any(&refused).unwrap_err().to_string();
            assert!(error.starts_with("too many patterns: expected at most 100"), "{error}");
        }
        let error = NamePattern::parse_any(&["a".to_owned(), "[z-a]".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "invalid pattern `[z-a]`: it has an invalid class");
    }

    #[test]
    fn a_pattern_of_many_stars_takes_linear_time() {
        assert!(!matches(&"*a".repeat(500), &"a".repeat(200)));
    }
}
