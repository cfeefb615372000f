//! The state of this process that programs get: some variables of the environment, and the folder for temporary files.

use std::ffi::{OsStr, OsString};
#[cfg(target_os = "linux")]
use std::io;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::sync::Arc;

use rustix::fs::{Access, access};

#[cfg(target_os = "linux")]
use super::Executable;

/// The variables by which programs find their files and their language; none is a secret.
const INHERITED: [&str; 11] =
    ["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR"];

/// The guards on raw text I/O, which concern only this process.
const GUARDS: [&str; 2] = ["AGENTSCOPE_DANGEROUS_TEXT_IO", "TOOLCRIB_DANGEROUS_TEXT_IO"];

/// The variables of this process that a program inherits.
///
/// They must not be read while another thread changes the environment, as a Python program can in its own threads.
pub(crate) fn inherited() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, value)| {
        let name = name.to_string_lossy();
        let is_known = INHERITED.contains(&&*name) || name.starts_with("LC_");
        // A function that a shell exported is code.
        is_known && !value.to_string_lossy().starts_with("()")
    })
}

/// The reason why a developer cannot set a variable.
pub(super) fn obstacle(name: &OsStr, value: &OsStr) -> Option<String> {
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        return Some(format!("invalid variable {name:?}"));
    }
    GUARDS.contains(&&*name).then(|| format!("variable `{name}` is never passed to programs"))
}

/// The state of this process that a run needs. It is taken in the thread that calls the tool, for the sake of [`inherited`].
#[derive(Debug)]
pub(super) struct Surroundings {
    #[cfg(target_os = "linux")]
    pub(super) executable: io::Result<Arc<Executable>>,
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) temporary: PathBuf,
}

impl Surroundings {
    pub(super) fn current() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            executable: Executable::current(),
            variables: inherited().collect(),
            temporary: std::env::temp_dir(),
        }
    }

    /// The path of a program, which is searched for in the folders of `PATH` if it is only a name.
    pub(super) fn find(&self, program: &Path) -> PathBuf {
        let folders = self.variables.iter().find(|(name, _)| name == "PATH").map(|(_, folders)| folders);
        find(program, folders.map(AsRef::as_ref)).unwrap_or_else(|| program.to_owned())
    }
}

/// The path of a program that is only a name, in the absolute ones of these folders.
pub(crate) fn find(program: &Path, folders: Option<&OsStr>) -> Option<PathBuf> {
    let is_name = program.components().count() == 1 && program.is_relative();
    let paths = folders.filter(|_| is_name).into_iter().flat_map(std::env::split_paths);
    let mut paths = paths.filter(|folder| folder.is_absolute()).map(|folder| folder.join(program));
    paths.find(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
}
