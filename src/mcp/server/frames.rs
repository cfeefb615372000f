//! Frames of one connection: a JSON message on each line, the limits of a message, and the replies to lines that are none.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use memchr::memchr;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, JsonRpcRequest, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::requests::{PendingRequest, PendingRequests, busy};
use crate::mcp::outline::{MAX_DEPTH, TOO_MANY_VALUES, outline};

/// The longest line, in bytes.
pub(super) const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// The largest weight of the values of a message. The protocol library takes up to ten times as much while it parses them.
const HEAVIEST_MESSAGE: usize = 4 << 20;
/// The part of the buffer for lines that is kept between them.
const KEPT_BUFFER: usize = 64 * 1024;

/// Time without a written byte after which the output counts as not read.
pub(super) const LONGEST_FLUSH: Duration = Duration::from_secs(5);

/// The mistake in a text that is not a message of a client.
pub(super) enum Malformed {
    /// A notification that the protocol does not have, which is ignored.
    Ignored,
    /// The reply to send.
    Reply(Value),
    /// An answer to a question of the server that is too large to be read; the error takes its place, so that the question ends.
    Answer(Box<ClientJsonRpcMessage>),
}

/// The weight of the values of a message, which is found before any of them is built.
///
/// # Errors
///
/// The mistake in a text that cannot be parsed in bounded memory.
pub(super) fn weigh(text: &[u8]) -> Result<usize, Malformed> {
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(Malformed::Reply(error(-32700, "Parse error: not UTF-8", &Value::Null)));
    };
    let found = outline(text, ["id", "method", "result", "error"]);
    let (code, reason) = if found.depth > MAX_DEPTH {
        (-32700, format!("Parse error: it is nested more than {MAX_DEPTH} levels deep"))
    } else if found.weight > HEAVIEST_MESSAGE {
        (-32600, format!("Invalid Request: {TOO_MANY_VALUES}"))
    } else {
        return Ok(found.weight);
    };
    let [id, method, result, failure] = found.members;
    let id = id.and_then(|id| serde_json::from_str::<RequestId>(id).ok());
    Err(match id {
        // It names a request of the server, and a reply by this name would end another one of the client.
        Some(_) if method.is_none() && (result.is_some() || failure.is_some()) => {
            let refused = ErrorData::invalid_request(reason, None);
            Malformed::Answer(Box::new(ClientJsonRpcMessage::error(refused, id)))
        }
        id => Malformed::Reply(error(code, &reason, &json!(id))),
    })
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
    /// A request that was read, and waits for room, with its size.
    held: Option<(JsonRpcRequest<ClientRequest>, usize)>,
    /// True if the client sent more before its first request was answered, as a pipe does: it does not wait for answers, and the end
    /// of its input means nothing for them. None before the first answer. Any other client that closes its input has given up its
    /// open requests, and official ones fail if they are answered after that.
    is_pipe: Option<bool>,
    /// True after the end of the input.
    is_over: bool,
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
            held: None,
            is_pipe: None,
            is_over: false,
            line: Vec::new(),
            is_skipping: false,
            has_begun: false,
            reply: None,
        }
    }

    /// Reads a line into the buffer. The future may be dropped at any time: the next one continues.
    async fn read_line(&mut self) -> Line {
        loop {
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

    /// Parses the line; none if it is not a message for the server, or a request, which is held.
    fn read_message(&mut self) -> Option<ClientJsonRpcMessage> {
        let size = self.line.len();
        let read = weigh(&self.line).and_then(|weight| match serde_json::from_slice(&self.line) {
            Ok(message) => Ok((message, size + weight)),
            Err(_) => Err(Malformed::of(&self.line)),
        });
        self.clear();
        let message = match read {
            Ok((JsonRpcMessage::Request(request), size)) => {
                if self.has_begun {
                    self.is_pipe.get_or_insert(true);
                }
                self.has_begun = true;
                self.held = Some((request, size));
                return None;
            }
            Ok((message, _)) => message,
            Err(Malformed::Answer(message)) => *message,
            Err(Malformed::Ignored) => return None,
            Err(Malformed::Reply(reply)) => {
                self.reply(reply.to_string());
                return None;
            }
        };
        if let JsonRpcMessage::Notification(notification) = &message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.unanswered.remove(id);
        }
        self.has_begun.then_some(message)
    }

    /// Begins the request that is held; none if it is refused.
    fn begin(&mut self, has_room: bool) -> Option<ClientJsonRpcMessage> {
        let (mut request, size) = self.held.take()?;
        let begun = if has_room { self.requests.begin(&mut request, size) } else { Err(Box::new(busy(&request.id))) };
        match begun {
            Ok(pending) => {
                self.unanswered.insert(request.id.clone(), pending);
                Some(JsonRpcMessage::Request(request))
            }
            Err(refused) => {
                self.reply(serde_json::to_string(&refused).ok()?);
                None
            }
        }
    }

    /// True if there is input that is not read yet, or its end.
    fn has_input(&mut self) -> bool {
        !self.line.is_empty() || self.reader.fill_buf().now_or_never().is_some()
    }

    /// Waits for the end of the requests that are still answered after the end of the input. The future may be dropped at any
    /// time: the next one continues.
    async fn end(&mut self) {
        self.is_over = true;
        self.state.input_ended.cancel();
        if self.is_pipe.unwrap_or(true) {
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
        if id.is_some() && self.is_pipe.is_none() {
            self.is_pipe = Some(self.has_input());
        }
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
            if self.is_over {
                self.end().await;
                return None;
            }
            if let Some((request, size)) = &self.held {
                let has_room = self.requests.room(&request.request, *size).await;
                if let Some(message) = self.begin(has_room) {
                    return Some(message);
                }
                continue;
            }
            self.requests.quick_room().await;
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
