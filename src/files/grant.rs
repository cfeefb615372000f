//! Rights to files: operations on everything beneath a path.

use std::fmt;

use super::error::FileError;
use super::path::{LogicalPath, shown};
use crate::near::did_you_mean;

string_enum! {
    /// An operation that a grant can allow.
    pub enum Op {
        /// Lists the names in a folder, also of the folders beneath it.
        List = "list",
        /// Reads the size, the type and the times of a file.
        File = "file",
        /// Reads the bytes of a file.
        ReadBinary = "read_binary",
        /// Reads the text of a file.
        ReadFile = "read_file",
        /// Reads the lines of a file that match a regular expression.
        ReadRe = "read_re",
        /// Creates, replaces or edits a file.
        Write = "write",
        /// Removes a file.
        Delete = "delete",
    }
}

impl Op {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Op {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A set of operations.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ops(u8);

impl Ops {
    /// No operation.
    pub const NONE: Self = Self(0);
    /// All operations that change nothing.
    pub const READ: Self =
        Self(Op::List.bit() | Op::File.bit() | Op::ReadBinary.bit() | Op::ReadFile.bit() | Op::ReadRe.bit());
    /// All operations.
    pub const ALL: Self = Self(Self::READ.0 | Op::Write.bit() | Op::Delete.bit());

    /// The word that stands for several operations.
    const READ_WORD: &str = "read";

    /// Parses the names of operations. `read` stands for `file`, `read_binary`, `read_file` and `read_re`.
    ///
    /// # Errors
    ///
    /// [`FileError::InvalidArgument`] for an unknown name.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, FileError> {
        let mut ops = Self::NONE;
        for name in names {
            ops = match Op::parse(name) {
                Some(op) => ops.with(op),
                None if name == Self::READ_WORD => Self(ops.0 | (Self::READ.0 & !Op::List.bit())),
                None => {
                    let known = Op::ALL.map(Op::as_str).into_iter().chain([Self::READ_WORD]);
                    return Err(FileError::argument(format!(
                        "unknown operation `{}`{}",
                        shown(name),
                        did_you_mean(name, known)
                    )));
                }
            };
        }
        Ok(ops)
    }

    /// The set with another operation.
    #[must_use]
    pub const fn with(self, op: Op) -> Self {
        Self(self.0 | op.bit())
    }

    /// The set without an operation.
    #[must_use]
    pub const fn without(self, op: Op) -> Self {
        Self(self.0 & !op.bit())
    }

    /// The operations that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// True if the operation is in the set.
    #[must_use]
    pub const fn contains(self, op: Op) -> bool {
        self.0 & op.bit() != 0
    }

    /// True if the set has no operation.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The operations, in the order of [`Op::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Op> {
        Op::ALL.into_iter().filter(move |op| self.contains(*op))
    }

    /// The words for a model: `ls`, `stat`, `read`, `write` and `delete`.
    #[must_use]
    pub fn describe(self) -> String {
        let mut words: Vec<&str> = Vec::new();
        for op in self.iter() {
            let word = match op {
                Op::List => "ls",
                Op::File => "stat",
                Op::ReadBinary | Op::ReadFile | Op::ReadRe => "read",
                Op::Write => "write",
                Op::Delete => "delete",
            };
            if words.last() != Some(&word) {
                words.push(word);
            }
        }
        words.join(", ")
    }
}

impl fmt::Debug for Ops {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

/// The right to operations on a path and everything beneath it.
///
/// ```
/// use toolcrib::files::{Grant, Op, Ops};
///
/// let grant = Grant::parse("/workspace/", ["list", "read"]).unwrap();
///
/// assert!(grant.ops.contains(Op::ReadFile) && !grant.ops.contains(Op::Write));
/// assert_eq!(grant.ops.describe(), "ls, stat, read");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The path.
    pub prefix: LogicalPath,
    /// The operations.
    pub ops: Ops,
}

impl Grant {
    /// Parses a prefix and the names of operations.
    ///
    /// # Errors
    ///
    /// [`FileError::InvalidPath`] and [`FileError::InvalidArgument`].
    pub fn parse<'a>(prefix: &str, ops: impl IntoIterator<Item = &'a str>) -> Result<Self, FileError> {
        Ok(Self { prefix: prefix.parse()?, ops: Ops::parse(ops)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_stands_for_everything_that_reads_a_file() {
        let read = Ops::parse(["read"]).unwrap();

        assert_eq!(read, Ops::parse(["file", "read_binary", "read_file", "read_re"]).unwrap());
        assert_eq!(read.with(Op::List), Ops::READ);
        assert_eq!(Ops::parse(Op::ALL.map(Op::as_str)).unwrap(), Ops::ALL);
    }

    #[test]
    fn an_unknown_operation_is_an_error_that_suggests_one() {
        let error = Ops::parse(["list", "writ"]).unwrap_err();

        assert_eq!(error.to_string(), "unknown operation `writ`: did you mean `write`?");
    }

    #[test]
    fn a_set_is_described_in_words_for_models() {
        assert_eq!(Ops::ALL.describe(), "ls, stat, read, write, delete");
        assert_eq!(Ops::parse(["read_re", "write"]).unwrap().describe(), "read, write");
        assert_eq!(Ops::NONE.describe(), "");
    }
}
