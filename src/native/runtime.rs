//! The tokio runtime for a host without one, such as a Python process: runs native tools and delivers their responses to
//! the host through bounded queues.
//!
//! Its threads call only one function of the host, the one that delivers a response.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures_core::Stream;
use futures_util::StreamExt;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::run::{Failure, Run, let_block};
use crate::call::ToolResponse;
use crate::sync::lock;

/// Maximum number of worker threads. Native tools wait for other systems most of the time, and a host has threads of its
/// own.
const MAX_THREADS: usize = 4;

/// Maximum number of threads for parts of tools that block. More of them wait for one; by default tokio would start 512
/// threads for a thousand calls.
const MAX_BLOCKING_THREADS: usize = 16;

/// Number of threads for tools that block, such as file access.
const BLOCKED_THREADS: usize = 8;

/// A tokio runtime for native tools.
pub struct Runtime {
    handle: Handle,
    /// Taken by the shutdown.
    inner: Mutex<Option<Inner>>,
}

struct Inner {
    tasks: tokio::runtime::Runtime,
    /// The runtime of tools that block, started by the first one. tokio's own threads for blocking work are woken by every job
    /// that is handed to them; the workers of a runtime only as long as there is more work than they have.
    blocked: Option<tokio::runtime::Runtime>,
}

impl Inner {
    /// The runtime of tools that block; none if the system refuses to start its threads.
    fn blocked(&mut self) -> Option<&tokio::runtime::Runtime> {
        if self.blocked.is_none() {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(BLOCKED_THREADS).thread_name("toolcrib-blocked").on_thread_start(let_block);
            self.blocked = builder.build().ok();
        }
        self.blocked.as_ref()
    }
}

/// The error of starting a tool on a runtime that was shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the runtime of native tools is shut down")]
pub struct ShutDown;

impl Runtime {
    /// Starts the threads, at most one for each processor.
    ///
    /// # Errors
    ///
    /// The system's refusal to start one.
    pub fn start() -> io::Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads(processors.min(MAX_THREADS))
    }

    /// Starts one thread: for work that is a chain of short tasks, such as the calls of an MCP client. Each task wakes the
    /// next one, and in a runtime of several threads another thread would be woken with it, to find nothing to do.
    ///
    /// # Errors
    ///
    /// The system's refusal to start it.
    pub fn start_single() -> io::Result<Self> {
        Self::with_threads(1)
    }

    fn with_threads(threads: usize) -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads).max_blocking_threads(MAX_BLOCKING_THREADS);
        let tasks = builder.thread_name("toolcrib-native").enable_all().build()?;
        Ok(Self { handle: tasks.handle().clone(), inner: Mutex::new(Some(Inner { tasks, blocked: None })) })
    }

    /// Polls a tool in this thread, as one of the runtime: for the first step of a tool that
    /// [starts quickly](super::NativeTool::with_quick_start). It may be pending because it waits for a timer or for input of
    /// this runtime, and is to be [spawned](Self::spawn) then, which polls it again.
    ///
    /// # Errors
    ///
    /// [`ShutDown`] after [`shut_down`](Self::shut_down).
    pub fn poll_here(&self, run: &mut Run) -> Result<Poll<Option<Result<ToolResponse, Failure>>>, ShutDown> {
        if lock(&self.inner).is_none() {
            return Err(ShutDown);
        }
        let _entered = self.handle.enter();
        Ok(Pin::new(run).poll_next(&mut Context::from_waker(Waker::noop())))
    }

    /// Runs a tool in this runtime, and calls `deliver` with each of its responses and with its end. The tool waits while
    /// `ahead` responses are delivered and not yet dropped.
    ///
    /// `deliver` is called in a thread of this runtime and must not block. It is dropped when the tool has ended for any
    /// reason and its future is dropped; if no [`Delivery::End`] was delivered, the tool was aborted. A tool that blocks its
    /// thread goes on until it sees that its token is cancelled: if it is aborted, `deliver` is dropped before it ends.
    ///
    /// # Errors
    ///
    /// [`ShutDown`] after [`shut_down`](Self::shut_down).
    pub fn spawn(&self, run: Run, ahead: usize, deliver: impl Fn(Delivery) + Send + 'static) -> Result<Task, ShutDown> {
        let mut inner = lock(&self.inner);
        let Some(inner) = inner.as_mut() else { return Err(ShutDown) };
        let blocked = if run.blocks() { inner.blocked() } else { None };
        let Some(blocked) = blocked else {
            let task = self.handle.spawn(deliver_all(run, ahead, deliver));
            return Ok(Task { abort: task.abort_handle(), outlet: None });
        };
        let token = run.token().clone();
        let outlet = Arc::new(Mutex::new(Some(deliver)));
        let weak = Arc::downgrade(&outlet);
        let delivering = deliver_all(run, ahead, move |delivery| {
            if let Some(deliver) = &*lock(&outlet) {
                deliver(delivery);
            }
        });
        Ok(Task { abort: blocked.spawn(delivering).abort_handle(), outlet: Some((token, weak)) })
    }

    /// Runs a future in this runtime, such as the connection of an MCP client. It ends with the runtime, if not before.
    ///
    /// # Errors
    ///
    /// [`ShutDown`] after [`shut_down`](Self::shut_down).
    pub fn spawn_future(&self, future: impl Future<Output = ()> + Send + 'static) -> Result<Task, ShutDown> {
        if lock(&self.inner).is_none() {
            return Err(ShutDown);
        }
        Ok(Task { abort: self.handle.spawn(future).abort_handle(), outlet: None })
    }

    /// Ends all tools, drops their futures and joins the threads, for at most `timeout`: a tool that blocks its thread is
    /// not waited for.
    pub fn shut_down(&self, timeout: Duration) {
        let inner = lock(&self.inner).take();
        if let Some(Inner { tasks, blocked }) = inner {
            let end = Instant::now() + timeout;
            for runtime in blocked.into_iter().chain([tasks]) {
                runtime.shutdown_timeout(end.saturating_duration_since(Instant::now()));
            }
        }
    }

    /// Forgets the threads without touching them: in a forked child they do not exist.
    pub fn abandon(&self) {
        std::mem::forget(lock(&self.inner).take());
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Runtime").finish_non_exhaustive()
    }
}

