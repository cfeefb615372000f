//! The connections of a server over HTTP: how many there are at a time, and the end of those that hold others up.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;

use crate::sync::lock;

/// Time for which a client may leave a response unread.
const LONGEST_STALL: Duration = Duration::from_secs(30);

/// The open connections.
pub(super) struct Connections {
    open: Mutex<Open>,
    /// Notified whenever a connection ends or becomes idle.
    freed: Notify,
    capacity: usize,
}

#[derive(Default)]
struct Open {
    connections: HashMap<u64, Connection>,
    last: u64,
}

struct Connection {
    /// The time since which no request is being answered. A request that has not arrived as a whole, or that is not allowed, does not
    /// count.
    idle_since: Option<Instant>,
    closed: CancellationToken,
}

impl Connections {
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), freed: Notify::new(), capacity })
    }

    /// Makes room for a connection: closes the one that is idle longest if there are too many, or else waits for one to become idle.
    pub(super) async fn admit(self: &Arc<Self>) -> OpenConnection {
        loop {
            // It is notified of all ends from here on.
            let freed = self.freed.notified();
            if let Some(admitted) = self.try_admit() {
                return admitted;
            }
            freed.await;
        }
    }

    fn try_admit(self: &Arc<Self>) -> Option<OpenConnection> {
        let mut open = lock(&self.open);
        if open.connections.len() >= self.capacity && !open.close_idle() {
            return None;
        }
        open.last += 1;
        let (number, closed) = (open.last, CancellationToken::new());
        open.connections.insert(number, Connection { idle_since: Some(Instant::now()), closed: closed.clone() });
        Some(OpenConnection { connections: self.clone(), number, closed })
    }

    /// Closes the connection that is idle longest.
    pub(super) fn close_idle(&self) {
        lock(&self.open).close_idle();
    }

    fn set_idle(&self, number: u64, idle_since: Option<Instant>) {
        if let Some(connection) = lock(&self.open).connections.get_mut(&number) {
            connection.idle_since = idle_since;
        }
        if idle_since.is_some() {
            self.freed.notify_waiters();
        }
    }
}

impl Open {
    fn close_idle(&mut self) -> bool {
        let idle = self.connections.iter().filter_map(|(number, connection)| Some((connection.idle_since?, *number)));
        let Some((_, number)) = idle.min() else { return false };
        if let Some(connection) = self.connections.remove(&number) {
            connection.closed.cancel();
        }
        true
    }
}

/// An open connection.
pub(super) struct OpenConnection {
    connections: Arc<Connections>,
    number: u64,
    closed: CancellationToken,
}

impl OpenConnection {
    /// Waits until the connection has to make room for another.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Records that a request is being answered, until the result is dropped.
    pub(super) fn answer(&self) -> Answering {
        self.connections.set_idle(self.number, None);
        Answering { connections: self.connections.clone(), number: self.number }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        lock(&self.connections.open).connections.remove(&self.number);
        self.connections.freed.notify_waiters();
    }
}

/// A request that is being answered.
pub(super) struct Answering {
    connections: Arc<Connections>,
    number: u64,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.connections.set_idle(self.number, Some(Instant::now()));
    }
}

/// A stream that fails if the other side reads nothing of what is written for too long.
pub(super) struct ImpatientStream {
    stream: TcpStream,
    stall: Option<Pin<Box<Sleep>>>,
}

impl ImpatientStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, stall: None }
    }

    /// Passes the result of a write on, unless the write has waited for too long.
    fn limit<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let stall = self.stall.get_or_insert_with(|| Box::pin(sleep(LONGEST_STALL)));
        ready!(stall.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for ImpatientStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for ImpatientStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.limit(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn the_connection_that_is_idle_longest_makes_room() {
        let connections = Connections::new(2);
        let first = connections.admit().await;
        let second = connections.admit().await;
        drop(first.answer());

        let third = connections.admit().await;

        let is_closed = |connection: &OpenConnection| connection.closed().now_or_never().is_some();
        assert!(is_closed(&second));
        assert!(!is_closed(&first));
        assert!(!is_closed(&third));
    }

    #[tokio::test]
    async fn a_connection_with_a_request_is_not_closed() {
        let connections = Connections::new(1);
        let busy = connections.admit().await;
        let answering = busy.answer();

        assert!(connections.try_admit().is_none());

        let waiting = connections.admit();
        drop(answering);
        waiting.await;
        assert!(busy.closed().now_or_never().is_some());
    }
}
