//! The transport of a server that is a child process: messages over its standard input and output, one to a line.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use memchr::memchr;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, CustomResult, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::ChildStdout;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::EncodingErrors;
use super::process::{LAST_OUTPUT, Process};
use super::target::CommandTarget;
use crate::json::text::without_lone_surrogates;
use crate::sync::lock;

/// Maximum number of bytes that wait for a server that does not read its input.
const MAX_UNSENT: usize = 64 << 20;
/// Number of bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The options of the messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameRules {
    /// The longest message, in bytes.
    pub(super) max_frame: usize,
    pub(super) encoding_errors: EncodingErrors,
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
    /// Starts the program of a target, in the current tokio runtime.
    pub(super) fn start(
        target: &CommandTarget,
        rules: FrameRules,
        strays: Arc<AtomicU64>,
    ) -> Result<(Arc<Process>, Self), String> {
        let (process, input, output) = Process::start(target)?;
        let input = input.into_owned_fd().and_then(|pipe| Input::start(pipe, process.stop.clone()));
        let input = input.inspect_err(|_| process.stop()).map_err(|error| error.to_string())?;
        let transport = Self {
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
        let read = match parse(frame, self.rules.encoding_errors) {
            Some(Value::Array(batch)) => batch.into_iter().map(message).collect(),
            Some(value) => vec![message(value)],
            None => vec![None],
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

/// Parses a line; none if it is not JSON. Bytes that are not UTF-8, and halves of characters, are treated only if it is not.
fn parse(frame: &[u8], errors: EncodingErrors) -> Option<Value> {
    if let Ok(value) = serde_json::from_slice(frame) {
        return Some(value);
    }
    let text = match errors {
        EncodingErrors::Strict => Cow::Borrowed(std::str::from_utf8(frame).ok()?),
        EncodingErrors::Ignore => frame.utf8_chunks().map(|chunk| chunk.valid()).collect(),
        EncodingErrors::Replace => String::from_utf8_lossy(frame),
    };
    let whole = without_lone_surrogates(&text);
    serde_json::from_str(whole.as_deref().unwrap_or(&text)).ok()
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
    let id = entries.remove("id").and_then(|id| serde_json::from_value::<RequestId>(id).ok());
    if let Some(result) = entries.remove("result") {
        return Some(JsonRpcMessage::response(ServerResult::CustomResult(CustomResult(result)), id?));
    }
    // An answer that says nothing is still the end of its request.
    let error = match (entries.remove("error"), &id) {
        (Some(error), _) => serde_json::from_value(error.clone()).unwrap_or_else(|_| invalid_answer(&error)),
        (None, Some(_)) => invalid_answer(&Value::Null),
        (None, None) => return None,
    };
    Some(JsonRpcMessage::error(error, id))
}

/// The error of an answer that has neither a result nor a valid error.
fn invalid_answer(error: &Value) -> ErrorData {
    const SHOWN: usize = 300;
    let error: String = error.to_string().chars().take(SHOWN).collect();
    ErrorData::internal_error(format!("the server sent an invalid answer, with the error {error}"), None)
}
