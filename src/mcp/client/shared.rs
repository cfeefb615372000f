//! The state that the clones of a client share: its connection, made again when it breaks, and the list of tools.

use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::connection::{CLOSED, Connection, Endpoint, Failure, ListState};
use super::greeting::Greeting;
use super::strays::Strays;
use super::tools::{self, Catalogue, Entry, Unlisted};
use super::{ClientError, ClientOptions, ListedTools, ServerInfo};
use crate::sync::{lock, read, write};

/// The pause before a broken connection is made again: it doubles with each failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The state that the clones of a client share.
pub(super) struct Shared {
    pub(super) name: Arc<str>,
    pub(super) endpoint: Endpoint,
    pub(super) options: ClientOptions,
    pub(super) state: Mutex<State>,
    /// Held while a connection is made.
    pub(super) connecting: Arc<tokio::sync::Mutex<()>>,
    pub(super) catalogue: RwLock<Option<Arc<Catalogue>>>,
    pub(super) changes: watch::Sender<u64>,
    pub(super) strays: Arc<Strays>,
}

#[derive(Default)]
pub(super) struct State {
    /// True between `connect` and `close`.
    pub(super) is_open: bool,
    /// Number of times that the client was closed: a connection that was begun before is not used.
    pub(super) closed: u64,
    pub(super) connection: Option<Arc<Connection>>,
    pub(super) info: Option<ServerInfo>,
    pub(super) greeting: Option<Greeting>,
    /// Number of failures since the last success.
    pub(super) failures: u32,
    pub(super) next_try: Option<Instant>,
    /// The reason of the last failure.
    pub(super) reason: String,
}

impl State {
    /// The connection, if it can be used.
    pub(super) fn alive(&self) -> Option<Arc<Connection>> {
        self.connection.clone().filter(|connection| connection.is_alive())
    }

    fn back_off(&mut self, reason: &str) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(MAX_PAUSE);
        self.failures += 1;
        self.next_try = Some(Instant::now() + pause);
        reason.clone_into(&mut self.reason);
    }
}

impl Shared {
    pub(super) fn new(name: &str, endpoint: Endpoint, options: ClientOptions) -> Self {
        let name: Arc<str> = name.into();
        Self {
            strays: Strays::new(name.clone(), options.on_warning.clone()),
            name,
            endpoint,
            options,
            state: Mutex::default(),
            connecting: Arc::default(),
            catalogue: RwLock::default(),
            changes: watch::Sender::default(),
        }
    }

    pub(super) fn not_connected(&self) -> ClientError {
        ClientError::NotConnected { server: self.name.to_string() }
    }

    fn failed(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Connection { server: self.name.to_string(), reason: reason.into() }
    }

    /// The tool in the last list.
    pub(super) fn entry(&self, tool: &str) -> Option<Arc<Entry>> {
        read(&self.catalogue).as_ref()?.entries.get(tool).cloned()
    }

    pub(super) fn timed_out(&self, limit: Duration) -> ClientError {
        ClientError::Timeout { server: self.name.to_string(), seconds: limit.as_secs_f64() }
    }

    /// The connection, made again if it broke. A stateless client has a new one for each use.
    ///
    /// The deadline is that of the caller, who gives up by dropping the future: it decides if the caller can wait for the next
    /// try.
    pub(super) async fn connection(self: &Arc<Self>, deadline: Instant) -> Result<Arc<Connection>, ClientError> {
        if self.options.stateless {
            return self.open(false).await;
        }
        if let Some(connection) = self.current()? {
            return Ok(connection);
        }
        let turn = self.connecting.clone().lock_owned().await;
        if let Some(connection) = self.current()? {
            return Ok(connection);
        }
        let (next_try, reason) = {
            let state = lock(&self.state);
            (state.next_try, state.reason.clone())
        };
        if let Some(next_try) = next_try {
            if next_try > deadline {
                let seconds = next_try.saturating_duration_since(Instant::now()).as_secs_f64();
                return Err(self.failed(format!("{reason}; the next try to connect is in {seconds:.1} seconds")));
            }
            sleep_until(next_try).await;
        }
        // A server may need more time to start than this caller has, so the connection is made for the next one too.
        let shared = self.clone();
        let opening = tokio::spawn(async move {
            let opened = shared.open(false).await;
            drop(turn);
            opened
        });
        opening.await.unwrap_or_else(|_| Err(self.failed("the runtime of the connection has ended")))
    }

    /// The connection, within the time limit for connecting.
    pub(super) async fn connection_in_time(self: &Arc<Self>) -> Result<Arc<Connection>, ClientError> {
        let limit = self.options.connect_timeout;
        let connection = self.connection(Instant::now() + limit);
        timeout(limit, connection).await.unwrap_or_else(|_| Err(self.timed_out(limit)))
    }

    /// The connection, if it can be used.
    fn current(&self) -> Result<Option<Arc<Connection>>, ClientError> {
        let mut state = lock(&self.state);
        if !state.is_open {
            return Err(self.not_connected());
        }
        let alive = state.alive();
        if alive.is_none() && state.connection.take().is_some() {
            // Its task has not reported the loss yet.
            state.back_off("the connection was lost");
        }
        Ok(alive)
    }

