//! The roots of a file system, the grants of a caller on them, and the operations of a service.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::error::{FileError, Subject};
use super::grant::{Grant, Op, Ops};
use super::list::{self, Entry, FileFacts, Found, NamePattern};
use super::path::{LogicalPath, shown};
use super::read::{self, MatchingLine, TextPart, TextRequest};
use super::root::{CreateFolder, Root};
use super::write::{self, Edit, Replacement};
use crate::near::nearest;
use crate::{Error, Result as DeveloperResult};

/// Directories under logical names.
///
/// ```
/// use toolcrib::files::{FileSystem, Ops};
///
/// # let folder = std::env::temp_dir().join(format!("toolcrib-doc-{}", std::process::id()));
/// # std::fs::create_dir(&folder).unwrap();
/// let system = FileSystem::new().with_root("/workspace/", &folder, Ops::ALL)?;
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<_, toolcrib::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct FileSystem {
    roots: Vec<NamedRoot>,
}

#[derive(Debug)]
struct NamedRoot {
    prefix: LogicalPath,
    root: Root,
    /// The operations that grants can allow at most.
    ops: Ops,
}

impl FileSystem {
    /// Makes a file system without roots.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a directory under a name such as `/workspace/`; grants allow at most `ops` in it. It stays the root when it is
    /// renamed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidFileRoot`] for an invalid or repeated name, [`Error::MissingFolder`] if the directory does not exist, and
    /// [`Error::FileAccess`] if it cannot be opened.
    pub fn with_root(self, prefix: &str, folder: &Path, ops: Ops) -> DeveloperResult<Self> {
        self.with_created_root(prefix, folder, ops, CreateFolder::Never)
    }

    /// Adds a directory, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// Those of [`FileSystem::with_root`].
    pub fn with_created_root(
        mut self,
        prefix: &str,
        folder: &Path,
        ops: Ops,
        create: CreateFolder,
    ) -> DeveloperResult<Self> {
        let invalid = |reason: &str| Error::InvalidFileRoot { root: shown(prefix), reason: reason.to_owned() };
        let prefix: LogicalPath = prefix.parse().map_err(|error: FileError| invalid(&error.to_string()))?;
        if prefix.as_str().is_empty() || prefix.as_str()[1..].contains('/') {
            return Err(invalid("it is not one name between slashes"));
        }
        if self.roots.iter().any(|root| root.prefix == prefix) {
            return Err(invalid("it is repeated"));
        }
        let root = Root::open(folder, create).map_err(|error| match error.kind() {
            ErrorKind::NotFound => missing(folder),
            _ => Error::access("open", folder, &error),
        })?;
        self.roots.push(NamedRoot { prefix, root, ops });
        Ok(self)
    }

    /// The root of a path, and the path inside of it.
    fn find<'p>(&self, path: &'p LogicalPath) -> Option<(&NamedRoot, &'p str)> {
        self.roots.iter().find_map(|root| Some((root, path.beneath(&root.prefix)?)))
    }

    /// Makes a handle with these grants.
    ///
    /// # Errors
    ///
    /// [`FileError::InvalidArgument`] if the prefix of a grant is not in a root.
    pub fn create_handle(self: &Arc<Self>, grants: impl IntoIterator<Item = Grant>) -> Result<FileHandle, FileError> {
        let grants: Arc<[Grant]> = grants.into_iter().collect();
        for Grant { prefix, .. } in grants.iter() {
            if self.find(prefix).is_none() {
                let roots: Vec<String> = self.roots.iter().map(|root| root.prefix.as_folder()).collect();
                let reason = format!("the grant on {prefix} is in no root: expected one of {}", roots.join(", "));
                return Err(FileError::argument(reason));
            }
        }
        Ok(FileHandle { system: self.clone(), grants })
    }
}

/// The largest number of names that a missing one is compared with.
const MAX_SIMILAR: usize = 10_000;

/// The error for a directory that does not exist, which names the first one of its path that is missing.
fn missing(folder: &Path) -> Error {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.is_dir();
    let path = folder.ancestors().take_while(is_missing).last().unwrap_or(folder);
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(parent).into_iter().flatten().take(MAX_SIMILAR).flatten();
    let names: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let similar = nearest(&name, names.iter().map(String::as_str));
    Error::MissingFolder {
        path: path.display().to_string(),
        similar: similar.map(|name| path.with_file_name(name).display().to_string()),
    }
}

/// The grants of a caller on a file system. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct FileHandle {
    system: Arc<FileSystem>,
    grants: Arc<[Grant]>,
}

