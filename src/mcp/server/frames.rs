//! Frames of one connection: a JSON message on each line, and the replies to lines that are none.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use memchr::memchr;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::requests::{PendingRequest, PendingRequests};

/// The longest line, in bytes.
pub(super) const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// The part of the buffer for lines that is kept between them.
const KEPT_BUFFER: usize = 64 * 1024;

/// The longest pause before the end of an input whose open requests are still answered. A client that pauses longer and then
/// closes has given up its requests: official clients fail if they are answered after that.
const LONGEST_PAUSE: Duration = Duration::from_millis(150);
/// Time without a written byte after which the output counts as not read.
pub(super) const LONGEST_FLUSH: Duration = Duration::from_secs(5);

/// The mistake in a text that is not a message of a client.
pub(super) enum Malformed {
    /// A notification that the protocol does not have, which is ignored.
    Ignored,
    /// The reply to send.
    Reply(Value),
}

impl Malformed {
    /// Finds the mistake.
    pub(super) fn of(text: &[u8]) -> Self {
        let Ok(value) = serde_json::from_slice::<Value>(text) else {
            return Self::Reply(error(-32700, "Parse error: not valid JSON", &Value::Null));
        };
        let is_method = value["jsonrpc"] == "2.0" && value.get("method").is_some_and(Value::is_string);
        let id = value.get("id").filter(|id| id.is_string() || id.is_number());
        match id {
            None if is_method && value.get("id").is_none() => Self::Ignored,
            Some(id) if is_method => Self::Reply(error(-32602, "Invalid params", id)),
            id => Self::Reply(error(-32600, "Invalid Request: not a message of JSON-RPC", id.unwrap_or(&Value::Null))),
        }
    }

    fn too_long() -> Value {
        error(-32600, &format!("Invalid Request: longer than {LONGEST_LINE} bytes"), &Value::Null)
    }
}

