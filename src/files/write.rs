//! Changing files: replacement in one step, edits that must match exactly once, and removal.
//!
//! The new content is written to a temporary file in the folder of the file, which then takes its name. Each file has one
//! temporary name, and the writer locks it: writers of the same file wait for each other, also in other processes, so that no
//! edit is lost. The operating system releases the lock of a writer that died, and the next writer removes what it left.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use memchr::memmem;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, Stat, fchmod, fchown, flock, fstat, fsync, openat, renameat,
    statat, unlinkat,
};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::error::{FileError, NOT_REGULAR, Subject};
use super::path::{TEMPORARY, shown};
use super::root::again;
use crate::bytes::hex;

/// The time for which a writer waits for another writer of the same file.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// The interval at which it tries again.
const RETRY: Duration = Duration::from_millis(5);

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
    folder: OwnedFd,
    name: &'a str,
    temporary_name: String,
    temporary: File,
    /// The metadata of the temporary file when it was made.
    new: Stat,
    /// The metadata of the file, if it exists.
    old: Option<Stat>,
    subject: Subject<'a>,
    is_done: bool,
}

impl<'a> Replacement<'a> {
    /// Locks a file of a folder. The file need not exist.
    pub(super) fn begin(
        folder: OwnedFd,
        name: &'a str,
        may_have_links: bool,
        subject: Subject<'a>,
    ) -> Result<Self, FileError> {
        let temporary_name = temporary_name(name);
        let (temporary, new) = lock(&folder, &temporary_name, subject)?;
        let temporary = File::from(temporary);
        let mut replacement = Self { folder, name, temporary_name, temporary, new, old: None, subject, is_done: false };
        replacement.old = replacement.present()?;
        if let Some(old) = &replacement.old {
            refuse_unless_regular(old, may_have_links, subject)?;
        }
        Ok(replacement)
    }

    /// True if the file does not exist.
    pub(super) fn is_new(&self) -> bool {
        self.old.is_none()
    }

    /// Opens the file that is to be replaced, and returns it with its size.
    pub(super) fn open(&self) -> Result<(File, u64), FileError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let opened = again(|| openat(&self.folder, self.name, flags, Mode::empty()));
        let opened = opened.and_then(|file| fstat(&file).map(|stat| (file, stat)));
        let (file, stat) = opened.map_err(|errno| self.subject.failed(errno))?;
        if self.old.as_ref().is_none_or(|old| !is_same(old, &stat)) {
            return Err(self.changed());
        }
        Ok((file.into(), super::root::size(&stat)))
    }

    /// Writes the content, and gives the new file the name of the old one.
    ///
    /// If `durable` is set, the content survives a loss of power from then on; otherwise it does when the system has written
    /// it back.
    pub(super) fn commit(mut self, content: &[u8], durable: bool) -> Result<(), FileError> {
        self.fill(content, durable).map_err(|errno| self.subject.failed(errno))?;
        // A program other than toolcrib does not know the lock.
        let is_unchanged = match (&self.old, &self.present()?) {
            (Some(old), Some(present)) => is_same(old, present),
            (None, None) => true,
            _ => false,
        };
        if !is_unchanged {
            return Err(self.changed());
        }
        again(|| renameat(&self.folder, &self.temporary_name, &self.folder, self.name))
            .map_err(|errno| self.subject.failed(errno))?;
        self.is_done = true;
        if durable {
            match again(|| fsync(&self.folder)) {
                // Some file systems do not support this for folders.
                Ok(()) | Err(Errno::INVAL) => {}
                Err(errno) => return Err(self.subject.failed(errno)),
            }
        }
        Ok(())
    }

    fn fill(&mut self, content: &[u8], durable: bool) -> Result<(), Errno> {
        if let Some(old) = &self.old {
            let new = &self.new;
            if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) {
                let owner = Some(rustix::fs::Uid::from_raw(old.st_uid));
                let group = Some(rustix::fs::Gid::from_raw(old.st_gid));
                // Only the superuser may change the owner; otherwise the new file belongs to the current user.
                let _ = fchown(&self.temporary, owner, group);
            }
            // Without the bits that run the file with the rights of its owner.
            let mode = old.st_mode & 0o777;
            if mode != new.st_mode & 0o7777 {
                fchmod(&self.temporary, Mode::from_raw_mode(mode))?;
            }
        }
        self.temporary.write_all(content).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if durable { again(|| fsync(&self.temporary)) } else { Ok(()) }
    }

    /// The metadata that the name has at present.
    fn present(&self) -> Result<Option<Stat>, FileError> {
        match again(|| statat(&self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW)) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(self.subject.failed(errno)),
        }
    }

    fn changed(&self) -> FileError {
        FileError::conflict(self.subject.path, "another program changed the file meanwhile: read it again")
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = again(|| unlinkat(&self.folder, &self.temporary_name, AtFlags::empty()));
        }
    }
}

