//! A program under its supervisor.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as BlockingStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, sendmsg, shutdown};
use rustix::process::{Pid, Signal, getpid, kill_process};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{sleep, timeout};

use super::code_file::CodeFile;
use super::environment::Surroundings;
use super::options::{ProgramLimits, Programs, Settings};
use super::run::Report;

/// The time that a supervisor has to end after its program, before it is killed itself.
const GRACE: Duration = Duration::from_secs(10);
/// The longest report of a supervisor, in bytes.
const REPORT_BYTES: usize = 128;
/// The time between two attempts to send descriptors, or to reap a supervisor.
const PAUSE: Duration = Duration::from_millis(1);
/// The most descriptors that a message has.
const MESSAGE_DESCRIPTORS: usize = 253;

/// A program that runs. Dropping it kills all of its processes.
#[derive(Debug)]
pub(super) struct Supervised {
    /// The supervisor, until it is reaped. It is not tokio's, which would handle SIGCHLD in a host that ignores it.
    child: Option<Child>,
    control: UnixStream,
    report: Vec<u8>,
}

impl Supervised {
    /// Starts a program, in the current tokio runtime, and returns it with its outputs. The file of its code is removed after its
    /// end, with its folder.
    pub(super) async fn start(
        surroundings: &Surroundings,
        settings: &Settings,
        arguments: &[&OsStr],
        code: Option<&CodeFile>,
    ) -> io::Result<(Self, ChildStdout, ChildStderr)> {
        let Start { control, mut command, descriptors } = Start::new(surroundings, settings, arguments, code)?;
        control.set_nonblocking(true)?;
        for part in descriptors.chunks(MESSAGE_DESCRIPTORS) {
            while !send(&control, part)? {
                sleep(PAUSE).await;
            }
        }
        let control = UnixStream::from_std(control)?;
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let started = Self { child: Some(child), control, report: Vec::new() };
        let (Some(output), Some(errors)) = (output, errors) else {
            return Err(io::Error::other("the program has no pipes"));
        };
        Ok((started, ChildStdout::from_std(output)?, ChildStderr::from_std(errors)?))
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
        let pid = self.child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills all processes of the program, if there are any left, and reaps the supervisor.
    pub(super) async fn end(mut self) {
        self.stop();
        if timeout(GRACE, self.reaped()).await.is_err() {
            self.signal(Signal::KILL);
            self.reaped().await;
        }
    }

    /// Waits until the supervisor has ended, and reaps it unless another part of this process does so.
    async fn reaped(&mut self) {
        let mut pause = PAUSE;
        while let Some(Ok(None)) = self.child.as_mut().map(Child::try_wait) {
            sleep(pause).await;
            pause = (2 * pause).min(50 * PAUSE);
        }
        self.child = None;
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.stop();
        // The runtime ends before the program.
        if let Some(mut child) = self.child.take() {
            let _ = std::thread::Builder::new().spawn(move || child.wait());
        }
    }
}

/// Sends descriptors to a supervisor. Returns false if this user has too many that are not received yet.
fn send(control: &BlockingStream, descriptors: &[BorrowedFd<'_>]) -> io::Result<bool> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MESSAGE_DESCRIPTORS))];
    let mut message = SendAncillaryBuffer::new(&mut space);
    message.push(SendAncillaryMessage::ScmRights(descriptors));
    match sendmsg(control, &[IoSlice::new(b"d")], &mut message, SendFlags::NOSIGNAL) {
        Err(Errno::TOOMANYREFS | Errno::AGAIN) => Ok(false),
        sent => Ok(sent.map(|_| true)?),
    }
}

/// A supervisor that can be started.
struct Start<'a> {
    /// The socket to it.
    control: BlockingStream,
    command: Command,
    /// The descriptors that it takes.
    descriptors: Vec<BorrowedFd<'a>>,
}

impl<'a> Start<'a> {
    fn new(
        surroundings: &Surroundings,
        settings: &'a Settings,
        arguments: &[&OsStr],
        code: Option<&'a CodeFile>,
    ) -> io::Result<Self> {
        let executable = surroundings.executable.as_ref();
        let executable =
            executable.map_err(|error| io::Error::other(format!("cannot execute the supervisor: {error}")))?;
        let Programs { cwd, env, limits, sandbox, .. } = &settings.programs;
        let (control, theirs) = BlockingStream::pair()?;
        let mut command = Command::new(executable.path());
        command
            .arg0("toolcrib-supervisor")
            .arg(getpid().as_raw_nonzero().to_string())
            .args(limit_options(limits))
            .env_clear()
            .envs(surroundings.variables.iter().chain(env).map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            // A group of its own, so that no Ctrl-C of the host reaches it.
            .process_group(0);
        let mut descriptors = Vec::new();
        if let Some(code) = code {
            command.arg(with_path("remove=", &code.path));
            descriptors.push(code.folder.as_fd());
        }
        if let Some(confinement) = &settings.confinement {
            let mut take = |use_of_it: &str, file: BorrowedFd<'a>| {
                command.arg(format!("take={use_of_it}"));
                descriptors.push(file);
            };
            if let Some(folder) = confinement.cwd()? {
                take("cwd", folder.get()?);
            }
            for file in &confinement.read {
                take("read", file.get()?);
            }
            for file in &confinement.write {
                take("write", file.get()?);
            }
            if let Some(code) = code {
                take("read", code.file.as_fd());
            }
            command.arg("sandbox=on");
            command.args(sandbox.as_ref().filter(|sandbox| !sandbox.network).map(|_| "network=off"));
        } else if let Some(folder) = cwd {
            command.arg(with_path("cwd=", folder));
        }
        command.arg("--").args(arguments);
        Ok(Self { control, command, descriptors })
    }
}

/// The options of a supervisor for the limits.
fn limit_options(limits: &ProgramLimits) -> impl Iterator<Item = String> {
    let ProgramLimits { cpu_seconds, memory_bytes, file_bytes, processes, output_bytes: _ } = *limits;
    let limits = [("cpu=", cpu_seconds), ("memory=", memory_bytes), ("file=", file_bytes), ("processes=", processes)];
    limits.into_iter().filter_map(|(name, limit)| Some(format!("{name}{}", limit?)))
}

fn with_path(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
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
pub(super) fn probe(settings: &Settings) -> Result<(), String> {
    let run = || -> io::Result<Report> {
        let arguments = ["/bin/sh", "-c", ":"].map(OsStr::new);
        let Start { mut control, mut command, descriptors } =
            Start::new(&Surroundings::current(), settings, &arguments, None)?;
        for part in descriptors.chunks(MESSAGE_DESCRIPTORS) {
            let mut tries = 0;
            while !send(&control, part)? {
                tries += 1;
                if tries == 1000 {
                    return Err(Errno::TOOMANYREFS.into());
                }
                std::thread::sleep(PAUSE);
            }
        }
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        drop(command); // it has the other end of the socket
        let mut line = String::new();
        control.read_to_string(&mut line)?;
        // Its status is lost in a process that ignores SIGCHLD.
        let _ = child.wait();
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