fn error(code: i32, message: &str, id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// The state of a connection's streams, for the server that waits for their end.
#[derive(Default)]
pub(super) struct StreamState {
    /// Cancelled when the client has closed the input, even if a part of it is not read yet.
    pub(super) input_ended: CancellationToken,
    /// The number of times that something was written.
    writes: AtomicU64,
}

impl StreamState {
    /// Waits until the client has closed the input and does not read the output either.
    pub(super) async fn abandoned(&self) {
        self.input_ended.cancelled().await;
        loop {
            let before = self.writes.load(Ordering::Relaxed);
            sleep(LONGEST_FLUSH).await;
            if self.writes.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

/// A connection to one client, as lines.
pub(super) struct FramedConnection<R, W> {
    reader: BufReader<R>,
    writer: Arc<Mutex<W>>,
    state: Arc<StreamState>,
    requests: Arc<PendingRequests>,
    /// The requests that will be answered.
    unanswered: HashMap<RequestId, PendingRequest>,
    /// The beginning of the wait for more input.
    waiting_since: Option<Instant>,
    /// True after the end of the input if the client still waits for answers.
    awaits_answers: Option<bool>,
    line: Vec<u8>,
    /// True while the rest of a line that is too long is skipped.
    is_skipping: bool,
    /// True after the first request: until then the client can only introduce itself.
    has_begun: bool,
    /// A reply that is being sent. It is kept here because the future of a receipt may be dropped at any time.
    reply: Option<BoxFuture<'static, io::Result<()>>>,
}

/// A line, or the reason why there is none.
enum Line {
    Whole,
    TooLong,
    End,
}

impl<R, W> FramedConnection<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(reader: R, writer: W, state: Arc<StreamState>, requests: Arc<PendingRequests>) -> Self {
        Self {
            reader: BufReader::new(reader),
            writer: Arc::new(Mutex::new(writer)),
            state,
            requests,
            unanswered: HashMap::new(),
            waiting_since: None,
            awaits_answers: None,
            line: Vec::new(),
            is_skipping: false,
            has_begun: false,
            reply: None,
        }
    }

    /// Reads a line into the buffer. The future may be dropped at any time: the next one continues.
    async fn read_line(&mut self) -> Line {
        loop {
            self.waiting_since.get_or_insert_with(Instant::now);
            let (taken, is_whole, is_too_long) = {
                let available = match self.reader.fill_buf().await {
                    // The last line has no end, and is not a message.
                    Ok([]) | Err(_) => return Line::End,
                    Ok(available) => available,
                };
                let end = memchr(b'\n', available);
                let taken = end.map_or(available.len(), |end| end + 1);
                let is_too_long = !self.is_skipping && self.line.len() + taken > LONGEST_LINE;
                if !self.is_skipping && !is_too_long {
                    self.line.extend_from_slice(&available[..taken]);
                }
                (taken, end.is_some(), is_too_long)
            };
            self.reader.consume(taken);
            self.waiting_since = None;
            if is_too_long {
                self.clear();
                self.is_skipping = !is_whole;
                return Line::TooLong;
            }
            if is_whole && !std::mem::take(&mut self.is_skipping) {
                return Line::Whole;
            }
        }
    }

    fn clear(&mut self) {
        self.line.clear();
        self.line.shrink_to(KEPT_BUFFER);
    }

    /// Begins to send a reply.
    fn reply(&mut self, reply: String) {
        self.reply = Some(write(self.writer.clone(), self.state.clone(), reply.into_bytes()).boxed());
    }

    /// Parses the line; none if it is not a message for the server.
    fn read_message(&mut self) -> Option<ClientJsonRpcMessage> {
        let size = self.line.len();
        let read = serde_json::from_slice::<ClientJsonRpcMessage>(&self.line);
        let mistake = read.is_err().then(|| Malformed::of(&self.line));
        self.clear();
        if let Some(Malformed::Reply(reply)) = mistake {
            self.reply(reply.to_string());
        }
        let mut message = read.ok()?;
        match &mut message {
            JsonRpcMessage::Request(request) => {
                self.has_begun = true;
                match self.requests.begin(request, size) {
                    Ok(pending) => self.unanswered.insert(request.id.clone(), pending),
                    Err(refused) => {
                        self.reply(serde_json::to_string(&refused).ok()?);
                        return None;
                    }
                };
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.unanswered.remove(id);
                }
            }
            _ => {}
        }
        self.has_begun.then_some(message)
    }

    /// Waits for the end of the requests that are still answered after the end of the input. The future may be dropped at any
    /// time: the next one continues.
    async fn end(&mut self) {
        self.state.input_ended.cancel();
        let paused = self.waiting_since.map_or(Duration::ZERO, |since| since.elapsed());
        if *self.awaits_answers.get_or_insert(paused <= LONGEST_PAUSE) {
            tokio::select! {
                () = self.requests.all_over() => {}
                () = self.requests.gone().cancelled() => {}
            }
        }
        self.requests.gone().cancel();
    }
}

async fn write<W: AsyncWrite + Unpin>(
    writer: Arc<Mutex<W>>,
    state: Arc<StreamState>,
    mut line: Vec<u8>,
) -> io::Result<()> {
    line.push(b'\n');
    let mut writer = writer.lock().await;
    let mut rest = line.as_slice();
    while !rest.is_empty() {
        let written = writer.write(rest).await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        state.writes.fetch_add(1, Ordering::Relaxed);
        rest = &rest[written..];
    }
    writer.flush().await
}

impl<R, W> Transport<RoleServer> for FramedConnection<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        // The request is open until its answer is written, so that a client that does not read is not read from either.
        let answered = id.and_then(|id| self.unanswered.remove(id));
        let is_gone = self.requests.gone().is_cancelled();
        let (writer, state) = (self.writer.clone(), self.state.clone());
        async move {
            if is_gone {
                return Ok(());
            }
            let mut line = serde_json::to_vec(&message)?;
            drop(message);
            // It may wait for a long time.
            line.shrink_to(line.len() + 1);
            let written = write(writer, state, line).await;
            drop(answered);
            written
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(reply) = &mut self.reply {
                reply.await.ok()?;
                self.reply = None;
            }
            if self.awaits_answers.is_some() {
                self.end().await;
                return None;
            }
            self.requests.room().await;
            match self.read_line().await {
                Line::End => {
                    self.end().await;
                    return None;
                }
                Line::TooLong => self.reply(Malformed::too_long().to_string()),
                Line::Whole if self.line.trim_ascii().is_empty() => self.clear(),
                Line::Whole => {
                    if let Some(message) = self.read_message() {
                        return Some(message);
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.lock().await.shutdown().await
    }
}
