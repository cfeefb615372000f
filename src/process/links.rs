//! The links that the paths of a sandbox lead through. A program makes a link where it may write, so none is followed there.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;

use super::pinned::{Identity, Pinned, identity};
use crate::sync::lock;

/// The number of links that a path may lead through, as in the kernel.
const MOST_LINKS: usize = 40;

/// The folders that sandboxed programs of this process may write to, or could once. As a name may lead elsewhere by now, they are
/// known by their identities. A Python program locks it only with the GIL held, so that it is free at a fork.
static WRITABLE: Mutex<Option<HashSet<Identity>>> = Mutex::new(None);

/// A file or folder, and the links that its path leads through.
pub(super) struct Resolved {
    pub(super) file: Pinned,
    links: Vec<Link>,
}

struct Link {
    /// The folder that it is in.
    folder: OwnedFd,
    name: OsString,
}

impl Resolved {
    /// Opens a file or a folder, one name after the other.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let names = |path: &Path| path.components().map(|name| name.as_os_str().to_owned()).collect::<VecDeque<_>>();
        let (mut rest, mut links) = (names(path), Vec::new());
        if rest.is_empty() {
            return Err(Errno::NOENT.into());
        }
        let mut file = open(CWD, ".")?;
        while let Some(name) = rest.pop_front() {
            let next = open(&file, &name)?;
            if !FileType::from_raw_mode(fstat(&next)?.st_mode).is_symlink() {
                file = next;
                continue;
            }
            if links.len() == MOST_LINKS {
                return Err(Errno::LOOP.into());
            }
            let target = PathBuf::from(OsString::from_vec(readlinkat(&next, "", Vec::new())?.into_bytes()));
            let mut target = names(&target);
            target.append(&mut rest);
            rest = target;
            links.push(Link { folder: file.try_clone()?, name });
        }
        Ok(Self { file: Pinned::new(file)?, links })
    }
}

/// Refuses paths that lead through a link in a folder that a program may write to: one of this sandbox, or of any before it.
///
/// # Errors
///
/// The number of the path, and the reason.
pub(super) fn refuse_writable(read: &[Resolved], write: &[Resolved]) -> Result<(), (usize, io::Error)> {
    let mut writable = lock(&WRITABLE);
    let known = writable.get_or_insert_default();
    let here: HashSet<Identity> = write.iter().map(|path| path.file.identity()).collect();
    for (number, path) in read.iter().chain(write).enumerate() {
        for Link { folder, name } in &path.links {
            let is_writable = is_beneath(folder, |folder| known.contains(folder) || here.contains(folder));
            if is_writable.map_err(|error| (number, error))? {
                let name = name.to_string_lossy();
                let reason = format!(
                    "it leads through `{name}`, a link in a folder that a sandboxed program may write to; list the file or folder that is \
                     meant by its own path"
                );
                return Err((number, io::Error::other(reason)));
            }
        }
    }
    known.extend(here);
    Ok(())
}

/// True if a folder or one above it is one of those.
fn is_beneath(folder: &OwnedFd, is_one: impl Fn(&Identity) -> bool) -> io::Result<bool> {
    let mut folder = folder.try_clone()?;
    loop {
        let parent = open(&folder, "..")?;
        let (here, above) = (identity(&folder)?, identity(&parent)?);
        if is_one(&here) {
            return Ok(true);
        }
        if here == above {
            return Ok(false);
        }
        folder = parent;
    }
}

/// Opens a name itself, even if it is a link.
fn open(folder: impl AsFd, name: impl rustix::path::Arg) -> io::Result<OwnedFd> {
    Ok(openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("toolcrib-links-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Self(path.canonicalize().unwrap())
        }

        fn open(&self, name: &str) -> Resolved {
            Resolved::open(&self.0.join(name)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_path_leads_to_the_same_file_as_for_the_kernel() {
        let folder = Folder::new("same");
        fs::create_dir_all(folder.0.join("a/b")).unwrap();
        symlink("a/b", folder.0.join("relative")).unwrap();
        symlink(folder.0.join("relative/.."), folder.0.join("absolute")).unwrap();

        for name in ["a/b", "relative", "relative/../b/.", "absolute/b", "absolute/../relative/"] {
            let expected = Pinned::open(&folder.0.join(name)).unwrap();
            assert_eq!(folder.open(name).file.identity(), expected.identity(), "{name}");
        }
    }

    #[test]
    fn a_path_that_leads_nowhere_is_an_error() {
        let folder = Folder::new("nowhere");
        symlink("round", folder.0.join("round")).unwrap();
        fs::write(folder.0.join("file"), "").unwrap();

        let error = |path: PathBuf| Resolved::open(&path).err().map(|error| error.raw_os_error());

        assert_eq!(error(folder.0.join("round")), Some(Some(libc::ELOOP)));
        assert_eq!(error(folder.0.join("file/x")), Some(Some(libc::ENOTDIR)));
        assert_eq!(error(folder.0.join("none")), Some(Some(libc::ENOENT)));
        assert_eq!(error(PathBuf::new()), Some(Some(libc::ENOENT)));
    }

    #[test]
    fn only_a_link_that_no_program_can_make_is_followed() {
        let folder = Folder::new("followed");
        fs::create_dir_all(folder.0.join("work/deep")).unwrap();
        symlink("work", folder.0.join("outside")).unwrap();
        symlink("/usr", folder.0.join("work/deep/inside")).unwrap();

        let allowed = refuse_writable(&[folder.open("outside/deep")], &[folder.open("outside")]);
        let at_once = refuse_writable(&[folder.open("outside"), folder.open("outside/deep/inside")], &[]);
        let later = refuse_writable(&[], &[folder.open("work/deep/inside/bin")]);

        assert!(allowed.is_ok());
        assert_eq!(at_once.unwrap_err().0, 1);
        assert!(later.unwrap_err().1.to_string().contains("`inside`"));
    }
}