    /// Makes a connection, and compares the tools with the list before. `by_user` is true for a new beginning.
    pub(super) async fn open(self: &Arc<Self>, by_user: bool) -> Result<Arc<Connection>, ClientError> {
        let (closed, greeting) = {
            let state = lock(&self.state);
            (state.closed, state.greeting)
        };
        let limit = self.options.connect_timeout;
        let opening = Connection::open(&self.endpoint, &self.options, greeting, &self.strays);
        let opened = match timeout(limit, opening).await {
            Ok(opened) => opened.map_err(|reason| self.failed(reason)),
            Err(_) => Err(self.timed_out(limit)),
        };
        let opened = match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                let has_list = read(&self.catalogue).is_some();
                if has_list { self.list_on(&connection).await.map(|_| connection) } else { Ok(connection) }
            }
            Err(error) => Err(error),
        };
        let mut state = lock(&self.state);
        let connection = match opened {
            Ok(connection) => connection,
            Err(error) => {
                // What was learned may be wrong by now.
                state.greeting = None;
                if !self.options.stateless {
                    match &error {
                        ClientError::Connection { reason, .. } => state.back_off(reason),
                        error => state.back_off(&error.to_string()),
                    }
                }
                return Err(error);
            }
        };
        state.greeting = Some(connection.greeting);
        state.info = Some(connection.info.clone());
        if state.closed != closed {
            return Err(self.not_connected());
        }
        state.is_open |= by_user;
        if self.options.stateless {
            return Ok(connection);
        }
        state.next_try = None;
        state.connection = Some(connection.clone());
        drop(state);
        connection.runtime().spawn(tools::keep_current(Arc::downgrade(self), Arc::downgrade(&connection)));
        connection.runtime().spawn(tools::subscribe(Arc::downgrade(&connection)));
        Ok(connection)
    }

    /// Records that a connection was lost.
    pub(super) fn lost(&self, connection: &Arc<Connection>, reason: &str) {
        connection.fail();
        let mut state = lock(&self.state);
        if state.connection.as_ref().is_some_and(|current| Arc::ptr_eq(current, connection)) {
            state.connection = None;
            state.back_off(reason);
        }
    }

    /// Records a call that went well.
    pub(super) fn succeeded(&self) {
        lock(&self.state).failures = 0;
    }

    /// Lists the tools, and compares them with the list before.
    pub(super) async fn list_on(&self, connection: &Arc<Connection>) -> Result<Arc<ListedTools>, ClientError> {
        let _turn = connection.listing.lock().await;
        let changes = connection.routes.changes();
        let limit = self.options.call_timeout;
        let listed = match timeout(limit, tools::list(connection)).await {
            Ok(Ok(listed)) => Ok(listed),
            Ok(Err(Unlisted::Invalid(reason))) => {
                Err(ClientError::InvalidList { server: self.name.to_string(), reason })
            }
            Ok(Err(Unlisted::Failed(failure))) => Err(self.list_failed(connection, failure)),
            Err(_) => Err(self.timed_out(limit)),
        };
        let state =
            ListState { changes, is_listed: listed.is_ok(), problem: listed.as_ref().err().map(ToString::to_string) };
        let listed = listed.map(|listed| self.remember(listed));
        connection.list_state.send_replace(state);
        listed
    }

    fn list_failed(&self, connection: &Arc<Connection>, failure: Failure) -> ClientError {
        match failure {
            Failure::Answered(error) => ClientError::Answered {
                server: self.name.to_string(),
                code: error.code.0,
                message: error.message.into_owned(),
            },
            Failure::Refused(reason) => self.failed(reason),
            Failure::Unsent => {
                self.lost(connection, CLOSED);
                self.failed(CLOSED)
            }
            Failure::Lost(reason) => {
                self.lost(connection, &reason);
                self.failed(reason)
            }
        }
    }

    fn remember(&self, listed: ListedTools) -> Arc<ListedTools> {
        let before = read(&self.catalogue).clone();
        let fresh = Arc::new(Catalogue::of(listed, before.as_deref()));
        let listed = fresh.listed.clone();
        let is_changed = before.is_some_and(|before| !before.equals(&fresh));
        *write(&self.catalogue) = Some(fresh);
        if is_changed {
            self.changes.send_modify(|changes| *changes += 1);
        }
        listed
    }

    /// Waits until the list of tools includes every change that the server has reported on this connection.
    pub(super) async fn bring_up_to_date(&self, connection: &Arc<Connection>) -> Result<(), String> {
        let changes = connection.routes.changes();
        if read(&self.catalogue).is_none() || self.options.stateless && !connection.list_state.borrow().is_listed {
            return self.list_on(connection).await.map(drop).map_err(|error| error.to_string());
        }
        if changes == 0 {
            return Ok(());
        }
        let mut state = connection.list_state.subscribe();
        let is_listed = async {
            let state = state.wait_for(|state| state.changes >= changes).await;
            state.map(|state| state.problem.clone()).unwrap_or_default()
        };
        let problem = tokio::select! {
            problem = is_listed => problem,
            () = connection.routes.lost.cancelled() => Some(connection.describe_end().await),
        };
        problem.map_or(Ok(()), Err)
    }
}
