//! Frames of one connection: a JSON message on each line, and the replies to lines that are none.

use std::io;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use memchr::memchr;
use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

/// The longest line, in bytes.
pub(super) const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// The part of the buffer for lines that is kept between them.
const KEPT_BUFFER: usize = 64 * 1024;

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

/// A connection to one client, as lines.
pub(super) struct FramedConnection<R, W> {
    reader: BufReader<R>,
    writer: Arc<Mutex<W>>,
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
    pub(super) fn new(reader: R, writer: W) -> Self {
        Self {
            reader: BufReader::new(reader),
            writer: Arc::new(Mutex::new(writer)),
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
    fn reply(&mut self, reply: &Value) {
        self.reply = Some(write(self.writer.clone(), reply.to_string().into_bytes()).boxed());
    }
}

async fn write<W: AsyncWrite + Unpin>(writer: Arc<Mutex<W>>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut writer = writer.lock().await;
    writer.write_all(&line).await?;
    writer.flush().await
}

impl<R, W> Transport<RoleServer> for FramedConnection<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ServerJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let writer = self.writer.clone();
        async move { write(writer, serde_json::to_vec(&message)?).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(reply) = &mut self.reply {
                reply.await.ok()?;
                self.reply = None;
            }
            match self.read_line().await {
                Line::End => return None,
                Line::TooLong => self.reply(&Malformed::too_long()),
                Line::Whole if self.line.trim_ascii().is_empty() => self.clear(),
                Line::Whole => {
                    let read = serde_json::from_slice::<ClientJsonRpcMessage>(&self.line);
                    let mistake = read.is_err().then(|| Malformed::of(&self.line));
                    self.clear();
                    match (read, mistake) {
                        (Ok(message), _) if self.has_begun || matches!(message, ClientJsonRpcMessage::Request(_)) => {
                            self.has_begun = true;
                            return Some(message);
                        }
                        (_, Some(Malformed::Reply(reply))) => self.reply(&reply),
                        _ => {}
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.writer.lock().await.shutdown().await
    }
}
