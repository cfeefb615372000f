//! The tokio runtime for a host without one, such as a Python process: runs native tools and delivers their responses to
//! the host through bounded queues.
//!
//! Its threads call only one function of the host, the one that delivers a response.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use super::run::{Failure, Run};
use crate::call::ToolResponse;
use crate::sync::lock;

/// Maximum number of worker threads. Native tools wait for other systems most of the time, and a host has threads of its
/// own.
const MAX_THREADS: usize = 4;

/// Maximum number of threads for work that blocks, such as file access. More calls wait for one of them; by default tokio
/// would start 512 threads for a thousand calls.
const MAX_BLOCKING_THREADS: usize = 16;

/// A tokio runtime for native tools.
pub struct Runtime {
    handle: Handle,
    /// Taken by the shutdown.
    inner: Mutex<Option<tokio::runtime::Runtime>>,
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
        let inner = builder.thread_name("toolcrib-native").enable_all().build()?;
        Ok(Self { handle: inner.handle().clone(), inner: Mutex::new(Some(inner)) })
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
    /// reason and its future is dropped; if no [`Delivery::End`] was delivered, the tool was aborted.
    ///
    /// # Errors
    ///
    /// [`ShutDown`] after [`shut_down`](Self::shut_down).
    pub fn spawn(&self, run: Run, ahead: usize, deliver: impl Fn(Delivery) + Send + 'static) -> Result<Task, ShutDown> {
        if lock(&self.inner).is_none() {
            return Err(ShutDown);
        }
        let slots = Arc::new(Semaphore::new(ahead.max(1)));
        let mut delivering = Delivering { run, deliver };
        let task = self.handle.spawn(async move {
            while let Some(item) = delivering.run.next().await {
                // The semaphore is never closed.
                let Ok(slot) = slots.clone().acquire_owned().await else { return };
                (delivering.deliver)(Delivery::Item(item, QueueSlot(slot)));
            }
            let Delivering { run, deliver } = delivering;
            drop(run);
            deliver(Delivery::End);
        });
        Ok(Task(task.abort_handle()))
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
        Ok(Task(self.handle.spawn(future).abort_handle()))
    }

    /// Ends all tools, drops their futures and joins the threads, for at most `timeout`: a tool that blocks its thread is
    /// not waited for.
    pub fn shut_down(&self, timeout: Duration) {
        let inner = lock(&self.inner).take();
        if let Some(inner) = inner {
            inner.shutdown_timeout(timeout);
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
#[derive(Debug)]
pub struct Task(AbortHandle);

impl Task {
    /// Aborts the tool: its future is dropped in a thread of the runtime.
    pub fn abort(&self) {
        self.0.abort();
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.abort();
    }
}
