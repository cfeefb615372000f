//! The queue of a store's jobs: one thread works on them in their order, another ends those that take too long.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::database::{Access, Database, Failure};
use super::operation::Operation;
use crate::sync::lock;
use crate::{Error, Result};

/// The most operations of one transaction.
const GROUP: usize = 512;

/// The number of microseconds within which an answer is worth a short wait.
const QUICK: u64 = 500;

/// The jobs of a store, in their order.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    /// Wakes the thread that works.
    arrived: Condvar,
    /// Wakes the thread that watches.
    watched: Condvar,
    /// The time that the last transaction took, from the arrival of its first job, in microseconds.
    latency: AtomicU64,
}

#[derive(Default)]
struct QueueState {
    messages: VecDeque<Message>,
    /// The number of messages at the front that are jobs of the current transaction.
    begun: usize,
    /// The thread that works waits for a message.
    is_idle: bool,
    /// The thread that watches waits for a job.
    is_unwatched: bool,
    is_over: bool,
}

enum Message {
    /// A job with the time of its arrival; none if its time is over.
    Job(Option<Instant>, Arc<dyn Job>),
    /// Close the connection until the next job.
    Rest,
    /// Close the connection, and report when that is done.
    Stop(Box<dyn FnOnce() + Send>),
}

/// The next thing to do for the thread that works.
pub(super) enum Next {
    /// Jobs for one transaction.
    Jobs(Vec<Arc<dyn Job>>),
    /// Close the connection until the next job.
    Rest,
    /// Close the connection for good, then call this.
    Stop(Box<dyn FnOnce() + Send>),
}

/// A request of any operation.
pub(super) trait Job: Send + Sync {
    fn access(&self) -> Access;

    /// Does the work, unless its time is over; the transaction is not yet committed.
    fn perform(&self, database: &mut dyn Database) -> Result<(), Failure>;

    /// Reports the result, or the error by which the transaction ended.
    fn finish(&self, committed: Result<()>);
}

/// An operation with the result that it has in the current transaction, and the receiver of its final result.
struct Request<O: Operation, R> {
    work: Mutex<(O, Option<Result<O::Output>>)>,
    /// Taken by the thread that works, or by the one that watches if that takes too long.
    reply: Mutex<Option<R>>,
}

impl<O: Operation, R: FnOnce(Result<O::Output>) + Send> Job for Request<O, R> {
    fn access(&self) -> Access {
        O::ACCESS
    }

    fn perform(&self, database: &mut dyn Database) -> Result<(), Failure> {
        if lock(&self.reply).is_some() {
            let (operation, result) = &mut *lock(&self.work);
            *result = Some(operation.perform(database)?);
        }
        Ok(())
    }

    fn finish(&self, committed: Result<()>) {
        let Some(reply) = lock(&self.reply).take() else { return };
        match committed {
            Ok(()) => {
                let result = lock(&self.work).1.take();
                if let Some(result) = result {
                    reply(result);
                }
            }
            // Without the lock of the work, which is held while the database does not answer.
            Err(error) => reply(Err(error)),
        }
    }
}

impl Queue {
    /// Hands an operation over; `reply` is called in one of the threads and must not block. True if its answer is worth a short
    /// wait.
    pub(super) fn submit<O: Operation>(
        &self,
        operation: O,
        reply: impl FnOnce(Result<O::Output>) + Send + 'static,
    ) -> bool {
        let job = Request { work: Mutex::new((operation, None)), reply: Mutex::new(Some(reply)) };
        self.push(Message::Job(Some(Instant::now()), Arc::new(job)))
    }

    /// Lets the connection be closed until the next job.
    pub(super) fn rest(&self) {
        self.push(Message::Rest);
    }

    /// Ends the threads after the jobs that were handed over.
    pub(super) fn stop(&self, stopped: impl FnOnce() + Send + 'static) {
        self.push(Message::Stop(Box::new(stopped)));
    }

    fn push(&self, message: Message) -> bool {
        let mut state = lock(&self.state);
        if state.is_over {
            // The reply is dropped with it, which its receiver sees; without the lock, because it may be any code.
            drop(state);
            drop(message);
            return false;
        }
        state.messages.push_back(message);
        let is_alone = state.messages.len() == 1;
        let (is_idle, is_unwatched) = (state.is_idle, state.is_unwatched);
        (state.is_idle, state.is_unwatched) = (false, false);
        drop(state);
        if is_idle {
            self.arrived.notify_one();
        }
        if is_unwatched {
            self.watched.notify_one();
        }
        is_alone && self.latency.load(Ordering::Relaxed) < QUICK
    }

    /// Waits for the next thing to do.
    pub(super) fn next(&self) -> Next {
        let mut state = lock(&self.state);
        loop {
            match state.messages.pop_front() {
                Some(job @ Message::Job(..)) => {
                    // It stays in the queue until its transaction has ended.
                    state.messages.push_front(job);
                    let jobs = state.messages.iter().take(GROUP).map_while(|message| match message {
                        Message::Job(_, job) => Some(job.clone()),
                        Message::Rest | Message::Stop(_) => None,
                    });
                    let jobs: Vec<_> = jobs.collect();
                    state.begun = jobs.len();
                    return Next::Jobs(jobs);
                }
                Some(Message::Rest) => return Next::Rest,
                Some(Message::Stop(stopped)) => {
                    state.is_over = true;
                    let late = std::mem::take(&mut state.messages);
                    drop(state);
                    drop(late);
                    self.watched.notify_one();
                    return Next::Stop(stopped);
                }
                None => {
                    state.is_idle = true;
                    state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Removes the jobs of a transaction, which has ended.
    pub(super) fn done(&self) {
        let mut state = lock(&self.state);
        if let Some(Message::Job(Some(since), _)) = state.messages.front() {
            self.latency.store(since.elapsed().as_micros().try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        }
        let begun = std::mem::take(&mut state.begun);
        let done: Vec<Message> = state.messages.drain(..begun).collect();
        drop(state);
        drop(done);
    }

    /// Reports `late` to the jobs that take longer than `timeout`, until the queue is stopped.
    pub(super) fn watch(&self, timeout: Duration, late: &Error) {
        let mut state = lock(&self.state);
        while !state.is_over {
            let oldest = state.messages.iter().find_map(|message| match message {
                Message::Job(since, _) => *since,
                Message::Rest | Message::Stop(_) => None,
            });
            state = match oldest.map(|since| timeout.saturating_sub(since.elapsed())) {
                None => {
                    state.is_unwatched = true;
                    self.watched.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                Some(Duration::ZERO) => self.expire(state, timeout, late),
                Some(left) => self.watched.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Reports the jobs whose time is over. Those that have not begun never will.
    fn expire<'a>(
        &'a self,
        mut state: MutexGuard<'a, QueueState>,
        timeout: Duration,
        late: &Error,
    ) -> MutexGuard<'a, QueueState> {
        let (mut overdue, mut at, begun) = (Vec::new(), 0, state.begun);
        state.messages.retain_mut(|message| {
            at += 1;
            match message {
                Message::Job(since, job) if since.is_some_and(|since| since.elapsed() >= timeout) => {
                    overdue.push(job.clone());
                    *since = None;
                    // Those of the current transaction are removed at its end.
                    at <= begun
                }
                _ => true,
            }
        });
        drop(state);
        for job in overdue {
            job.finish(Err(late.clone()));
        }
        lock(&self.state)
    }
}
