//! The tokio runtime of a host that has none of its own: runs native tools, hands their responses to the host through
//! bounded queues, and can be joined.
//!
//! Its threads call nothing of the host but the function that delivers a response.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use tokio::runtime::{Builder, Handle};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

use super::run::{Failure, Run};
use crate::call::ToolResponse;

/// The most worker threads. Native tools wait for other systems most of the time, and a host has threads of its own.
const MOST_THREADS: usize = 4;

/// A tokio runtime for native tools.
pub struct Runtime {
    handle: Handle,
    /// Taken out by the shutdown.
    inner: Mutex<Option<tokio::runtime::Runtime>>,
}

/// The error of starting a tool on a runtime that was shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the runtime of native tools is shut down")]
pub struct ShutDown;

impl Runtime {
    /// Starts the threads.
    ///
    /// # Errors
    ///
    /// The system's refusal to start one.
    pub fn start() -> io::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let inner =
            Builder::new_multi_thread().worker_threads(threads).thread_name("toolcrib-native").enable_time().build()?;
        Ok(Self { handle: inner.handle().clone(), inner: Mutex::new(Some(inner)) })
    }

    /// Runs a tool here and calls `deliver` with everything it gives, the end included. At most `ahead` responses are
    /// delivered and not dropped; a tool that has more waits.
    ///
    /// `deliver` is called in a thread of this runtime and must not block. It is dropped when the tool has ended, however
    /// that came; if no [`Delivery::End`] was delivered, the tool was aborted.
    ///
    /// # Errors
    ///
    /// [`ShutDown`] after [`shut_down`](Self::shut_down).
    pub fn spawn(
        &self,
        mut run: Run,
        ahead: usize,
        deliver: impl Fn(Delivery) + Send + 'static,
    ) -> Result<Task, ShutDown> {
        if self.lock().is_none() {
            return Err(ShutDown);
        }
        let room = Arc::new(Semaphore::new(ahead.max(1)));
        let task = self.handle.spawn(async move {
            while let Some(item) = run.next().await {
                // The semaphore is never closed.
                let Ok(room) = room.clone().acquire_owned().await else { return };
                deliver(Delivery::Item(item, Room(room)));
            }
            drop(run);
            deliver(Delivery::End);
        });
        Ok(Task(task.abort_handle()))
    }

    /// Ends all tools, drops their futures and joins the threads, but waits for no longer than `patience`: a tool that
    /// blocks its thread is left behind.
    pub fn shut_down(&self, patience: Duration) {
        let inner = self.lock().take();
        if let Some(inner) = inner {
            inner.shutdown_timeout(patience);
        }
    }

    /// Lets go of the threads without touching them: in a forked child they do not exist.
    pub fn abandon(&self) {
        std::mem::forget(self.lock().take());
    }

    fn lock(&self) -> MutexGuard<'_, Option<tokio::runtime::Runtime>> {
        // It is taken out in one step, so it is whole after any panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Runtime").finish_non_exhaustive()
    }
}

/// A result of a tool on its way to the host.
#[derive(Debug)]
pub enum Delivery {
    /// A response, or the failure that is the last result. The tool may go on when its [`Room`] is dropped.
    Item(Result<ToolResponse, Failure>, Room),
    /// The tool has ended by itself.
    End,
}

/// A place in the queue between a tool and its host.
#[derive(Debug)]
pub struct Room(#[allow(dead_code, reason = "given back by being dropped")] OwnedSemaphorePermit);

/// A tool that runs on a [`Runtime`]. Dropping it aborts the tool.
#[derive(Debug)]
pub struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
