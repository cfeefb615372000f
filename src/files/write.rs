//! Changing files: replacement in one step, edits that must match exactly once, and removal.
//!
//! Each of them holds the lock of [`Temporary::only`] from its first look at the file to its last change: writers of the same
//! file wait for each other, also in other processes, so that no edit is lost. A program that does not know the lock is noticed by
//! the metadata of the file.

use std::ffi::OsStr;
use std::fs::File;

use memchr::memmem;
use rustix::fs::{AtFlags, FileType, Stat, fstat, statat, unlinkat};
use rustix::io::Errno;

use super::error::{FileError, NOT_REGULAR, Subject};
use super::folder::OpenFolder;
use super::path::shown;
use super::root::{again, size};
use crate::store::{FileAccess, Folder, Temporary};

/// The replacement of one text by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The text to replace, which must occur exactly once.
    pub old_text: String,
    /// The new text.
    pub new_text: String,
}

/// A file that is about to be replaced, locked against other writers. Dropping it leaves the file as it is.
pub(super) struct Replacement<'a> {
    folder: &'a OpenFolder,
    name: &'a str,
    temporary: Temporary<'a, OpenFolder>,
    /// The metadata of the file, if it exists.
    old: Option<Stat>,
    /// True if the new content depends on the old one.
    is_edit: bool,
    subject: Subject<'a>,
}

impl<'a> Replacement<'a> {
    /// Locks a file of a folder, to write it without reading it. The file need not exist.
    pub(super) fn begin(
        folder: &'a OpenFolder,
        name: &'a str,
        may_have_links: bool,
        subject: Subject<'a>,
    ) -> Result<Self, FileError> {
        let temporary = lock(folder, name, subject)?.map_err(|errno| subject.failed(errno))?;
        let old = present(folder, name).map_err(|errno| subject.failed(errno))?;
        if let Some(old) = &old {
            refuse_unless_regular(old, may_have_links, subject)?;
        }
        Ok(Self { folder, name, temporary, old, is_edit: false, subject })
    }

    /// Locks a file of a folder, and opens it, to change its content; the file is returned with its size.
    pub(super) fn begin_edit(
        folder: &'a OpenFolder,
        name: &'a str,
        may_have_links: bool,
        subject: Subject<'a>,
    ) -> Result<(Self, (File, u64)), FileError> {
        let temporary = lock(folder, name, subject)?.map_err(|errno| subject.failed(errno))?;
        let opened = folder.open_file(name).and_then(|file| fstat(&file).map(|stat| (file, stat)));
        let (file, old) = opened.map_err(|errno| subject.failed(errno))?;
        refuse_unless_regular(&old, may_have_links, subject)?;
        let replacement = Self { folder, name, temporary, old: Some(old), is_edit: true, subject };
        Ok((replacement, (file, size(&old))))
    }

    /// Writes the content, and gives the new file the name of the old one.
    ///
    /// If `durable` is set, the content survives a loss of power from then on; otherwise it does when the system has written
    /// it back.
    pub(super) fn commit(mut self, content: &[u8], durable: bool) -> Result<(), FileError> {
        let subject = self.subject;
        let failed = |error: std::io::Error| subject.failed(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let access = self.old.as_ref().map(|old| FileAccess {
            // Without the bits that run the file with the rights of its owner.
            mode: old.st_mode & 0o777,
            owner: old.st_uid,
            group: old.st_gid,
        });
        self.temporary.fill(content, access, durable).map_err(failed)?;
        if !self.is_unchanged()? || !self.temporary.rename(OsStr::new(self.name)).map_err(failed)? {
            return Err(changed(subject));
        }
        if durable {
            self.folder.sync_names().map_err(|error| subject.not_durable(&error))?;
        }
        Ok(())
    }

    /// True unless another program, which does not know the lock, has changed the file that an edit was made for.
    fn is_unchanged(&self) -> Result<bool, FileError> {
        let Some(old) = self.old.as_ref().filter(|_| self.is_edit) else { return Ok(true) };
        let present = present(self.folder, self.name).map_err(|errno| self.subject.failed(errno))?;
        Ok(present.is_some_and(|present| is_same(old, &present)))
    }
}

/// Locks a file; the inner error is that of the system.
fn lock<'a>(
    folder: &'a OpenFolder,
    name: &str,
    subject: Subject<'_>,
) -> Result<Result<Temporary<'a, OpenFolder>, Errno>, FileError> {
    match Temporary::only(folder, OsStr::new(name)) {
        Ok(Some(temporary)) => Ok(Ok(temporary)),
        Ok(None) => Err(FileError::conflict(subject.path, "another program is writing the file")),
        Err(error) => Ok(Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))),
    }
}

