//! The tokio runtime of a host that has none of its own: runs native tools, hands their responses over through bounded
//! queues, and can be joined.
//!
//! Its threads call nothing of the host but the [`std::task::Waker`] of whoever reads a queue.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt;
use tokio::runtime::{Builder, Handle};
use tokio::sync::mpsc;
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

    /// Runs a tool here. It runs at most `ahead` responses ahead of its reader.
    ///
    /// # Errors
    ///
    /// [`ShutDown`] after [`shut_down`](Self::shut_down).
    pub fn spawn(&self, mut run: Run, ahead: usize) -> Result<Receiver, ShutDown> {
        if self.lock().is_none() {
            return Err(ShutDown);
        }
        let (sender, items) = mpsc::channel(ahead.max(1));
        let task = self.handle.spawn(async move {
            while let Some(item) = run.next().await {
                if sender.send(Box::new(item)).await.is_err() {
                    return;
                }
            }
        });
        Ok(Receiver { items, task: task.abort_handle() })
    }

    /// Ends all tools, drops their futures and joins the threads, but waits for no longer than `patience`: a tool that
    /// blocks its thread is left behind.
    pub fn shut_down(&self, patience: Duration) {
        let inner = self.lock().take();
        if let Some(inner) = inner {
            inner.shutdown_timeout(patience);
        }
    }

    /// Lets go of the threads without a look at them: in a forked child they are not there.
    pub fn abandon(&self) {
        std::mem::forget(self.lock().take());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<tokio::runtime::Runtime>> {
        // It is taken out in one step, so it is whole after any panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Runtime").finish_non_exhaustive()
    }
}

/// The responses of a tool that runs on a [`Runtime`], in the order they come. Dropping it ends the tool.
#[derive(Debug)]
pub struct Receiver {
    /// Boxed, because the queue sets aside room for many of them.
    items: mpsc::Receiver<Box<Result<ToolResponse, Failure>>>,
    task: AbortHandle,
}

impl Stream for Receiver {
    type Item = Result<ToolResponse, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.poll_recv(context).map(|item| item.map(|item| *item))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}
