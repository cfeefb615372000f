//! The mistakes of a call to a file: texts that the model reads, and classes that a program distinguishes.

use rustix::io::Errno;

use super::grant::Op;
use super::path::LogicalPath;

/// The reason why an operation on a file was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The text is not a logical path.
    #[error("Invalid path {path}: {reason}")]
    InvalidPath {
        /// The text, shortened and escaped.
        path: String,
        /// The reason.
        reason: String,
    },
    /// No grant allows the operation, or the file is of a kind that is never opened.
    #[error("Access denied for operation '{}' on path {path}{}", .op.as_str(), suffix(*.reason))]
    AccessDenied {
        /// The operation.
        op: Op,
        /// The path.
        path: String,
        /// The reason; none if there is no grant.
        reason: Option<&'static str>,
    },
    /// The file or a folder of its path does not exist.
    #[error("No such file or directory: {path}")]
    NotFound {
        /// The path.
        path: String,
    },
    /// The state of the file does not permit the operation.
    #[error("Conflict on path {path}: {reason}")]
    Conflict {
        /// The path.
        path: String,
        /// The reason.
        reason: String,
    },
    /// An argument is invalid.
    #[error("{reason}")]
    InvalidArgument {
        /// The reason.
        reason: String,
    },
    /// The operating system failed.
    #[error("Operation '{}' failed on path {path}: {reason}", .op.as_str())]
    Failed {
        /// The operation.
        op: Op,
        /// The path.
        path: String,
        /// The text of the operating system.
        reason: String,
    },
    /// The call was cancelled while the operation was running.
    #[error("The operation was cancelled")]
    Cancelled,
}

fn suffix(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

impl FileError {
    pub(super) fn argument(reason: impl Into<String>) -> Self {
        Self::InvalidArgument { reason: reason.into() }
    }

    pub(super) fn conflict(path: &LogicalPath, reason: impl Into<String>) -> Self {
        Self::Conflict { path: path.to_string(), reason: reason.into() }
    }
}

/// The operation and the path of a call, for its errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) op: Op,
    pub(super) path: &'a LogicalPath,
}

impl Subject<'_> {
    /// The refusal for this reason.
    pub(super) fn denied(self, reason: &'static str) -> FileError {
        FileError::AccessDenied { op: self.op, path: self.path.to_string(), reason: Some(reason) }
    }

    /// The error for a directory where a file is expected.
    pub(super) fn is_folder(self) -> FileError {
        FileError::argument(format!("The path {} is a directory, not a file", self.path))
    }

    /// The error for an error number of the operating system.
    pub(super) fn failed(self, errno: Errno) -> FileError {
        let path = self.path.to_string();
        match errno {
            Errno::NOENT => FileError::NotFound { path },
            Errno::LOOP => self.denied("symbolic links are not followed"),
            Errno::XDEV => self.denied("mount points are not crossed"),
            Errno::ACCESS | Errno::PERM | Errno::ROFS => self.denied("the operating system denies it"),
            Errno::NXIO | Errno::NODEV => self.denied(NOT_REGULAR),
            Errno::NOTDIR => FileError::argument(format!("The path {path} is not a directory, or is beneath a file")),
            Errno::ISDIR => self.is_folder(),
            Errno::NAMETOOLONG => FileError::InvalidPath { path, reason: "it is too long".to_owned() },
            errno => FileError::Failed { op: self.op, path, reason: reason_of(&errno.into()) },
        }
    }

    /// The error for a change that was made, but might not survive a loss of power.
    pub(super) fn not_durable(self, error: &std::io::Error) -> FileError {
        let reason = format!("the change was made, but might not survive a loss of power: {}", reason_of(error));
        FileError::Failed { op: self.op, path: self.path.to_string(), reason }
    }
}

/// The text of an error of the operating system, without its number.
fn reason_of(error: &std::io::Error) -> String {
    let mut reason = error.to_string();
    reason.truncate(reason.find(" (os error ").unwrap_or(reason.len()));
    reason
}

/// The reason for refusing pipes, sockets and devices.
pub(super) const NOT_REGULAR: &str = "it is not a regular file";
