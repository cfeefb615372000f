//! One client on standard input and output, or on any other pair of streams.

use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::frames::{FramedConnection, LONGEST_FLUSH, StreamState};
use super::handler::{Handler, ServerState};
use super::host::ToolHost;
use super::requests::PendingRequests;

/// The size of the buffers between the streams and the server.
const BUFFER: usize = 64 * 1024;
/// The most calls that run, or whose results are not written yet. It bounds the memory of results that the client does not read;
/// further calls wait for their turn.
const MOST_RUNNING: usize = 64;
/// Time between two looks at the input while nothing is read from it.
const HANG_UP_INTERVAL: Duration = Duration::from_millis(100);

/// Serves one client on a pair of streams, until the input ends.
///
/// Each line is a message. A line that is not valid is answered with an error, and the next one is read. At the end of the input, the
/// open requests of a client that sent on before its first one was answered are answered. Those of any other client are cancelled.
pub async fn serve_connection<R, W>(host: impl ToolHost, reader: R, writer: W)
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    serve_streams(Arc::new(host), reader, writer, Arc::default(), CancellationToken::new()).await;
}

/// A server for one client on standard input and output.
///
/// It has duplicates of both, so that the program can redirect its own output meanwhile: nothing else may be written where the
/// client reads.
#[derive(Debug)]
pub struct StdioServer {
    input: File,
    output: File,
}

impl StdioServer {
    /// Duplicates standard input and output.
    ///
    /// # Errors
    ///
    /// The system's refusal, for example because one of them is closed.
    #[cfg(unix)]
    pub fn open() -> io::Result<Self> {
        use std::os::fd::AsFd;
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self { input: File::from(input), output: File::from(output) })
    }

    /// Duplicates standard input and output.
    ///
    /// # Errors
    ///
    /// The system's refusal, for example because one of them is closed.
    #[cfg(windows)]
    pub fn open() -> io::Result<Self> {
        use std::os::windows::io::AsHandle;
        let input = io::stdin().as_handle().try_clone_to_owned()?;
        let output = io::stdout().as_handle().try_clone_to_owned()?;
        Ok(Self { input: File::from(input), output: File::from(output) })
    }

    /// Serves the client until the input ends or the token is cancelled. Then all calls are cancelled.
    ///
    /// # Errors
    ///
    /// The system's refusal to start a thread.
    pub async fn serve(self, host: impl ToolHost, stop: CancellationToken) -> io::Result<()> {
        let state = Arc::<StreamState>::default();
        let (reader, is_over) = pump_input(self.input, state.input_ended.clone())?;
        let (writer, flushed) = pump_output(self.output)?;
        let is_read = serve_streams(Arc::new(host), reader, writer, state, stop).await;
        is_over.store(true, Ordering::Relaxed);
        if is_read {
            // The writer is dropped, and what was written before is in its buffer still.
            let _ = tokio::time::timeout(LONGEST_FLUSH, flushed).await;
        }
        Ok(())
    }
}

/// Serves a client; returns false if it does not read the output.
async fn serve_streams<R, W>(
    host: Arc<dyn ToolHost>,
    reader: R,
    writer: W,
    state: Arc<StreamState>,
    stop: CancellationToken,
) -> bool
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let server = ServerState::start(host);
    let requests = PendingRequests::new(server.client_token(), MOST_RUNNING);
    let connection = FramedConnection::new(reader, writer, state.clone(), requests.clone());
    let handler = Handler::new(server.clone());
    let serving = async {
        match handler.serve_with_ct(connection, stop.clone()).await {
            Ok(running) => {
                let _ = running.waiting().await;
            }
            // A client that never introduced itself.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {}
            Err(error) => tracing::warn!(target: "toolcrib", %error, "the client could not be served"),
        }
    };
    let mut serving = std::pin::pin!(serving);
    let is_read = tokio::select! {
        () = serving.as_mut() => true,
        () = state.abandoned() => false,
        () = stop.cancelled() => {
            // Before the calls are cancelled, so that their ends are not answered.
            requests.gone().cancel();
            server.shut_down();
            tokio::time::timeout(LONGEST_FLUSH, serving).await.is_ok()
        }
    };
    server.shut_down();
    is_read
}

/// Starts a thread that reads a stream; it ends at the next input after its flag is set. The token is cancelled when the client closes
/// the stream, also while nothing is read from it.
///
/// It is a thread of its own, because one of the runtime would keep the process from ending while it waits for input.
fn pump_input(mut input: File, ended: CancellationToken) -> io::Result<(DuplexStream, Arc<AtomicBool>)> {
    let (mut end, reader) = tokio::io::duplex(BUFFER);
    let is_over = Arc::new(AtomicBool::new(false));
    let (runtime, flag) = (Handle::current(), is_over.clone());
    let pump = move || {
        let mut buffer = vec![0; BUFFER];
        while let Some(count) = read_while(&mut input, &mut buffer, &flag) {
            let pass_on = async {
                let mut passing = std::pin::pin!(end.write_all(&buffer[..count]));
                while !ended.is_cancelled() {
                    tokio::select! {
                        passed = passing.as_mut() => return passed,
                        () = sleep(HANG_UP_INTERVAL) => if is_closed(&input) { ended.cancel() },
                    }
                }
                passing.await
            };
            if count == 0 || runtime.block_on(pass_on).is_err() {
                break;
            }
        }
        ended.cancel();
    };
    thread::Builder::new().name("toolcrib-mcp-in".to_owned()).spawn(pump)?;
    Ok((reader, is_over))
}

/// Reads what there is; none if the server is over meanwhile, or the stream fails.
fn read_while(input: &mut File, buffer: &mut [u8], is_over: &AtomicBool) -> Option<usize> {
    loop {
        if is_over.load(Ordering::Relaxed) {
            return None;
        }
        if !has_input(input) {
            continue;
        }
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read.ok(),
        }
    }
}

/// Waits for input for a moment, so that the thread does not take input that comes after the end of the server.
#[cfg(target_os = "linux")]
fn has_input(input: &File) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    // A failure is found by reading.
    poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&moment)).map_or(true, |ready| ready > 0)
}

/// True if the other end of a stream is closed, even if there is input still.
#[cfg(target_os = "linux")]
fn is_closed(input: &File) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut looked = [PollFd::new(input, PollFlags::RDHUP)];
    let ready = poll(&mut looked, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    ready.is_ok() && looked[0].revents().intersects(PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR)
}

/// False: other systems see the end of a stream by reading it.
#[cfg(not(target_os = "linux"))]
fn is_closed(_input: &File) -> bool {
    false
}

/// True: other systems wait by reading.
#[cfg(not(target_os = "linux"))]
fn has_input(_input: &File) -> bool {
    true
}

/// Starts a thread that writes a stream; the receiver is notified when everything is written.
fn pump_output(mut output: File) -> io::Result<(DuplexStream, oneshot::Receiver<()>)> {
    let (writer, mut end) = tokio::io::duplex(BUFFER);
    let (flushed, receiver) = oneshot::channel();
    let runtime = Handle::current();
    let pump = move || {
        let mut buffer = vec![0; BUFFER];
        while let Ok(count) = runtime.block_on(end.read(&mut buffer))
            && count > 0
            && output.write_all(&buffer[..count]).and_then(|()| output.flush()).is_ok()
        {}
        let _ = flushed.send(());
    };
    thread::Builder::new().name("toolcrib-mcp-out".to_owned()).spawn(pump)?;
    Ok((writer, receiver))
}
