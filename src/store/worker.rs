//! The thread of a store: it owns the connection, and commits what has arrived meanwhile in one transaction. A second thread ends
//! the jobs that take too long: the first one may wait for a database that does not answer.

use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::database::{Access, Database, Failure, Recovery, Target};
use super::fork::{self, Permit};
use super::operation::{Operation, is_migrated, migrate};
use super::postgres::Postgres;
use super::queue::{Job, Next, Queue};
use super::sqlite::Sqlite;
use crate::{Error, Result};

/// The most tries of a transaction that is undone because of another one, or because its connection is lost.
const TRIES: u32 = 5;

/// The sending end of a store's thread.
pub(super) struct Worker {
    queue: Arc<Queue>,
    process: u32,
}

impl Worker {
    /// Starts the threads. The connection is opened with the first job.
    pub(super) fn start(target: &Target, timeout: Duration) -> Result<Arc<Self>> {
        let (queue, store) = (Arc::new(Queue::default()), target.to_string());
        let mut work = WorkerLoop { target: target.clone(), timeout, store: store.clone(), connection: None };
        let late = format!("it did not answer within {} s", timeout.as_secs_f64());
        let late = Error::StoreFailed { store: store.clone(), reason: late };
        let start = |name: &str, run: Box<dyn FnOnce() + Send>| {
            let started = thread::Builder::new().name(name.to_owned()).spawn(run);
            started.map(drop).map_err(|error| Error::StoreFailed { store: store.clone(), reason: error.to_string() })
        };
        let (working, watching) = (queue.clone(), queue.clone());
        let worker = Arc::new(Self { queue, process: process::id() });
        start("toolcrib-store", Box::new(move || work.run(&working)))?;
        start("toolcrib-watch", Box::new(move || watching.watch(timeout, &late)))?;
        fork::register(Arc::downgrade(&worker));
        Ok(worker)
    }

    /// Hands an operation over; `reply` is called in a thread of the store and must not block. True if its answer is worth a
    /// short wait.
    pub(super) fn submit<O: Operation>(
        &self,
        operation: O,
        reply: impl FnOnce(Result<O::Output>) + Send + 'static,
    ) -> bool {
        self.queue.submit(operation, reply)
    }

    /// Closes the connection until the next job.
    pub(super) fn rest(&self) {
        self.queue.rest();
    }

    /// Ends the threads; `stopped` is called when the connection is closed.
    pub(super) fn stop(&self, stopped: impl FnOnce() + Send + 'static) {
        self.queue.stop(stopped);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // In a forked child a lost thread may hold the lock.
        if self.process == process::id() {
            self.stop(|| {});
        }
    }
}

struct WorkerLoop {
    target: Target,
    timeout: Duration,
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
    fn run(&mut self, queue: &Queue) {
        loop {
            match queue.next() {
                Next::Jobs(jobs) => {
                    self.work(&jobs);
                    drop(jobs);
                    queue.done();
                }
                Next::Rest => self.rest(),
                Next::Stop(stopped) => {
                    self.connection = None;
                    return stopped();
                }
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
    fn work(&mut self, jobs: &[Arc<dyn Job>]) {
        // For a connection that stays open a fork waits here.
        let _permit = match self.target {
            Target::Memory => Permit::take(),
            Target::Sqlite(_) | Target::Postgres(_) => None,
        };
        if jobs.len() > 1 {
            match self.transaction(jobs) {
                Ok(()) => return jobs.iter().for_each(|job| job.finish(Ok(()))),
                // It may have been committed before the connection was lost, so nothing is repeated.
                Err(Ended::Unreachable(error) | Ended::Uncertain(error)) => {
                    return jobs.iter().for_each(|job| job.finish(Err(error.clone())));
                }
                Err(Ended::Undone(..)) => {}
            }
        }
        for job in jobs {
            let mut tries = 1;
            let done = loop {
                match self.transaction(std::slice::from_ref(job)) {
                    Err(Ended::Undone(_, Recovery::Repeat | Recovery::Reconnect)) if tries < TRIES => tries += 1,
                    done => break done.map_err(Ended::error),
                }
            };
            job.finish(done);
        }
    }

    fn transaction(&mut self, jobs: &[Arc<dyn Job>]) -> Result<(), Ended> {
        let access = jobs.iter().map(|job| job.access()).max().unwrap_or(Access::Read);
        let store = self.store.clone();
        let failed = |reason: String| Error::StoreFailed { store, reason };
        let database = self.begin(access)?;
        let performed = jobs.iter().try_for_each(|job| job.perform(database));
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
            let mut connection = connect(&self.target, self.timeout, &self.store).map_err(Ended::Unreachable)?;
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

fn connect(target: &Target, timeout: Duration, store: &str) -> Result<Connection> {
    let failed = |reason: String| Error::StoreFailed { store: store.to_owned(), reason };
    let permit = || {
        Permit::take()
            .ok_or_else(|| failed("the process was forked with a connection open: start a new process".to_owned()))
    };
    let (database, permit): (Box<dyn Database>, Option<Permit>) = match target {
        Target::Memory => (Box::new(Sqlite::in_memory()?), None),
        Target::Sqlite(path) => {
            let permit = permit()?;
            (Box::new(Sqlite::open(path, timeout)?), Some(permit))
        }
        Target::Postgres(config) => (Box::new(Postgres::connect(config, timeout)?), None),
    };
    let mut connection = Connection { database, _permit: permit };
    let database = &mut *connection.database;
    if is_migrated(database) {
        return Ok(connection);
    }
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