/// The metadata that a name has at present, if it exists.
fn present(folder: &OpenFolder, name: &str) -> Result<Option<Stat>, Errno> {
    match again(|| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn changed(subject: Subject<'_>) -> FileError {
    FileError::conflict(subject.path, "another program changed the file meanwhile: read it again")
}

/// True if the metadata is that of the same content.
fn is_same(one: &Stat, other: &Stat) -> bool {
    let facts = |stat: &Stat| {
        (
            stat.st_dev,
            stat.st_ino,
            stat.st_size,
            (stat.st_mtime, stat.st_mtime_nsec),
            (stat.st_ctime, stat.st_ctime_nsec),
        )
    };
    facts(one) == facts(other)
}

fn refuse_unless_regular(stat: &Stat, may_have_links: bool, subject: Subject<'_>) -> Result<(), FileError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink > 1 && !may_have_links => {
            Err(subject.denied("it has several hard links"))
        }
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(subject.is_folder()),
        FileType::Symlink => Err(subject.failed(Errno::LOOP)),
        _ => Err(subject.denied(NOT_REGULAR)),
    }
}

/// Removes a regular file of a folder, when no other writer is at it.
pub(super) fn remove(folder: &OpenFolder, name: &str, subject: Subject<'_>) -> Result<(), FileError> {
    let refuse_unless_file = || {
        let stat = present(folder, name).and_then(|stat| stat.ok_or(Errno::NOENT));
        // A file with several names stays under the others.
        refuse_unless_regular(&stat.map_err(|errno| subject.failed(errno))?, true, subject)
    };
    // Before the lock, so that the reason is not that of the temporary file.
    refuse_unless_file()?;
    let _lock = match lock(folder, name, subject)? {
        Ok(lock) => Some(lock),
        // Removing a file is the way out of a full disk.
        Err(Errno::NOSPC | Errno::DQUOT) => None,
        Err(errno) => return Err(subject.failed(errno)),
    };
    refuse_unless_file()?;
    again(|| unlinkat(folder, name, AtFlags::empty())).map_err(|errno| subject.failed(errno))
}

/// The largest number of lines that an error message names.
const MAX_LINES: usize = 5;

/// Applies edits, each to the result of those before it. All of them apply, or none.
pub(super) fn apply(mut content: Vec<u8>, edits: &[Edit]) -> Result<Vec<u8>, FileError> {
    for (index, edit) in edits.iter().enumerate() {
        let number = index + 1;
        let old = edit.old_text.as_bytes();
        if old.is_empty() {
            return Err(FileError::argument(format!("oldText of edit {number} is empty")));
        }
        let places: Vec<usize> = places(&content, old).take(MAX_LINES + 1).collect();
        match *places {
            [at] => content.splice(at..at + old.len(), edit.new_text.bytes()).for_each(drop),
            [] => {
                let reason =
                    format!("oldText of edit {number} does not occur in the file: {:?}", shown(&edit.old_text));
                return Err(FileError::argument(reason));
            }
            _ => {
                let line = |at: &usize| memchr::memchr_iter(b'\n', &content[..*at]).count() + 1;
                let lines: Vec<String> = places.iter().take(MAX_LINES).map(|at| line(at).to_string()).collect();
                let more = if places.len() > MAX_LINES { " and more" } else { "" };
                return Err(FileError::argument(format!(
                    "oldText of edit {number} occurs more than once, in lines {}{more}: add text around it",
                    lines.join(", ")
                )));
            }
        }
    }
    Ok(content)
}

/// The positions of a text, also of those that overlap.
fn places<'a>(content: &'a [u8], text: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let finder = memmem::Finder::new(text).into_owned();
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + finder.find(content.get(from..)?)?;
        from = at + 1;
        Some(at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old_text: &str, new_text: &str) -> Edit {
        Edit { old_text: old_text.to_owned(), new_text: new_text.to_owned() }
    }

    fn applied(content: &str, edits: &[Edit]) -> Result<String, String> {
        apply(content.as_bytes().to_vec(), edits)
            .map(|content| String::from_utf8(content).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn an_edit_replaces_the_only_occurrence() {
        assert_eq!(applied("a b c", &[edit("b", "B"), edit("B c", "")]).unwrap(), "a ");
    }

    #[test]
    fn a_missing_text_is_an_error() {
        assert_eq!(
            applied("a", &[edit("b\u{202e}", "")]).unwrap_err(),
            r#"oldText of edit 1 does not occur in the file: "b\\u202e""#
        );
        assert_eq!(applied("a", &[edit("", "b")]).unwrap_err(), "oldText of edit 1 is empty");
    }

    #[test]
    fn a_repeated_text_is_an_error_that_says_where() {
        assert_eq!(
            applied("x\ny\nx", &[edit("y", "z"), edit("x", "y")]).unwrap_err(),
            "oldText of edit 2 occurs more than once, in lines 1, 3: add text around it"
        );
        assert_eq!(
            applied("aaa", &[edit("aa", "b")]).unwrap_err(),
            "oldText of edit 1 occurs more than once, in lines 1, 1: add text around it"
        );
        assert!(applied(&"x\n".repeat(9), &[edit("x", "y")]).unwrap_err().contains("1, 2, 3, 4, 5 and more"));
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        let edited = apply(b"\xffa\xfe".to_vec(), &[edit("a", "b")]).unwrap();

        assert_eq!(edited, b"\xffb\xfe");
    }
}
