//! Programs that a model runs: shell commands and Python code, with limits, and with an end for all of their processes.
//!
//! On Linux every program has a supervisor, a small executable of its own (`supervisor.c`). It kills all processes that the
//! program has started when the program ends, when the call ends, and when this process dies. Elsewhere only the process
//! group of the program is killed.
//!
//! Read it in this order:
//!
//! 1. `environment`: the variables that a program inherits;
//! 2. `options`: [`Programs`], the settings of the developer, with [`ProgramLimits`] and a [`Sandbox`];
//!    `pinned`, `links` and `confinement`: the files of a sandbox, opened once; `code_file`: the file with Python code;
//! 3. `supervisor.c`, `executable` and `supervised`: the supervisor, the file that it is executed from, and one that runs;
//!    `group` replaces them on other systems;
//! 4. `output`: decoded text, of which the head and the tail are kept;
//! 5. `run`: one run of a program, with its timeout and its output;
//! 6. `tools`: the native tools.

mod code_file;
#[cfg(target_os = "linux")]
mod confinement;
mod environment;
#[cfg(target_os = "linux")]
mod executable;
// Compiled and tested here as well, so that it stays code.
#[cfg(all(test, target_os = "linux"))]
mod group;
#[cfg(target_os = "linux")]
mod links;
mod options;
mod output;
mod pinned;
mod run;
#[cfg(target_os = "linux")]
mod supervised;
#[cfg(not(target_os = "linux"))]
#[path = "group.rs"]
mod supervised;
mod tools;

pub(crate) use environment::{find, inherited};
#[cfg(target_os = "linux")]
pub(crate) use executable::Executable;
pub use options::{ProgramLimits, Programs, Sandbox};
