//! The transport of a server that is a child process: messages over its standard input and output, one to a line.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, Weak};

use memchr::memchr;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::ChildStdout;
use tokio::sync::{Notify, OwnedSemaphorePermit};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::EncodingErrors;
use super::message;
use super::process::{LAST_OUTPUT, Process};
use super::routes::Routes;
use super::target::CommandTarget;
use crate::sync::lock;

/// Number of bytes of calls that wait for a server that does not read its input. A call waits until it has room among them.
pub(super) const ROOM: usize = 8 << 20;
/// Maximum number of bytes of other messages that wait, such as answers to requests of the server, unless it is one message.
const MAX_UNSENT: usize = 4 << 20;
/// The size of a message in the queue beside its bytes.
const OVERHEAD: usize = 128;
/// Number of bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The options of the messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameRules {
    /// The longest message, in bytes.
    pub(super) max_frame: usize,
    pub(super) encoding_errors: EncodingErrors,
}

/// The part of the [`ROOM`] that a call has taken, until it is written or withdrawn. It travels with its request.
pub(super) type Room = Arc<OwnedSemaphorePermit>;

/// A message that waits to be written.
struct Outgoing {
    /// The id of a request, by which it is withdrawn.
    id: Option<RequestId>,
    line: Vec<u8>,
    room: Option<Room>,
}

/// The messages that wait to be written, in their order.
#[derive(Default)]
struct Unsent {
    messages: VecDeque<Outgoing>,
    /// Number of bytes of the first one that are written.
    written: usize,
    /// The size of the messages that have no [`Room`].
    size: usize,
}

impl Unsent {
    fn push(&mut self, message: Outgoing) -> io::Result<()> {
        if message.room.is_none() {
            if self.size > 0 && self.size + message.line.len() + OVERHEAD > MAX_UNSENT {
                return Err(io::Error::other("the server does not read its input"));
            }
            self.size += message.line.len() + OVERHEAD;
        }
        self.messages.push_back(message);
        Ok(())
    }

    fn remove(&mut self, at: usize) {
        if let Some(Outgoing { line, room: None, .. }) = self.messages.remove(at) {
            self.size -= line.len() + OVERHEAD;
        }
        if self.messages.is_empty() {
            self.messages = VecDeque::new();
        }
    }

    /// Removes a request of which nothing is written yet; false if there is none.
    fn withdraw(&mut self, id: &RequestId) -> bool {
        let found = self.messages.iter().position(|message| message.id.as_ref() == Some(id));
        let Some(at) = found.filter(|at| *at > 0 || self.written == 0) else { return false };
        self.remove(at);
        true
    }
}

/// The input of a server. Messages are written at once if the pipe has room, and otherwise by a task, in their order.
struct Input {
    pipe: pipe::Sender,
    unsent: Mutex<Unsent>,
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
                let has_more = !lock(&input.unsent).messages.is_empty();
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
    fn send(&self, message: Outgoing) -> io::Result<()> {
        lock(&self.unsent).push(message)?;
        self.write()?;
        if !lock(&self.unsent).messages.is_empty() {
            self.more.notify_one();
        }
        Ok(())
    }

    fn write(&self) -> io::Result<()> {
        let mut unsent = lock(&self.unsent);
        while let Some(first) = unsent.messages.front() {
            match self.pipe.try_write(&first.line[unsent.written..]) {
                Ok(written) if unsent.written + written < first.line.len() => unsent.written += written,
                Ok(_) => {
                    unsent.written = 0;
                    unsent.remove(0);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    *unsent = Unsent::default();
                    return Err(error);
                }
            }
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
    routes: Arc<Routes>,
    over: bool,
}

impl StdioTransport {
    /// Starts the program of a target, in the current tokio runtime.
    pub(super) fn start(
        target: &CommandTarget,
        rules: FrameRules,
        routes: Arc<Routes>,
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
            routes,
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

    fn send_now(&self, message: &ClientJsonRpcMessage) -> io::Result<()> {
        let input = self.input.upgrade().ok_or(io::ErrorKind::BrokenPipe)?;
        let (mut id, mut room) = (None, None);
        match message {
            JsonRpcMessage::Request(request) => {
                id = Some(request.id.clone());
                room = request.request.extensions().get::<Room>().cloned();
            }
            JsonRpcMessage::Notification(notification) => {
                // A call that the server has not begun to receive need not be cancelled there.
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                    && lock(&input.unsent).withdraw(id)
                {
                    return Ok(());
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        let mut line = serde_json::to_vec(message).map_err(io::Error::other)?;
        line.push(b'\n');
        input.send(Outgoing { id, line, room })
    }

    fn read_frame(&mut self, frame: Range<usize>) {
        let frame = &self.reader.buffer[frame];
        if frame.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        for read in message::read(frame, self.rules.encoding_errors) {
            let message = read.map_or_else(|unreadable| self.routes.drop_unreadable(unreadable), Some);
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
        std::future::ready(self.send_now(&message))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: i64, size: usize) -> Outgoing {
        Outgoing { id: Some(RequestId::Number(id)), line: vec![b'x'; size], room: None }
    }

    #[test]
    fn a_request_is_withdrawn_unless_a_part_of_it_is_written() {
        let mut unsent = Unsent::default();
        for id in 0..3 {
            unsent.push(request(id, 10)).unwrap();
        }
        unsent.written = 1;

        let withdrawn = [0, 1, 2, 7].map(|id| unsent.withdraw(&RequestId::Number(id)));

        assert_eq!(withdrawn, [false, true, true, false]);
        assert_eq!((unsent.messages.len(), unsent.size), (1, 10 + OVERHEAD));
    }

    #[test]
    fn messages_without_room_are_limited() {
        let mut unsent = Unsent::default();

        let pushed = (0..1_000_000).take_while(|id| unsent.push(request(*id, 40)).is_ok()).count();

        assert_eq!(pushed, MAX_UNSENT / (40 + OVERHEAD));
    }
}