/// The name of the temporary file of a file.
fn temporary_name(name: &str) -> String {
    let digest = hex(&Sha256::digest(name.as_bytes())[..8]);
    format!("{}{digest}{}", TEMPORARY.0, TEMPORARY.1)
}

/// Creates and locks a temporary file. Waits for another writer, and removes a file that a dead one left.
fn lock(folder: &OwnedFd, name: &str, subject: Subject<'_>) -> Result<(OwnedFd, Stat), FileError> {
    let deadline = Instant::now() + MAX_WAIT;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let is_free = match again(|| openat(folder, name, flags, Mode::from_raw_mode(0o666))) {
            // Not ours if another writer took it for one that was left behind, before it was locked.
            Ok(file) => match stat_if_ours(&file) {
                Ok(Some(stat)) => return Ok((file, stat)),
                Ok(None) => true,
                Err(errno) => return Err(subject.failed(errno)),
            },
            Err(Errno::EXIST) => remove_abandoned(folder, name),
            Err(errno) => return Err(subject.failed(errno)),
        };
        if Instant::now() >= deadline {
            return Err(FileError::conflict(subject.path, "another program is writing the file"));
        }
        if !is_free {
            thread::sleep(RETRY);
        }
    }
}

/// Locks a new temporary file, and returns its metadata; none if another writer has removed it.
fn stat_if_ours(file: &OwnedFd) -> Result<Option<Stat>, Errno> {
    match again(|| flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => fstat(file).map(|stat| (stat.st_nlink > 0).then_some(stat)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        // Where files cannot be locked at all, no writer removes them either.
        Err(_) => fstat(file).map(Some),
    }
}

/// Removes a temporary file whose writer is gone; false if it is being written.
fn remove_abandoned(folder: &OwnedFd, name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let is_abandoned = match again(|| openat(folder, name, flags, Mode::empty())) {
        Ok(file) => {
            // The name may belong to another file by now: to that of the next writer.
            let is_named = |file: &OwnedFd| {
                let named = again(|| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)).ok()?;
                let opened = fstat(file).ok()?;
                Some((named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino))
            };
            match again(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
                Ok(()) => is_named(&file).unwrap_or(false),
                Err(_) => return false,
            }
        }
        Err(Errno::NOENT) => return true,
        // A link or a socket was put there.
        Err(_) => true,
    };
    is_abandoned && again(|| unlinkat(folder, name, AtFlags::empty())).is_ok()
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

/// Removes a regular file of a folder.
pub(super) fn remove(folder: &OwnedFd, name: &str, subject: Subject<'_>) -> Result<(), FileError> {
    let removed = again(|| statat(folder, name, AtFlags::SYMLINK_NOFOLLOW));
    let stat = removed.map_err(|errno| subject.failed(errno))?;
    // A file with several names stays under the others.
    refuse_unless_regular(&stat, true, subject)?;
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