/// A run and the function that delivers its responses, dropped in this order also if the task is aborted.
struct Delivering<F> {
    run: Run,
    deliver: F,
}

/// Delivers the responses of a run and its end.
async fn deliver_all(run: Run, ahead: usize, deliver: impl Fn(Delivery)) {
    let slots = Arc::new(Semaphore::new(ahead.max(1)));
    let mut delivering = Delivering { run, deliver };
    while let Some(item) = delivering.run.next().await {
        // The semaphore is never closed.
        let Ok(slot) = slots.clone().acquire_owned().await else { return };
        (delivering.deliver)(Delivery::Item(item, QueueSlot(slot)));
    }
    let Delivering { run, deliver } = delivering;
    drop(run);
    deliver(Delivery::End);
}

/// A message of a tool to its host.
#[derive(Debug)]
pub enum Delivery {
    /// A response, or the failure that ends the tool. Dropping the [`QueueSlot`] lets the tool produce another.
    Item(Result<ToolResponse, Failure>, QueueSlot),
    /// The end of a tool that was not aborted.
    End,
}

/// A place in the queue between a tool and its host, freed when it is dropped.
#[derive(Debug)]
pub struct QueueSlot(#[allow(dead_code, reason = "only dropped")] OwnedSemaphorePermit);

/// A tool that runs on a [`Runtime`]. Dropping it aborts the tool.
pub struct Task {
    abort: AbortHandle,
    /// For a tool that blocks its thread: the token that asks it to end, and the function that delivers its responses.
    outlet: Option<(CancellationToken, Weak<dyn Outlet>)>,
}

impl Task {
    /// Aborts the tool: its future is dropped in a thread of the runtime.
    pub fn abort(&self) {
        self.abort.abort();
        if let Some((token, outlet)) = &self.outlet {
            token.cancel();
            if let Some(outlet) = outlet.upgrade() {
                outlet.close();
            }
        }
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Task").field(&self.abort).finish()
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.abort();
    }
}

/// A function that delivers responses until it is closed.
trait Outlet: Send + Sync {
    fn close(&self);
}

impl<F: Send> Outlet for Mutex<Option<F>> {
    fn close(&self) {
        let deliver = lock(self).take();
        drop(deliver);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, channel};

    use serde_json::{Value, json};

    use super::super::run::blocking;
    use super::super::{NativeTool, ToolContext};
    use super::*;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_tool_that_blocks_runs_whole_in_one_thread() {
        let runtime = Runtime::start().unwrap();
        let tool = NativeTool::new("thread", "", |_: ToolContext, _: Value| async move {
            let before = std::thread::current().id();
            let inside = blocking(|| std::thread::current().id()).await?;
            Ok(json!([before == inside, std::thread::current().id() == inside]))
        })
        .with_blocking();
        let (sender, deliveries) = channel();

        let run = tool.run(ToolContext::of("thread"), json!({}));
        let _task = runtime.spawn(run, 1, move |delivery| drop(sender.send(delivery))).unwrap();

        let Delivery::Item(item, _) = deliveries.recv_timeout(LONG).unwrap() else { panic!("no response") };
        assert_eq!(item.unwrap().text(), "[true,true]");
        assert!(matches!(deliveries.recv_timeout(LONG), Ok(Delivery::End)));
    }

    #[test]
    fn a_tool_that_blocks_is_not_waited_for_when_it_is_aborted() {
        let runtime = Runtime::start().unwrap();
        let (begins, began) = channel();
        let (cancelled, saw) = channel();
        let tool = NativeTool::new("blocked", "", move |context: ToolContext, _: Value| {
            let (begins, cancelled) = (begins.clone(), cancelled.clone());
            async move {
                let work = move || {
                    begins.send(()).unwrap();
                    while !context.cancellation.is_cancelled() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    cancelled.send(()).unwrap();
                };
                blocking(work).await.map(|()| "over")
            }
        })
        .with_blocking();
        let (sender, deliveries) = channel();
        let run = tool.run(ToolContext::of("blocked"), json!({}));
        let task = runtime.spawn(run, 1, move |delivery| drop(sender.send(delivery))).unwrap();
        began.recv_timeout(LONG).unwrap();

        task.abort();

        assert!(matches!(deliveries.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected)));
        saw.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn the_panic_of_a_tool_that_blocks_is_its_failure() {
        let runtime = Runtime::start().unwrap();
        let tool = NativeTool::new("panics", "", |_: ToolContext, _: Value| async move {
            blocking(|| -> String { panic!("no disk") }).await
        })
        .with_blocking();
        let (sender, deliveries) = channel();

        let run = tool.run(ToolContext::of("panics"), json!({}));
        let _task = runtime.spawn(run, 1, move |delivery| drop(sender.send(delivery))).unwrap();

        let Delivery::Item(item, _) = deliveries.recv_timeout(LONG).unwrap() else { panic!("no response") };
        assert_eq!(item.unwrap_err(), Failure::Panicked("no disk".to_owned()));
    }
}
