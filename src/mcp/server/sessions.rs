//! The sessions of a server over HTTP: how many there are at a time, the end of those that are idle, and of the calls with them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::{self, Stream, StreamExt};
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionTransport,
};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::requests::PendingRequests;
use crate::sync::lock;

/// The longest time between two looks for idle sessions.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

type Known = HashMap<SessionId, Session>;

/// The sessions of a server.
pub(super) struct Sessions {
    /// The streams of the sessions.
    manager: Arc<LocalSessionManager>,
    known: Mutex<Known>,
    capacity: usize,
    timeout: Duration,
    /// Cancelled when the server ends.
    shutdown: CancellationToken,
}

/// A session, and the requests of its client.
struct Session {
    /// The requests that are not answered yet.
    pending: Arc<PendingRequests>,
    /// Number of requests whose responses are not complete.
    open: usize,
    /// The end of the last one.
    last: Instant,
}

impl Sessions {
    pub(super) fn new(capacity: usize, timeout: Duration, shutdown: CancellationToken) -> Arc<Self> {
        let mut manager = LocalSessionManager::default();
        // It would count a session as idle in the middle of a long call.
        manager.session_config.keep_alive = None;
        Arc::new(Self { manager: Arc::new(manager), known: Mutex::default(), capacity, timeout, shutdown })
    }

    /// True if there is no room for another session, because all of them have open requests.
    pub(super) fn is_full(&self) -> bool {
        let known = lock(&self.known);
        known.len() >= self.capacity && known.values().all(|session| session.open > 0)
    }

    /// Records a new session. If there are too many, the one that is idle longest ends; false if all of them have open requests.
    fn add(&self, id: SessionId) -> bool {
        let mut known = lock(&self.known);
        if known.len() >= self.capacity {
            let idle = known.iter().filter(|(_, session)| session.open == 0);
            // A call whose client is gone may still run. Its session ends after those without any.
            let longest = idle.min_by_key(|(_, session)| (!session.pending.is_empty(), session.last));
            let Some(longest) = longest.map(|(id, _)| id.clone()) else { return false };
            self.end(&mut known, &longest);
        }
        let pending = PendingRequests::new(self.shutdown.child_token(), Semaphore::MAX_PERMITS);
        known.insert(id, Session { pending, open: 0, last: Instant::now() });
        true
    }

    /// Records a request of a session, until the result is dropped; none if there is no such session.
    pub(super) fn enter(self: &Arc<Self>, id: &str) -> Option<OpenRequest> {
        let mut known = lock(&self.known);
        let (id, _) = known.get_key_value(id)?;
        let id = id.clone();
        known.get_mut(&id)?.open += 1;
        Some(OpenRequest { sessions: self.clone(), id })
    }

    /// Ends the sessions that have had no request for too long, again and again.
    pub(super) async fn end_idle(&self) {
        loop {
            sleep((self.timeout / 4).min(LONGEST_INTERVAL)).await;
            self.end_if(|session| session.open == 0 && session.last.elapsed() >= self.timeout);
        }
    }

    /// Ends all sessions.
    pub(super) fn end_all(&self) {
        self.end_if(|_| true);
    }

    fn end_if(&self, is_over: impl Fn(&Session) -> bool) {
        let mut known = lock(&self.known);
        let over = known.iter().filter(|(_, session)| is_over(session)).map(|(id, _)| id.clone());
        for id in over.collect::<Vec<_>>() {
            self.end(&mut known, &id);
        }
    }

    /// Ends a session: it is unknown at once, and its calls are cancelled.
    fn end(&self, known: &mut Known, id: &SessionId) {
        if let Some(session) = known.remove(id) {
            session.pending.gone().cancel();
            // Its streams may wait for a client that does not read them.
            let (manager, id) = (self.manager.clone(), id.clone());
            tokio::spawn(async move { manager.close_session(&id).await });
        }
    }

    fn pending(&self, id: &SessionId) -> Option<Arc<PendingRequests>> {
        lock(&self.known).get(id).map(|session| session.pending.clone())
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let (id, transport) = self.manager.create_session().await?;
        if self.add(id.clone()) {
            return Ok((id, transport));
        }
        drop(transport);
        self.manager.close_session(&id).await?;
        Err(LocalSessionManagerError::SessionNotFound(id))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.manager.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(lock(&self.known).contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.end(&mut lock(&self.known), id);
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let Some(pending) = self.pending(id) else {
            return Err(LocalSessionManagerError::SessionNotFound(id.clone()));
        };
        let open = match &mut message {
            ClientJsonRpcMessage::Request(request) => match pending.begin(request, 0) {
                Ok(open) => Some(open),
                Err(refused) => {
                    let refused = ServerSseMessage::from_message(*refused);
                    return Ok(stream::once(std::future::ready(refused)).left_stream());
                }
            },
            _ => None,
        };
        let messages = self.manager.create_stream(id, message).await?;
        let keep = move |message| {
            let _ = &open;
            message
        };
        Ok(messages.map(keep).right_stream())
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.manager.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.manager.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.manager.resume(id, last_event_id).await
    }
}

/// A request of a session whose response is not complete.
pub(super) struct OpenRequest {
    sessions: Arc<Sessions>,
    id: SessionId,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(session) = lock(&self.sessions.known).get_mut(&self.id) {
            session.open -= 1;
            session.last = Instant::now();
        }
    }
}
