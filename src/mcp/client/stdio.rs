//! A server as a child process that speaks over its standard input and output.
//!
//! [`StdioTransport`] carries the messages, one to a line. [`Process`] owns the child: it drains its log, reaps it, and ends it
//! with its descendants.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use memchr::memchr;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, CustomResult, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::EncodingErrors;
use super::target::CommandTarget;
use crate::bytes::{hex, random_bytes};
use crate::sync::lock;

/// Variables that a server inherits: what programs need to find their files and their language, and no secrets.
const INHERITED: [&str; 11] =
    ["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR"];
/// The time that a server has to end after its input is closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// The time in which the last output of a server that has ended is read.
const LAST_OUTPUT: Duration = Duration::from_millis(200);
/// Maximum number of bytes that wait for a server that does not read its input.
const MAX_UNSENT: usize = 64 << 20;
/// Maximum number of lines, and of bytes of a line, of a server's log that are kept.
const LOG_LINES: usize = 20;
const LOG_LINE_BYTES: usize = 500;
/// A variable with a value of its own for each server, by which descendants outside its process group are found.
const MARK: &str = "TOOLCRIB_MCP_SERVER";
/// Number of bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The options of the messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameRules {
    /// The longest message, in bytes.
    pub(super) max_frame: usize,
    pub(super) encoding_errors: EncodingErrors,
}

/// A child process, its log and its end.
pub(super) struct Process {
    log: Mutex<VecDeque<String>>,
    /// A mistake of the server that ended the connection.
    fault: Mutex<Option<String>>,
    /// Cancelled to end the process.
    stop: CancellationToken,
    exit: watch::Receiver<Option<ExitStatus>>,
    /// Cancelled when the process and its group are gone.
    gone: CancellationToken,
}

impl Process {
    /// Starts the program of a target, in the current tokio runtime.
    pub(super) fn start(
        target: &CommandTarget,
        rules: FrameRules,
        strays: Arc<AtomicU64>,
    ) -> Result<(Arc<Self>, StdioTransport), String> {
        let mark = random_bytes::<16>().map(|bytes| hex(&bytes)).map_err(|error| error.to_string())?;
        let mut command = Command::new(&target.program);
        command
            .args(&target.args)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, value)| {
                let name = name.to_string_lossy();
                let is_known = INHERITED.contains(&&*name) || name.starts_with("LC_");
                // A function that a shell exported is code.
                is_known && !value.to_string_lossy().starts_with("()")
            }))
            .envs(target.env.iter().map(|(name, value)| (name, value)))
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
        let failed = |error: io::Error| format!("cannot start `{}`: {error}", target.program);
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
        let input = input.into_owned_fd().and_then(|pipe| Input::start(pipe, process.stop.clone())).map_err(failed)?;
        let transport = StdioTransport {
            process: process.clone(),
            input,
            output,
            reader: FrameReader::new(rules.max_frame),
            messages: VecDeque::new(),
            rules,
            strays,
            over: false,
        };
        Ok((process, transport))
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
            (None, Some(status)) => format!("the server ended with {}", status.to_string().replacen(": ", " ", 1)),
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

    fn set_fault(&self, fault: String) {
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
    exited: watch::Sender<Option<ExitStatus>>,
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
        exited.send_replace(Some(status.unwrap_or_default()));
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

/// The input of a server. Messages are written at once if the pipe has room, and otherwise by a task, in their order.
struct Input {
    pipe: pipe::Sender,
    unsent: Mutex<VecDeque<u8>>,
    more: Notify,
}

impl Input {
    /// Starts the task, which alone keeps the pipe open, until `stop` is cancelled.
    fn start(pipe: OwnedFd, stop: CancellationToken) -> io::Result<Weak<Self>> {
        let pipe = pipe::Sender::from_owned_fd(pipe)?;
        let input = Arc::new(Self { pipe, unsent: Mutex::default(), more: Notify::new() });
        let weak = Arc::downgrade(&input);
        tokio::spawn(async move {
            loop {
                let has_more = !lock(&input.unsent).is_empty();
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = input.more.notified() => {}
                    _ = input.pipe.writable(), if has_more => {}
                }
                if input.write().is_err() {
                    return;
                }
            }
        });
        Ok(weak)
    }

    /// Adds a message and writes as much as the pipe takes.
    fn send(&self, message: &[u8]) -> io::Result<()> {
        let mut unsent = lock(&self.unsent);
        if unsent.len() + message.len() > MAX_UNSENT {
            return Err(io::Error::other("the server does not read its input"));
        }
        unsent.extend(message);
        drop(unsent);
        self.write()?;
        if !lock(&self.unsent).is_empty() {
            self.more.notify_one();
        }
        Ok(())
    }

    fn write(&self) -> io::Result<()> {
        let mut unsent = lock(&self.unsent);
        while !unsent.is_empty() {
            match self.pipe.try_write(unsent.as_slices().0) {
                Ok(written) => drop(unsent.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    unsent.clear();
                    return Err(error);
                }
            }
        }
        if unsent.capacity() > CHUNK {
            unsent.shrink_to(CHUNK);
        }
        Ok(())
    }
}

