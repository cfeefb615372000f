//! A program under its supervisor.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command as BlockingCommand, Stdio};
use std::time::Duration;

use rustix::net::{Shutdown, shutdown};
use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use super::environment::Surroundings;
use super::options::{Programs, with_path};
use super::run::Report;

/// The time that a supervisor has to end after its program, before it is killed itself.
const GRACE: Duration = Duration::from_secs(10);
/// The longest report of a supervisor, in bytes.
const REPORT_BYTES: usize = 128;

/// A program that runs. Dropping it kills all of its processes.
#[derive(Debug)]
pub(super) struct Supervised {
    child: Child,
    control: UnixStream,
    report: Vec<u8>,
}

impl Supervised {
    /// Starts a program, in the current tokio runtime, and returns it with its outputs.
    ///
    /// `removed` is a file that is removed after its end, with its folder.
    pub(super) fn start(
        surroundings: &Surroundings,
        programs: &Programs,
        arguments: &[&OsStr],
        removed: Option<&Path>,
    ) -> io::Result<(Self, ChildStdout, ChildStderr)> {
        let (control, mut command) = command(surroundings, programs, arguments, removed)?;
        control.set_nonblocking(true)?;
        let control = UnixStream::from_std(control)?;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Command::from(command).spawn()?;
        let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("the program has no pipes"));
        };
        Ok((Self { child, control, report: Vec::new() }, output, errors))
    }

    /// Waits for the end of the program and of all its processes. It may be dropped and called again.
    pub(super) async fn report(&mut self) -> Report {
        loop {
            match self.control.read_buf(&mut self.report).await {
                Ok(0) | Err(_) => break,
                Ok(_) if self.report.contains(&b'\n') || self.report.len() > REPORT_BYTES => break,
                Ok(_) => {}
            }
        }
        let text = String::from_utf8_lossy(&self.report);
        parse(text.trim_end())
    }

    /// Makes the supervisor kill all processes of the program.
    pub(super) fn stop(&self) {
        // The supervisor may have ended already, or be stopped.
        let _ = shutdown(&self.control, Shutdown::Write);
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills all processes of the program, if there are any left, and reaps the supervisor.
    pub(super) async fn end(mut self) {
        self.stop();
        if timeout(GRACE, self.child.wait()).await.is_err() {
            self.signal(Signal::KILL);
            let _ = self.child.wait().await;
        }
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The command that starts a supervisor, and the socket to it.
fn command(
    surroundings: &Surroundings,
    programs: &Programs,
    arguments: &[&OsStr],
    removed: Option<&Path>,
) -> io::Result<(BlockingStream, BlockingCommand)> {
    let executable = surroundings.executable.as_ref();
    let executable = executable.map_err(|error| io::Error::other(format!("cannot execute the supervisor: {error}")))?;
    let (control, theirs) = BlockingStream::pair()?;
    let mut command = BlockingCommand::new(executable.path());
    command
        .arg0("toolcrib-supervisor")
        .arg(getpid().as_raw_nonzero().to_string())
        .args(programs.supervisor_options())
        .env_clear()
        .envs(surroundings.variables.iter().chain(&programs.env).map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        // A group of its own, so that no Ctrl-C of the host reaches it.
        .process_group(0);
    if let Some(file) = removed {
        command.arg(with_path("remove=", file));
        if programs.sandbox.is_some() {
            command.arg(with_path("read=", file));
        }
    }
    command.arg("--").args(arguments);
    Ok((control, command))
}

/// Parses the line that a supervisor writes.
fn parse(line: &str) -> Report {
    let number = |text: &str| text.parse::<i32>().ok();
    let report = match line.split(' ').collect::<Vec<_>>()[..] {
        ["exit", code] => number(code).map(Report::Ended),
        ["signal", signal] => number(signal).map(|signal| Report::Ended(-signal)),
        ["failed", error, step] => number(error).map(|error| {
            let error = io::Error::from_raw_os_error(error);
            Report::Failed(format!("{step}: {error}"))
        }),
        _ => None,
    };
    report.unwrap_or_else(|| Report::Failed("its supervisor was killed".to_owned()))
}

/// Runs an empty command with the settings; the error is the reason why that is not possible.
pub(super) fn probe(programs: &Programs) -> Result<(), String> {
    let run = || -> io::Result<Report> {
        let arguments = ["/bin/sh", "-c", ":"].map(OsStr::new);
        let (mut control, mut command) = command(&Surroundings::current(), programs, &arguments, None)?;
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        drop(command); // it has the other end of the socket
        let mut line = String::new();
        control.read_to_string(&mut line)?;
        child.wait()?;
        Ok(parse(line.trim_end()))
    };
    match run() {
        Ok(Report::Ended(0)) => Ok(()),
        Ok(Report::Ended(code)) => Err(format!("a shell ended with {code} in it")),
        Ok(Report::Failed(reason)) => Err(reason),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_of_a_supervisor_are_parsed() {
        assert_eq!(parse("exit 3"), Report::Ended(3));
        assert_eq!(parse("signal 9"), Report::Ended(-9));
        assert_eq!(parse("failed 2 cwd"), Report::Failed("cwd: No such file or directory (os error 2)".to_owned()));
        for line in ["", "exit", "exit x", "failed 2", "other 1"] {
            assert_eq!(parse(line), Report::Failed("its supervisor was killed".to_owned()));
        }
    }
}
