//! [`Store`]: the handle of a database, which any thread may use.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::database::Target;
use super::fork::PerProcess;
use super::kept::KeptLimits;
use super::operation::{Get, Operation};
use super::worker::Worker;
use crate::sync::lock;
use crate::{Error, Result};

/// The time within which an operation has to be done, unless another is set.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// A database of values with versions, logs, and documents with all their versions.
///
/// It is SQLite in a file or in memory, or PostgreSQL; see [`Store::open`]. Cloning is cheap, and the clones share one
/// connection, which a thread of its own uses: no operation blocks an event loop. What several callers write at the same time is
/// committed together. A forked child opens a connection of its own.
///
/// ```
/// use toolcrib::store::{Get, Put, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> toolcrib::Result<()> {
/// let store = Store::open("sqlite::memory:")?;
/// let put = |value: &str, expected| Put {
///     space: "colours".to_owned(),
///     key: "sky".to_owned(),
///     value: value.into(),
///     expected,
/// };
///
/// assert_eq!(store.call(put("blue", Some(0))).await?, 1);
/// assert_eq!(store.call(put("grey", Some(1))).await?, 2);
/// assert!(store.call(put("green", Some(1))).await.is_err(), "it has not seen version 2");
///
/// let sky = store.call(Get { space: "colours".to_owned(), key: "sky".to_owned() }).await?;
/// assert_eq!(sky.map(|entry| entry.value), Some(b"grey".to_vec()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    target: Target,
    timeout: Duration,
    /// The limits of the results that are kept.
    kept: Mutex<KeptLimits>,
    id: u64,
    is_closed: AtomicBool,
    workers: PerProcess<Result<Arc<Worker>>>,
}

impl Store {
    /// Opens a store, and creates its file and tables if they do not exist.
    ///
    /// The URL is `sqlite:path`, `sqlite::memory:` or `postgresql://user:password@host:port/database`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidStoreUrl`]; [`Error::FileAccess`] if the system refuses; [`Error::ForeignFile`] and
    /// [`Error::DamagedFile`] for a file that is not a database; [`Error::NewerFile`] if a newer toolcrib made the tables;
    /// [`Error::StoreFailed`] if the server does not answer.
    pub fn open(url: &str) -> Result<Self> {
        Self::open_with_timeout(url, TIMEOUT)
    }