impl FileHandle {
    /// The prefixes that are granted, with the operations that their roots permit as well.
    pub fn permissions(&self) -> impl Iterator<Item = (&LogicalPath, Ops)> {
        let allowed = |grant: &Grant| match self.system.find(&grant.prefix) {
            Some((root, _)) => grant.ops.and(root.ops),
            None => Ops::NONE,
        };
        self.grants.iter().map(move |grant| (&grant.prefix, allowed(grant))).filter(|(_, ops)| !ops.is_empty())
    }

    /// True if the operation is granted on some path.
    #[must_use]
    pub fn grants(&self, op: Op) -> bool {
        self.permissions().any(|(_, ops)| ops.contains(op))
    }

    /// The root of a path and the path inside of it, if the operation is granted.
    fn locate<'p>(&self, op: Op, path: &'p LogicalPath) -> Result<(&Root, &'p str, Subject<'p>), FileError> {
        let is_granted = self.permissions().any(|(prefix, ops)| ops.contains(op) && path.beneath(prefix).is_some());
        match self.system.find(path) {
            Some((root, relative)) if is_granted => Ok((&root.root, relative, Subject { op, path })),
            _ => Err(FileError::AccessDenied { op, path: path.to_string(), reason: None }),
        }
    }
}

/// The limits of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePolicy {
    /// The longest text of a reply, in bytes; a longer one is truncated.
    pub max_reply_bytes: usize,
    /// The largest file that is written, edited or read as bytes.
    pub max_file_bytes: u64,
    /// The largest number of entries of a listing and of results of a search; the rest is left out.
    pub max_entries: usize,
    /// Permits writing to files with several hard links. The name then gets a file of its own.
    pub hard_links: bool,
    /// Waits after each change until it survives a loss of power.
    pub durable: bool,
}

impl Default for FilePolicy {
    fn default() -> Self {
        Self {
            max_reply_bytes: 256 * 1024,
            max_file_bytes: 16 * 1024 * 1024,
            max_entries: 1000,
            hard_links: false,
            durable: true,
        }
    }
}

/// The operations on files, with the grants of a handle and the limits of a policy. Cloning is cheap.
///
/// Every operation blocks until the file system answers. A path is a text of the model; the errors are its mistakes.
#[derive(Debug, Clone)]
#[allow(clippy::missing_errors_doc, reason = "said once, for all operations")]
pub struct FileService {
    handle: FileHandle,
    policy: Arc<FilePolicy>,
}

impl FileService {
    /// Makes a service.
    #[must_use]
    pub fn new(handle: FileHandle, policy: FilePolicy) -> Self {
        Self { handle, policy: Arc::new(policy) }
    }

    /// The grants.
    #[must_use]
    pub fn handle(&self) -> &FileHandle {
        &self.handle
    }

    /// The limits.
    #[must_use]
    pub fn policy(&self) -> &FilePolicy {
        &self.policy
    }

    /// Reads lines of a text file, at most `limit` bytes of them.
    ///
    /// # Errors
    ///
    /// Any [`FileError`].
    pub fn read_text(
        &self,
        path: &str,
        request: &TextRequest,
        limit: usize,
        cancel: &CancellationToken,
    ) -> Result<TextPart, FileError> {
        for (name, value) in [("start_line", Some(request.start_line)), ("read_lines", request.read_lines)] {
            if value == Some(0) {
                return Err(FileError::argument(format!("{name} must be at least 1")));
            }
        }
        let path: LogicalPath = path.parse()?;
        let (root, relative, subject) = self.handle.locate(Op::ReadFile, &path)?;
        read::text(root.open_file(relative, subject)?, request, limit, subject, cancel)
    }

    /// Reads the lines of a text file that match a regular expression; the flag is true if there are more.
    ///
    /// # Errors
    ///
    /// Any [`FileError`].
    pub fn read_matching(
        &self,
        path: &str,
        pattern: &str,
        cancel: &CancellationToken,
    ) -> Result<(Vec<MatchingLine>, bool), FileError> {
        let path: LogicalPath = path.parse()?;
        let (root, relative, subject) = self.handle.locate(Op::ReadRe, &path)?;
        let file = root.open_file(relative, subject)?;
        read::matching(file, pattern, self.policy.max_reply_bytes, subject, cancel)
    }

