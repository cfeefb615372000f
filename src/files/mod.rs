//! Files for models: tools over directory handles with grants, and guarded tools for raw paths.
//!
//! A model names a file by a logical path such as `/workspace/notes.txt`. The path belongs to a root, which is an open
//! directory, and the operation needs a grant. The rest of the path is resolved by the kernel beneath that directory, without
//! symbolic links and mount points. No path is checked first and opened later, so that nothing can be swapped in between.
//!
//! Read it in this order:
//!
//! 1. `path`: [`LogicalPath`], and names as they are shown; `error`: [`FileError`], the mistakes that a model reads;
//! 2. `grant`: [`Op`], [`Ops`] and [`Grant`], the rights to paths;
//! 3. `root`: the directory of a root, in which relative paths are resolved; `folder`: an open folder, in which files are replaced;
//! 4. `system`: [`FileSystem`], the roots; [`FileHandle`], a caller's grants on them; [`FileService`], the operations with the
//!    limits of a [`FilePolicy`];
//! 5. `read`, `write` and `list`: the operations on an open directory;
//! 6. [`tools`]: the native tools over a service;
//! 7. [`raw`]: the tools for paths of the operating system, and the guard on them.

mod error;
mod folder;
mod grant;
mod list;
mod path;
pub mod raw;
mod read;
mod root;
mod system;
pub mod tools;
mod write;

pub use error::FileError;
pub use grant::{Grant, Op, Ops};
pub use list::{Entry, EntryKind, FileFacts};
pub use path::LogicalPath;
pub use read::{MatchingLine, TextPart, TextRequest};
pub use root::CreateFolder;
pub use system::{FileHandle, FilePolicy, FileService, FileSystem};
pub use write::Edit;
