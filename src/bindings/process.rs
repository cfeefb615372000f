//! Programs in Python: the tools with the settings of `toolcrib.process`, and the supervisor for tools in child processes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;

use super::native::PyNativeTool;
use crate::Error;
#[cfg(target_os = "linux")]
use crate::process::Executable;
use crate::process::{ProgramLimits, Programs, Sandbox};

/// A field of `toolcrib.process.ProgramLimits`.
fn limit<'py, T: FromPyObjectOwned<'py>>(limits: &Bound<'py, PyAny>, name: &str) -> PyResult<T> {
    let value = limits.getattr(name)?;
    value.extract().map_err(|_| {
        let reason = format!("`{name}` is {value:?}, expected an integer of at least 0");
        Error::InvalidProgramOption { option: "limits", reason }.into()
    })
}

/// Return the tools that run programs with these settings. A sandbox is readable folders, writable folders, and the network.
///
/// The GIL is not released meanwhile: see `Executable`.
#[pyfunction]
#[pyo3(signature = (*, cwd, env, limits, python, sandbox))]
fn _program_tools(
    cwd: Option<PathBuf>,
    env: HashMap<OsString, OsString>,
    limits: &Bound<'_, PyAny>,
    python: PathBuf,
    sandbox: Option<(Vec<PathBuf>, Vec<PathBuf>, bool)>,
) -> PyResult<Vec<PyNativeTool>> {
    let programs = Programs {
        cwd,
        env: env.into_iter().collect(),
        limits: ProgramLimits {
            cpu_seconds: limit(limits, "cpu_seconds")?,
            memory_bytes: limit(limits, "memory_bytes")?,
            file_bytes: limit(limits, "file_bytes")?,
            processes: limit(limits, "processes")?,
            output_bytes: limit(limits, "output_bytes")?,
        },
        python,
        sandbox: sandbox.map(|(read, write, network)| Sandbox { read, write, network }),
    };
    Ok(programs.tools()?.into_iter().map(PyNativeTool::from).collect())
}

/// Return the descriptor of the supervisor's file and the path to execute it by, or `None` on systems without a supervisor.
#[pyfunction]
fn _supervisor() -> PyResult<Option<(i32, PathBuf)>> {
    #[cfg(target_os = "linux")]
    return Ok(Executable::current().map(|file| Some((file.descriptor(), file.path())))?);
    #[cfg(not(target_os = "linux"))]
    return Ok(None);
}

/// The tools with the default settings, for the interpreter of this process.
pub(super) fn default_tools(py: Python<'_>) -> PyResult<Vec<crate::native::NativeTool>> {
    let executable: Option<PathBuf> = py.import("sys")?.getattr("executable")?.extract()?;
    let mut programs = Programs::default();
    // A program that embeds Python has none.
    if let Some(executable) = executable.filter(|path| !path.as_os_str().is_empty()) {
        programs.python = executable;
    }
    Ok(programs.tools()?)
}

pub(super) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Not by `add_function`, which would make them public names.
    module.setattr("_program_tools", wrap_pyfunction!(_program_tools, module)?)?;
    module.setattr("_supervisor", wrap_pyfunction!(_supervisor, module)?)
}