/// The transport of a server that is a child process. Dropping it ends the process.
pub(super) struct StdioTransport {
    process: Arc<Process>,
    input: Weak<Input>,
    output: ChildStdout,
    reader: FrameReader,
    /// Messages that were read and not yet received: a batch has several.
    messages: VecDeque<ServerJsonRpcMessage>,
    rules: FrameRules,
    strays: Arc<AtomicU64>,
    over: bool,
}

impl StdioTransport {
    /// Reads the next line: its place in the buffer. None at the end of the output, and at a line that is too long.
    async fn next_frame(&mut self) -> Option<Range<usize>> {
        let mut exit = self.process.exit.clone();
        loop {
            match self.reader.next_frame() {
                Ok(Some(frame)) => return Some(frame),
                Ok(None) => {}
                Err(fault) => {
                    self.process.set_fault(fault);
                    return None;
                }
            }
            let has_ended = exit.borrow_and_update().is_some();
            let read = tokio::select! {
                biased;
                read = self.output.read_buf(&mut self.reader.buffer) => read,
                // A descendant may keep the pipe open after the server has ended.
                _ = exit.changed(), if !has_ended => continue,
                () = sleep(LAST_OUTPUT), if has_ended => return None,
            };
            if !read.is_ok_and(|read| read > 0) {
                return None;
            }
        }
    }

    fn read_frame(&mut self, frame: Range<usize>) {
        let frame = &self.reader.buffer[frame];
        if frame.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let value = match self.rules.encoding_errors {
            EncodingErrors::Strict => serde_json::from_slice(frame),
            EncodingErrors::Replace => serde_json::from_str(&String::from_utf8_lossy(frame)),
        };
        let read = match value {
            Ok(Value::Array(batch)) => batch.into_iter().map(message).collect(),
            Ok(value) => vec![message(value)],
            Err(_) => vec![None],
        };
        for message in read {
            if message.is_none() {
                self.strays.fetch_add(1, Ordering::Relaxed);
                tracing::debug!(target: "toolcrib::mcp", "dropped a line that is not a message of the protocol");
            }
            self.messages.extend(message);
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sent = serde_json::to_vec(&message).map_err(io::Error::other).and_then(|mut message| {
            message.push(b'\n');
            let input = self.input.upgrade().ok_or(io::ErrorKind::BrokenPipe)?;
            input.send(&message)
        });
        std::future::ready(sent)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        while !self.over {
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            match self.next_frame().await {
                Some(frame) => self.read_frame(frame),
                None => self.over = true,
            }
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.over = true;
        self.process.stop();
        Ok(())
    }
}

impl Drop for StdioTransport {
    fn drop(&mut self) {
        self.process.stop();
    }
}

/// Splits the output of a server into lines, in linear time and bounded memory.
struct FrameReader {
    buffer: Vec<u8>,
    /// Start of the bytes that no line was made of.
    start: usize,
    /// End of the bytes that have no line break.
    scanned: usize,
    max_frame: usize,
}

impl FrameReader {
    fn new(max_frame: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, scanned: 0, max_frame }
    }

    /// Finds the next whole line, or makes room to read more.
    fn next_frame(&mut self) -> Result<Option<Range<usize>>, String> {
        let found = memchr(b'\n', &self.buffer[self.scanned..]).map(|at| self.scanned + at);
        let end = found.unwrap_or(self.buffer.len());
        if end - self.start > self.max_frame {
            *self = Self::new(self.max_frame);
            return Err(format!("the server sent a message of more than {} bytes", self.max_frame));
        }
        if found.is_some() {
            let frame = self.start..end;
            (self.start, self.scanned) = (end + 1, end + 1);
            return Ok(Some(frame));
        }
        self.buffer.drain(..self.start);
        (self.start, self.scanned) = (0, self.buffer.len());
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * CHUNK {
            self.buffer = Vec::new();
        }
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 2 {
            self.buffer.reserve(CHUNK);
        }
        Ok(None)
    }
}

/// Reads a message. Results stay JSON, which keeps everything that the server sent; rmcp would try its types one by one.
fn message(value: Value) -> Option<ServerJsonRpcMessage> {
    let Value::Object(mut entries) = value else { return None };
    if entries.get("jsonrpc")? != "2.0" {
        return None;
    }
    if entries.contains_key("method") {
        return serde_json::from_value(Value::Object(entries)).ok();
    }
    let id = |entries: &mut Map<String, Value>| serde_json::from_value::<RequestId>(entries.remove("id")?).ok();
    if let Some(result) = entries.remove("result") {
        let id = id(&mut entries)?;
        return Some(JsonRpcMessage::response(ServerResult::CustomResult(CustomResult(result)), id));
    }
    let error = serde_json::from_value::<ErrorData>(entries.remove("error")?).ok()?;
    Some(JsonRpcMessage::error(error, id(&mut entries)))
}
