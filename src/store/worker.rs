//! The thread of a store: it owns the connection, and commits what has arrived meanwhile in one transaction.

use std::mem;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::database::{Access, Database, Failure, Recovery, Target};
use super::fork::{self, Permit};
use super::operation::{Operation, migrate};
use super::postgres::Postgres;
use super::sqlite::Sqlite;
use crate::{Error, Result};

/// The most operations of one transaction.
const GROUP: usize = 512;

/// The most tries of a transaction that is undone because of another one, or because its connection is lost.
const TRIES: u32 = 5;

/// The sending end of a store's thread.
pub(super) struct Worker {
    /// Not dropped in a forked child, where a lost thread may hold its locks.
    sender: Option<Sender<Message>>,
    process: u32,
}

enum Message {
    Job(Box<dyn Job>),
    /// Close the connection until the next job.
    Rest,
    /// Close the connection, and report when that is done.
    Stop(Box<dyn FnOnce() + Send>),
}

/// An operation, the result that it has in the current transaction, and the receiver of its final result.
struct Request<O: Operation, R> {
    operation: O,
    result: Option<Result<O::Output>>,
    reply: R,
}

/// A request of any operation.
trait Job: Send {
    fn access(&self) -> Access;

    /// Does the work; the transaction is not yet committed.
    fn perform(&mut self, database: &mut dyn Database) -> Result<(), Failure>;

    /// Reports the result, or the error by which the transaction ended.
    fn finish(self: Box<Self>, committed: Result<()>);
}

impl<O: Operation, R: FnOnce(Result<O::Output>) + Send> Job for Request<O, R> {
    fn access(&self) -> Access {
        O::ACCESS
    }

    fn perform(&mut self, database: &mut dyn Database) -> Result<(), Failure> {
        self.result = Some(self.operation.perform(database)?);
        Ok(())
    }

    fn finish(self: Box<Self>, committed: Result<()>) {
        let Self { result, reply, .. } = *self;
        match (committed, result) {
            (Ok(()), Some(result)) => reply(result),
            (Ok(()), None) => {}
            (Err(error), _) => reply(Err(error)),
        }
    }
}

impl Worker {
    /// Starts the thread, which opens its connection with the first job.
    pub(super) fn start(target: &Target) -> Result<Arc<Self>> {
        let (sender, receiver) = channel();
        let store = target.to_string();
        let mut work = WorkerLoop { target: target.clone(), store: store.clone(), connection: None };
        let started = thread::Builder::new().name("toolcrib-store".to_owned()).spawn(move || work.run(&receiver));
        started.map_err(|error| Error::StoreFailed { store, reason: error.to_string() })?;
        let worker = Arc::new(Self { sender: Some(sender), process: process::id() });
        fork::register(Arc::downgrade(&worker));
        Ok(worker)
    }

    /// Hands an operation over; `reply` is called in the thread and must not block.
    pub(super) fn submit<O: Operation>(&self, operation: O, reply: impl FnOnce(Result<O::Output>) + Send + 'static) {
        let job = Request { operation, result: None, reply };
        self.send(Message::Job(Box::new(job)));
    }

    pub(super) fn rest(&self) {
        self.send(Message::Rest);
    }

    /// Ends the thread; `stopped` is called when its connection is closed.
    pub(super) fn stop(&self, stopped: impl FnOnce() + Send + 'static) {
        self.send(Message::Stop(Box::new(stopped)));
    }

