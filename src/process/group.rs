//! A program in a process group of its own, on systems without the supervisor.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::code_file::CodeFile;
use super::environment::Surroundings;
use super::options::Settings;
use super::run::Report;

/// A program that runs. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct Supervised {
    child: Child,
    /// Taken when the program has been reaped, and its number may belong to another group.
    group: Option<Pid>,
}

impl Supervised {
    /// Starts a program, in the current tokio runtime, and returns it with its outputs.
    #[allow(clippy::unused_async, reason = "a supervisor is started so")]
    pub(super) async fn start(
        surroundings: &Surroundings,
        settings: &Settings,
        arguments: &[&OsStr],
        _code: Option<&CodeFile>,
    ) -> io::Result<(Self, ChildStdout, ChildStderr)> {
        let (program, arguments) = arguments.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let programs = &settings.programs;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(surroundings.variables.iter().chain(&programs.env).map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(folder) = &programs.cwd {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("the program has no pipes"));
        };
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok((Self { child, group }, output, errors))
    }

    /// Waits for the end of the program, and kills its group. It may be dropped and called again.
    pub(super) async fn report(&mut self) -> Report {
        let status = self.child.wait().await;
        self.stop();
        self.group = None;
        match status {
            Ok(status) => Report::Ended(status.code().unwrap_or_else(|| -status.signal().unwrap_or_default())),
            Err(error) => Report::Failed(error.to_string()),
        }
    }

    /// Kills the process group.
    pub(super) fn stop(&self) {
        if let Some(group) = self.group {
            // It may be gone already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Kills the process group, and reaps the program.
    pub(super) async fn end(mut self) {
        self.stop();
        self.report().await;
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.stop();
    }
}

/// There is no sandbox.
pub(super) fn probe(_: &Settings) -> Result<(), String> {
    Err("only Linux has one".to_owned())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::super::options::Programs;
    use super::*;

    #[test]
    fn there_is_no_sandbox() {
        assert!(probe(&settings()).is_err());
    }

    fn settings() -> Settings {
        Settings {
            programs: Programs::default(),
            #[cfg(target_os = "linux")]
            confinement: None,
        }
    }

    async fn start(command: &str) -> (Supervised, ChildStdout, ChildStderr) {
        let arguments = ["/bin/sh", "-c", command].map(OsStr::new);
        Supervised::start(&Surroundings::current(), &settings(), &arguments, None).await.unwrap()
    }

    #[tokio::test]
    async fn a_program_has_its_output_and_its_end() {
        let (mut program, mut output, mut errors) = start("echo out; echo err >&2; cat; exit 3").await;

        let (mut out, mut err) = (String::new(), String::new());
        output.read_to_string(&mut out).await.unwrap();
        errors.read_to_string(&mut err).await.unwrap();

        assert_eq!((program.report().await, &*out, &*err), (Report::Ended(3), "out\n", "err\n"));
    }

    #[tokio::test]
    async fn its_group_ends_with_it() {
        // The outputs end when the last process has.
        let (mut program, mut output, _errors) = start("sleep 97 & echo begun").await;
        let mut out = String::new();

        assert_eq!(program.report().await, Report::Ended(0));
        output.read_to_string(&mut out).await.unwrap();

        assert_eq!(out, "begun\n");
    }

    #[tokio::test]
    async fn its_group_is_killed() {
        let (mut program, mut output, _errors) = start("trap '' TERM; sleep 97 & echo begun; sleep 97").await;
        let mut out = [0; 6];
        output.read_exact(&mut out).await.unwrap();

        program.stop();

        assert_eq!(program.report().await, Report::Ended(-9));
        assert_eq!(output.read_to_string(&mut String::new()).await.unwrap(), 0);
        program.end().await;
    }
}
