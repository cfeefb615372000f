//! The process of a server: drains its log, reaps it, and ends it with its descendants.

use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use memchr::memchr;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::target::CommandTarget;
use crate::bytes::{hex, random_bytes};
use crate::process::{find, inherited};
use crate::sync::lock;

/// The time that a server has to end after its input is closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// The time in which the last output of a server that has ended is read.
pub(super) const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// Maximum number of lines, and of bytes of a line, of a server's log that are kept.
const LOG_LINES: usize = 20;
const LOG_LINE_BYTES: usize = 500;
/// A variable with a value of its own for each server, by which descendants outside its process group are found.
const MARK: &str = "TOOLCRIB_MCP_SERVER";

/// The end of a process.
#[derive(Debug, Clone, Copy)]
pub(super) enum Exit {
    Known(ExitStatus),
    /// The host ignores SIGCHLD, so that the kernel has forgotten it.
    Lost,
}

/// A child process, its log and its end.
pub(super) struct Process {
    log: Mutex<VecDeque<String>>,
    /// A mistake of the server that ended the connection.
    fault: Mutex<Option<String>>,
    /// Cancelled to end the process.
    pub(super) stop: CancellationToken,
    pub(super) exit: watch::Receiver<Option<Exit>>,
    /// Cancelled when the process and its group are gone.
    gone: CancellationToken,
}

impl Process {
    /// Starts the program of a target, in the current tokio runtime, and returns it with its input and output.
    pub(super) fn start(target: &CommandTarget) -> Result<(Arc<Self>, ChildStdin, ChildStdout), String> {
        let mark = random_bytes::<16>().map(|bytes| hex(&bytes)).map_err(|error| error.to_string())?;
        let failed = |error: io::Error| format!("cannot start `{}`: {error}", target.program);
        let mut variables: HashMap<OsString, OsString> = inherited().collect();
        variables.extend(target.env.iter().map(|(name, value)| (name.into(), value.into())));
        let mut program = PathBuf::from(&target.program);
        if program.components().count() == 1 && program.is_relative() {
            // Not left to `Command`: where SIGCHLD is ignored, it panics if it finds none.
            let folders = variables.get(OsStr::new("PATH")).map(OsString::as_os_str);
            program = find(&program, folders).ok_or_else(|| failed(Errno::NOENT.into()))?;
        }
        let mut command = Command::new(program);
        command
            .arg0(&target.program)
            .args(&target.args)
            .env_clear()
            .envs(variables)
            .env(MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that it ends with its descendants and no Ctrl-C of the host reaches it.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(folder) = &target.cwd {
            command.current_dir(folder);
        }
        let mut child = command.spawn().map_err(failed)?;
        let (Some(input), Some(output), Some(log)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(failed(io::Error::other("it has no pipes")));
        };
        let group = Group { id: child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)), mark };
        let (exited, exit) = watch::channel(None);
        let process = Arc::new(Self {
            log: Mutex::default(),
            fault: Mutex::default(),
            stop: CancellationToken::new(),
            exit,
            gone: CancellationToken::new(),
        });
        let reaper = Reaper { child, group, exited, process: process.clone() };
        tokio::spawn(reaper.run());
        tokio::spawn(keep_log(log, process.clone()));
        Ok((process, input, output))
    }

    /// Starts to end the process: its input is closed, then it gets SIGTERM, then SIGKILL.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the process and its group are gone.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Describes the end of the process: the fault, the exit status and the last lines of its log.
    pub(super) async fn describe_end(&self) -> String {
        let mut exit = self.exit.clone();
        // The output ends a moment before the process does.
        let _ = timeout(LAST_OUTPUT, exit.wait_for(Option::is_some)).await;
        let status = *self.exit.borrow();
        let mut text = match (lock(&self.fault).clone(), status) {
            (Some(fault), _) => fault,
            (None, Some(Exit::Known(status))) => {
                format!("the server ended with {}", status.to_string().replacen(": ", " ", 1))
            }
            (None, Some(Exit::Lost)) => "the server ended".to_owned(),
            (None, None) => "the server closed its output".to_owned(),
        };
        let log = lock(&self.log);
        if !log.is_empty() {
            text.push_str("; the last lines of its log:");
            for line in log.iter() {
                text.push_str("\n  ");
                text.push_str(line);
            }
        }
        text
    }

    pub(super) fn set_fault(&self, fault: String) {
        lock(&self.fault).get_or_insert(fault);
    }
}

/// A process group and the descendants that have left it, killed when it is dropped.
struct Group {
    /// Taken when all are gone.
    id: Option<Pid>,
    mark: String,
}

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.id {
            // It may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }

    fn is_gone(&self) -> bool {
        self.id.is_none_or(|group| test_kill_process_group(group).is_err())
    }

    /// Ends the rest of the group after its leader has ended.
    async fn clean_up(mut self) {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + GRACE;
        let mut pause = Duration::from_millis(2);
        while !self.is_gone() && Instant::now() < deadline {
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(50));
        }
        // The search reads many small files.
        let _ = tokio::task::spawn_blocking(move || self.kill()).await;
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        if self.id.take().is_some() {
            for process in marked(&self.mark) {
                let _ = kill_process(process, Signal::KILL);
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The processes of this user whose environment has a mark. Only Linux shows environments in files.
fn marked(mark: &str) -> Vec<Pid> {
    let entry = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let is_marked = |id: &i32| {
        let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    };
    ids.filter(is_marked).filter_map(Pid::from_raw).collect()
}

/// The task that waits for the end of a process. If its runtime ends before, the process is killed.
struct Reaper {
    child: Child,
    group: Group,
    exited: watch::Sender<Option<Exit>>,
    process: Arc<Process>,
}

impl Reaper {
    async fn run(self) {
        let Self { mut child, group, exited, process } = self;
        // Set also if the runtime ends before.
        let _gone = process.gone.clone().drop_guard();
        let status = tokio::select! {
            status = child.wait() => status,
            () = process.stop.cancelled() => end(&mut child, &group).await,
        };
        exited.send_replace(Some(status.map_or(Exit::Lost, Exit::Known)));
        group.clean_up().await;
    }
}

/// Waits for the end of a server whose input is closed, and then enforces it.
async fn end(child: &mut Child, group: &Group) -> io::Result<ExitStatus> {
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    group.signal(Signal::TERM);
    if let Ok(status) = timeout(GRACE, child.wait()).await {
        return status;
    }
    group.signal(Signal::KILL);
    child.wait().await
}

/// Reads the log of a server to its end, and keeps the last lines.
async fn keep_log(log: impl AsyncRead + Unpin, process: Arc<Process>) {
    let mut reader = BufReader::new(log);
    let mut line = Vec::new();
    loop {
        let read = tokio::select! {
            // A descendant outside the group may keep the pipe open.
            () = process.gone.cancelled() => return,
            read = reader.fill_buf() => read,
        };
        let Ok(bytes) = read else { return };
        if bytes.is_empty() {
            keep_line(&process, &mut line);
            return;
        }
        let end = memchr(b'\n', bytes);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        line.extend_from_slice(&part[..part.len().min(LOG_LINE_BYTES.saturating_sub(line.len()))]);
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            keep_line(&process, &mut line);
        }
    }
}

fn keep_line(process: &Process, line: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(line).trim_end().to_owned();
    line.clear();
    if text.is_empty() {
        return;
    }
    tracing::debug!(target: "toolcrib::mcp", "{text}");
    let mut log = lock(&process.log);
    if log.len() == LOG_LINES {
        log.pop_front();
    }
    log.push_back(text);
}