    fn send(&self, message: Message) {
        // After a stop the message is dropped, and with it the reply, whose receiver sees that.
        if let Some(sender) = &self.sender {
            let _ = sender.send(message);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.process != process::id() {
            mem::forget(self.sender.take());
        }
    }
}

struct WorkerLoop {
    target: Target,
    store: String,
    connection: Option<Connection>,
}

/// An open connection, closed before its permit is returned.
struct Connection {
    database: Box<dyn Database>,
    /// None for a database in memory, which must stay open, and for PostgreSQL, which a fork does not concern.
    _permit: Option<Permit>,
}

impl WorkerLoop {
    fn run(&mut self, messages: &Receiver<Message>) {
        let mut next = messages.recv().ok();
        while let Some(message) = next.take() {
            match message {
                Message::Rest => self.rest(),
                Message::Stop(stopped) => {
                    self.connection = None;
                    return stopped();
                }
                Message::Job(job) => {
                    let mut jobs = vec![job];
                    while jobs.len() < GROUP {
                        match messages.try_recv() {
                            Ok(Message::Job(job)) => jobs.push(job),
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.work(jobs);
                }
            }
            if next.is_none() {
                next = messages.recv().ok();
            }
        }
    }

    /// Closes the connection; one in memory stays, and is not in use.
    fn rest(&mut self) {
        if !matches!(self.target, Target::Memory) {
            self.connection = None;
        }
    }

    /// Does all jobs in one transaction. If it fails, each has one of its own.
    fn work(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        // For a connection that stays open a fork waits here.
        let _permit = match self.target {
            Target::Memory => Permit::take(),
            Target::Sqlite(_) | Target::Postgres(_) => None,
        };
        if jobs.len() > 1 {
            match self.transaction(&mut jobs) {
                Ok(()) => return jobs.into_iter().for_each(|job| job.finish(Ok(()))),
                // It may have been committed before the connection was lost, so nothing is repeated.
                Err(Ended::Unreachable(error) | Ended::Uncertain(error)) => {
                    return jobs.into_iter().for_each(|job| job.finish(Err(error.clone())));
                }
                Err(Ended::Undone(..)) => {}
            }
        }
        for job in jobs {
            let (mut one, mut tries) = ([job], 1);
            let done = loop {
                match self.transaction(&mut one) {
                    Err(Ended::Undone(_, Recovery::Repeat | Recovery::Reconnect)) if tries < TRIES => tries += 1,
                    done => break done.map_err(Ended::error),
                }
            };
            let [job] = one;
            job.finish(done);
        }
    }

    fn transaction(&mut self, jobs: &mut [Box<dyn Job>]) -> Result<(), Ended> {
        let access = jobs.iter().map(|job| job.access()).max().unwrap_or(Access::Read);
        let store = self.store.clone();
        let failed = |reason: String| Error::StoreFailed { store, reason };
        let database = self.begin(access)?;
        let performed = jobs.iter_mut().try_for_each(|job| job.perform(database));
        let is_performed = performed.is_ok();
        let Err(Failure { reason, recovery }) = performed.and_then(|()| database.commit()) else {
            return Ok(());
        };
        let is_undone = database.roll_back().is_ok();
        if recovery == Recovery::Reconnect || !is_undone {
            self.rest();
        }
        if is_performed && recovery == Recovery::Reconnect {
            return Err(Ended::Uncertain(failed(reason)));
        }
        Err(Ended::Undone(failed(reason), recovery))
    }

    /// Begins a transaction. A connection that was lost while it was not in use is opened again.
    fn begin(&mut self, access: Access) -> Result<&mut dyn Database, Ended> {
        let store = self.store.clone();
        let undone = |Failure { reason, recovery }| Ended::Undone(Error::StoreFailed { store, reason }, recovery);
        let is_memory = matches!(self.target, Target::Memory);
        let mut open = self.connection.take();
        if let Some(connection) = &mut open
            && let Err(failure) = connection.database.begin(access)
        {
            if failure.recovery != Recovery::Reconnect || is_memory {
                self.connection = open;
                return Err(undone(failure));
            }
            open = None;
        }
        let connection = if let Some(connection) = open {
            connection
        } else {
            let mut connection = connect(&self.target, &self.store).map_err(Ended::Unreachable)?;
            connection.database.begin(access).map_err(undone)?;
            connection
        };
        Ok(&mut *self.connection.insert(connection).database)
    }
}

/// The end of a transaction that was not committed, or perhaps was.
enum Ended {
    /// There is no connection.
    Unreachable(Error),
    /// Nothing has changed.
    Undone(Error, Recovery),
    /// The connection was lost during the commit.
    Uncertain(Error),
}

impl Ended {
    fn error(self) -> Error {
        let (Self::Unreachable(error) | Self::Undone(error, _) | Self::Uncertain(error)) = self;
        error
    }
}

fn connect(target: &Target, store: &str) -> Result<Connection> {
    let failed = |reason: String| Error::StoreFailed { store: store.to_owned(), reason };
    let permit = || {
        Permit::take()
            .ok_or_else(|| failed("the process was forked with a connection open: start a new process".to_owned()))
    };
    let (database, permit): (Box<dyn Database>, Option<Permit>) = match target {
        Target::Memory => (Box::new(Sqlite::in_memory()?), None),
        Target::Sqlite(path) => {
            let permit = permit()?;
            (Box::new(Sqlite::open(path)?), Some(permit))
        }
        Target::Postgres(config) => (Box::new(Postgres::connect(config)?), None),
    };
    let mut connection = Connection { database, _permit: permit };
    let database = &mut *connection.database;
    let migrated = database.begin(Access::Migrate).and_then(|()| migrate(database, store)).and_then(|migrated| {
        // A newer version is refused, and nothing was changed.
        if migrated.is_ok() {
            database.commit()?;
        } else {
            database.roll_back()?;
        }
        Ok(migrated)
    });
    migrated.map_err(|failure| failed(failure.reason))??;
    Ok(connection)
}