    /// Reads all bytes of a file.
    ///
    /// # Errors
    ///
    /// Any [`FileError`].
    pub fn read_binary(&self, path: &str, cancel: &CancellationToken) -> Result<Vec<u8>, FileError> {
        let path: LogicalPath = path.parse()?;
        let (root, relative, subject) = self.handle.locate(Op::ReadBinary, &path)?;
        read::bytes(root.open_file(relative, subject)?, self.policy.max_file_bytes, subject, cancel)
    }

    /// Lists the entries of a folder by name, and returns the number of all of them, of which the last may be left out.
    ///
    /// # Errors
    ///
    /// Any [`FileError`].
    pub fn list(
        &self,
        path: &str,
        with_sizes: bool,
        cancel: &CancellationToken,
    ) -> Result<(Vec<Entry>, usize), FileError> {
        let path: LogicalPath = path.parse()?;
        let (root, relative, subject) = self.handle.locate(Op::List, &path)?;
        let folder = root.open_folder(relative.as_bytes(), subject)?;
        let listing = list::folder(folder, with_sizes, self.policy.max_entries, subject, cancel)?;
        Ok((listing.entries, listing.total))
    }

    /// Searches the names beneath a folder, and returns the paths as a model reads them. The flag is true if there are more.
    ///
    /// # Errors
    ///
    /// Any [`FileError`].
    pub fn search(
        &self,
        path: &str,
        pattern: &str,
        excluded: &[String],
        cancel: &CancellationToken,
    ) -> Result<(Vec<String>, bool), FileError> {
        let pattern = NamePattern::parse(pattern)?;
        let excluded = NamePattern::parse_any(excluded)?;
        let path: LogicalPath = path.parse()?;
        let (root, relative, subject) = self.handle.locate(Op::List, &path)?;
        let limit = self.policy.max_entries;
        let Found { paths, is_truncated } =
            list::search(root, relative, (&pattern, excluded.as_ref()), limit, subject, cancel)?;
        Ok((paths, is_truncated))
    }

    /// The metadata of a file or folder.
    ///
    /// # Errors
    ///
    /// Any [`FileError`].
    pub fn facts(&self, path: &str) -> Result<FileFacts, FileError> {
        let path: LogicalPath = path.parse()?;
        let (root, relative, subject) = self.handle.locate(Op::File, &path)?;
        Ok(root.stat(relative, subject)?.into())
    }

    /// Creates or replaces a file in one step; creates missing folders.
    ///
    /// # Errors
    ///
    /// Any [`FileError`].
    pub fn write(&self, path: &str, content: &[u8]) -> Result<(), FileError> {
        let path: LogicalPath = path.parse()?;
        let (root, relative, subject) = self.handle.locate(Op::Write, &path)?;
        self.limit_size(content)?;
        let (folder, name) = root.open_parent(relative, true, subject)?;
        let replacement = Replacement::begin(&folder, name, self.policy.hard_links, subject)?;
        replacement.commit(content, self.policy.durable)
    }

    /// Applies edits to a file in one step, and returns its new size. All of them apply, or none.
    ///
    /// # Errors
    ///
    /// Any [`FileError`]; [`FileError::InvalidArgument`] if the old text of an edit does not occur exactly once.
    pub fn edit(&self, path: &str, edits: &[Edit], cancel: &CancellationToken) -> Result<usize, FileError> {
        let path: LogicalPath = path.parse()?;
        // The answer to an edit says whether and where a text occurs.
        self.handle.locate(Op::ReadFile, &path)?;
        let (root, relative, subject) = self.handle.locate(Op::Write, &path)?;
        if edits.is_empty() {
            return Err(FileError::argument("edits must not be empty"));
        }
        let (folder, name) = root.open_parent(relative, false, subject)?;
        let (replacement, file) = Replacement::begin_edit(&folder, name, self.policy.hard_links, subject)?;
        let old = read::bytes(file, self.policy.max_file_bytes, subject, cancel)?;
        let new = write::apply(old, edits)?;
        self.limit_size(&new)?;
        replacement.commit(&new, self.policy.durable)?;
        Ok(new.len())
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// Any [`FileError`].
    pub fn delete(&self, path: &str) -> Result<(), FileError> {
        let path: LogicalPath = path.parse()?;
        let (root, relative, subject) = self.handle.locate(Op::Delete, &path)?;
        let (folder, name) = root.open_parent(relative, false, subject)?;
        write::remove(&folder, name, subject)
    }

    fn limit_size(&self, content: &[u8]) -> Result<(), FileError> {
        let limit = self.policy.max_file_bytes;
        if content.len() as u64 > limit {
            return Err(FileError::argument(format!("The content is larger than {limit} bytes")));
        }
        Ok(())
    }
}
