//! The settings with which programs are run: folder, environment, limits, interpreter, sandbox.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(target_os = "linux")]
use super::confinement::Confinement;
use super::environment::obstacle;
use super::tools;
use crate::native::NativeTool;
use crate::near::did_you_mean;
use crate::{Error, Result};

/// The settings of the tools that run programs. The model sees none of them.
///
/// ```
/// use toolcrib::process::{ProgramLimits, Programs};
///
/// let limits = ProgramLimits { cpu_seconds: Some(10), ..ProgramLimits::default() };
/// let tools = Programs { limits, ..Programs::default() }.tools()?;
///
/// assert_eq!(tools.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["execute_shell_command", "execute_python_code"]);
/// # Ok::<(), toolcrib::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Programs {
    /// The working directory; that of this process by default.
    pub cwd: Option<PathBuf>,
    /// Variables of the environment, added to those that every program inherits: `PATH`, `HOME`, the language, and no others.
    pub env: Vec<(OsString, OsString)>,
    /// The limits.
    pub limits: ProgramLimits,
    /// The interpreter of Python code.
    pub python: PathBuf,
    /// The sandbox; none by default.
    pub sandbox: Option<Sandbox>,
}

/// The limits of a program. Those on time and memory hold for each of its processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramLimits {
    /// CPU time in seconds.
    pub cpu_seconds: Option<u64>,
    /// Address space in bytes.
    pub memory_bytes: Option<u64>,
    /// The largest file that may be written, in bytes.
    pub file_bytes: Option<u64>,
    /// The number of processes of the user, those of other programs included. Root is not limited.
    pub processes: Option<u64>,
    /// Bytes of each output that are kept; of a longer one, the middle is omitted.
    pub output_bytes: usize,
}

/// The files and the network that a program has access to.
///
/// Programs may always read and execute the folders of the system, such as `/usr`. All paths are opened when the tools are made:
/// the sandbox is about the files and folders that they led to at that time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sandbox {
    /// Files and folders that may be read and executed.
    pub read: Vec<PathBuf>,
    /// Files and folders that may be changed as well.
    pub write: Vec<PathBuf>,
    /// Permits sockets.
    pub network: bool,
}

impl Default for Programs {
    fn default() -> Self {
        Self {
            cwd: None,
            env: Vec::new(),
            limits: ProgramLimits::default(),
            python: PathBuf::from("python3"),
            sandbox: None,
        }
    }
}

impl Default for ProgramLimits {
    fn default() -> Self {
        Self { cpu_seconds: None, memory_bytes: None, file_bytes: None, processes: None, output_bytes: 256 * 1024 }
    }
}

impl Programs {
    /// Makes the tools `execute_shell_command` and `execute_python_code`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidProgramOption`] if a setting is invalid, and [`Error::NoSandbox`] if this system cannot provide the
    /// sandbox, which is tried once.
    pub fn tools(mut self) -> Result<Vec<NativeTool>> {
        if let Some(folder) = self.cwd.as_mut().filter(|_| self.sandbox.is_none()) {
            *folder = folder.canonicalize().map_err(|error| missing("cwd", folder, &error))?;
            if !folder.is_dir() {
                return Err(not_a_folder(folder));
            }
        }
        if self.python.components().count() > 1 {
            self.python = std::path::absolute(&self.python).map_err(|error| invalid("python", error.to_string()))?;
        }
        if let Some(reason) = self.env.iter().find_map(|(name, value)| obstacle(name, value)) {
            return Err(invalid("env", reason));
        }
        if cfg!(not(target_os = "linux"))
            && self.limits != (ProgramLimits { output_bytes: self.limits.output_bytes, ..ProgramLimits::default() })
        {
            return Err(invalid("limits", "only Linux has them".to_owned()));
        }
        let has_sandbox = self.sandbox.is_some();
        let settings = Arc::new(Settings {
            #[cfg(target_os = "linux")]
            confinement: self.sandbox.as_ref().map(|sandbox| Confinement::open(&self, sandbox)).transpose()?,
            programs: self,
        });
        if has_sandbox {
            super::supervised::probe(&settings).map_err(|reason| Error::NoSandbox { reason })?;
        }
        Ok(vec![tools::execute_shell_command(settings.clone()), tools::execute_python_code(settings)])
    }
}

/// The settings of tools that are made, with the files that they need open.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) programs: Programs,
    /// The files of the sandbox.
    #[cfg(target_os = "linux")]
    pub(super) confinement: Option<Confinement>,
}

/// The error of a working directory that is something else.
pub(super) fn not_a_folder(path: &Path) -> Error {
    invalid("cwd", format!("{} is not a folder", path.display()))
}

/// The error of a path that cannot be opened, with the name that was probably meant.
pub(super) fn missing(option: &'static str, path: &Path, error: &io::Error) -> Error {
    let shown = if path.as_os_str().is_empty() { "an empty path".into() } else { path.to_string_lossy() };
    let mut reason = format!("{shown}: {error}");
    // The longest part that exists, and the first name that it does not have.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let wanted = absolute.ancestors().take_while(|path| path.symlink_metadata().is_err()).last();
    if let Some((folder, name)) = wanted.and_then(|path| Some((path.parent()?, path.file_name()?.to_str()?))) {
        let entries =
            folder.read_dir().into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let entries: Vec<String> = entries.collect();
        reason.push_str(&did_you_mean(name, entries.iter().map(String::as_str)));
    }
    if let Some(folder) = std::env::current_dir().ok().filter(|_| path.is_relative()) {
        // Writing to a string does not fail.
        let _ = write!(reason, "; relative paths begin at {}", folder.display());
    }
    invalid(option, reason)
}

fn invalid(option: &'static str, reason: String) -> Error {
    Error::InvalidProgramOption { option, reason }
}
