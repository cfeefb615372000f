//! The settings with which programs are run: folder, environment, limits, interpreter, sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::environment::obstacle;
use super::tools;
use crate::native::NativeTool;
use crate::{Error, Result};

/// Files that programs need in a sandbox, those that exist. Of `/etc` only what everyone may know.
#[cfg(target_os = "linux")]
const SYSTEM: [&str; 18] = [
    "/bin",
    "/etc/alternatives",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/opt",
    "/sbin",
    "/usr",
];
/// Devices that programs may write to in a sandbox.
#[cfg(target_os = "linux")]
const DEVICES: [&str; 5] = ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

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
/// Programs may always read and execute the folders of the system, such as `/usr`.
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
        if let Some(folder) = &mut self.cwd {
            *folder = existing("cwd", folder)?;
            if !folder.is_dir() {
                return Err(invalid("cwd", format!("{} is not a folder", folder.display())));
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
        if let Some(sandbox) = &mut self.sandbox {
            for path in sandbox.read.iter_mut().chain(&mut sandbox.write) {
                *path = existing("sandbox", path)?;
            }
            super::supervised::probe(&self).map_err(|reason| Error::NoSandbox { reason })?;
        }
        Ok(vec![tools::execute_shell_command(self.clone()), tools::execute_python_code(self)])
    }

    /// The options of the supervisor.
    #[cfg(target_os = "linux")]
    pub(super) fn supervisor_options(&self) -> Vec<OsString> {
        let ProgramLimits { cpu_seconds, memory_bytes, file_bytes, processes, output_bytes: _ } = self.limits;
        let limits =
            [("cpu=", cpu_seconds), ("memory=", memory_bytes), ("file=", file_bytes), ("processes=", processes)];
        let mut options: Vec<OsString> =
            limits.iter().filter_map(|(name, limit)| Some(format!("{name}{}", (*limit)?).into())).collect();
        options.extend(self.cwd.iter().map(|folder| with_path("cwd=", folder)));
        if let Some(sandbox) = &self.sandbox {
            options.push("sandbox=on".into());
            options.extend((!sandbox.network).then(|| "network=off".into()));
            let read = SYSTEM.iter().map(Path::new).chain(sandbox.read.iter().map(AsRef::as_ref));
            let write = DEVICES.iter().map(Path::new).chain(sandbox.write.iter().map(AsRef::as_ref));
            options.extend(read.map(|path| with_path("read=", path)));
            options.extend(write.map(|path| with_path("write=", path)));
        }
        options
    }
}

/// An option of the supervisor.
#[cfg(target_os = "linux")]
pub(super) fn with_path(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

/// The absolute path of a file that exists.
fn existing(option: &'static str, path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(|error| invalid(option, format!("{}: {error}", path.display())))
}

fn invalid(option: &'static str, reason: String) -> Error {
    Error::InvalidProgramOption { option, reason }
}