    /// The same with another time than 30 seconds within which an operation has to be done.
    ///
    /// After this time its caller gets [`Error::StoreFailed`]. An operation that the database has begun by then may still be done;
    /// any other never is.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_with_timeout(url: &str, timeout: Duration) -> Result<Self> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let store = Self(Arc::new(Inner {
            target: Target::parse(url)?,
            timeout,
            kept: Mutex::default(),
            id: IDS.fetch_add(1, Ordering::Relaxed),
            is_closed: AtomicBool::new(false),
            workers: PerProcess::new(),
        }));
        // The first operation opens the connection.
        store.run(Get { space: "toolcrib".to_owned(), key: "opened".to_owned() })?;
        Ok(store)
    }

    /// The URL without secrets.
    #[must_use]
    pub fn url(&self) -> String {
        self.0.target.to_string()
    }

    /// The time within which an operation has to be done.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// Sets the limits of the whole texts of results that are kept because a budget has cut them.
    pub fn limit_results(&self, limits: KeptLimits) {
        *lock(&self.0.kept) = limits;
    }

    /// The limits of the results that are kept.
    #[must_use]
    pub fn result_limits(&self) -> KeptLimits {
        *lock(&self.0.kept)
    }

    /// Hands an operation over. `reply` is called with its result, in a thread of the store, and must not block. If it
    /// is dropped without being called, the store was closed meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::StoreFailed`] if the store is closed, or in the memory of another process.
    pub fn submit<O: Operation>(
        &self,
        operation: O,
        reply: impl FnOnce(Result<O::Output>) + Send + 'static,
    ) -> Result<()> {
        self.worker()?.submit(operation, reply);
        Ok(())
    }

    /// A write that can be begun later, by a caller that must not block.
    pub(crate) fn write<O: Operation>(
        &self,
        operation: O,
        result: impl FnOnce(Result<O::Output>) -> Result<bool> + Send + 'static,
    ) -> Write {
        let store = self.clone();
        Write(Box::new(move |reply| {
            let reply = WriteReply { reply: Some(reply), store: store.clone() };
            match store.worker() {
                Ok(worker) => worker.submit(operation, move |done| reply.send(result(done))),
                Err(error) => {
                    reply.send(result(Err(error)));
                    true
                }
            }
        }))
    }

    /// Does an operation, and blocks this thread until it is durable.
    ///
    /// # Errors
    ///
    /// The refusal of the operation, or [`Error::StoreFailed`].
    pub fn run<O: Operation>(&self, operation: O) -> Result<O::Output> {
        let (sender, receiver) = channel();
        self.submit(operation, move |result| drop(sender.send(result)))?;
        receiver.recv().unwrap_or_else(|_| Err(self.closed()))
    }

    /// Does an operation.
    ///
    /// # Errors
    ///
    /// The refusal of the operation, or [`Error::StoreFailed`].
    pub async fn call<O: Operation>(&self, operation: O) -> Result<O::Output> {
        let (sender, receiver) = oneshot::channel();
        self.submit(operation, move |result| drop(sender.send(result)))?;
        receiver.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// Closes the connection after the operations that were handed over. Later ones are refused.
    pub fn close(&self) {
        let (sender, receiver) = channel::<()>();
        self.close_with(move || drop(sender));
        let _ = receiver.recv();
    }

    /// The same without blocking: `closed` is called when it is done.
    pub fn close_with(&self, closed: impl FnOnce() + Send + 'static) {
        let is_open = !self.0.is_closed.swap(true, Ordering::SeqCst);
        match self.0.workers.get() {
            Some(Ok(worker)) if is_open => worker.stop(closed),
            _ => closed(),
        }
    }

    /// True if the store was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.is_closed.load(Ordering::SeqCst)
    }

    /// The error for an operation after the end.
    #[must_use]
    pub fn closed(&self) -> Error {
        self.failed("it is closed")
    }

    fn failed(&self, reason: &str) -> Error {
        Error::StoreFailed { store: self.url(), reason: reason.to_owned() }
    }

    fn worker(&self) -> Result<&Arc<Worker>> {
        if self.is_closed() {
            return Err(self.closed());
        }
        if matches!(self.0.target, Target::Memory) && self.0.workers.is_forked() {
            return Err(self.failed("it is in the memory of another process"));
        }
        self.own_worker()
    }

    fn own_worker(&self) -> Result<&Arc<Worker>> {
        let worker = self.0.workers.get_or_init(|| Worker::start(&self.0.target, self.0.timeout));
        worker.as_ref().map_err(Clone::clone)
    }
}

/// A receiver of the result of a write.
type Reply = Box<dyn FnOnce(Result<bool>) + Send>;

/// A write to a store that a decision waits for.
pub struct Write(Box<dyn FnOnce(Reply) -> bool + Send>);

impl Write {
    /// Begins it. `reply` is called once with the result, in any thread, and must not block. True if it is worth a short wait.
    pub fn begin(self, reply: impl FnOnce(Result<bool>) + Send + 'static) -> bool {
        self.0(Box::new(reply))
    }

    /// Does it, and blocks this thread until it is durable.
    ///
    /// # Errors
    ///
    /// The reason why it may not be stored.
    pub fn wait(self) -> Result<bool> {
        let (sender, receiver) = channel();
        self.begin(move |result| drop(sender.send(result)));
        // Not reached: the reply is always sent.
        receiver.recv().unwrap_or(Ok(false))
    }
}

impl fmt::Debug for Write {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Write")
    }
}

/// The reply of a write, which is sent also if the store is closed meanwhile.
struct WriteReply {
    reply: Option<Box<dyn FnOnce(Result<bool>) + Send>>,
    store: Store,
}

impl WriteReply {
    fn send(mut self, result: Result<bool>) {
        if let Some(reply) = self.reply.take() {
            reply(result);
        }
    }
}

impl Drop for WriteReply {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            reply(Err(self.store.closed()));
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Store({})", self.url())
    }
}

/// The versions of what an object has loaded from stores or saved in them, so that its next save replaces only those.
#[derive(Debug, Default)]
pub struct SavedVersions(Mutex<HashMap<(u64, String), u64>>);

impl SavedVersions {
    /// The last version under a key; zero if there is none.
    #[must_use]
    pub fn get(&self, store: &Store, key: &str) -> u64 {
        lock(&self.0).get(&(store.0.id, key.to_owned())).copied().unwrap_or_default()
    }

    /// Notes a version.
    pub fn set(&self, store: &Store, key: &str, version: u64) {
        lock(&self.0).insert((store.0.id, key.to_owned()), version);
    }
}
