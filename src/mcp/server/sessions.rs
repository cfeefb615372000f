//! The sessions of a server over HTTP: how many there are at a time, and the end of those that are idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::time::{Instant, sleep};

use crate::sync::lock;

/// The longest time between two looks for idle sessions.
const LONGEST_INTERVAL: Duration = Duration::from_secs(30);

/// The sessions of a server.
pub(super) struct Sessions {
    pub(super) manager: Arc<LocalSessionManager>,
    activities: Mutex<HashMap<Arc<str>, Activity>>,
    /// Requests that may be about to open a session.
    opening: AtomicUsize,
    capacity: usize,
    timeout: Duration,
}

/// The requests of a session.
struct Activity {
    /// Number of requests whose responses are not complete.
    open: usize,
    /// The end of the last one.
    last: Instant,
}

impl Sessions {
    pub(super) fn new(capacity: usize, timeout: Duration) -> Arc<Self> {
        let mut manager = LocalSessionManager::default();
        // It would count a session as idle in the middle of a long call.
        manager.session_config.keep_alive = None;
        Arc::new(Self {
            manager: Arc::new(manager),
            activities: Mutex::default(),
            opening: AtomicUsize::new(0),
            capacity,
            timeout,
        })
    }

    /// Reserves the place of a session that a request may open; none if there are too many.
    pub(super) async fn reserve(&self) -> Option<Opening<'_>> {
        let opening = Opening::new(&self.opening);
        let open = self.manager.sessions.read().await.len();
        (open + self.opening.load(Ordering::Relaxed) <= self.capacity).then_some(opening)
    }

    /// Records a session that was opened.
    pub(super) fn add(&self, id: &str) {
        lock(&self.activities).insert(id.into(), Activity { open: 0, last: Instant::now() });
    }

    /// Records a request of a session, until the result is dropped; none if there is no such session.
    pub(super) fn enter(self: &Arc<Self>, id: &str) -> Option<OpenRequest> {
        let mut activities = lock(&self.activities);
        let (id, _) = activities.get_key_value(id)?;
        let id = id.clone();
        activities.get_mut(&id)?.open += 1;
        Some(OpenRequest { sessions: self.clone(), id })
    }

    /// Ends the sessions that have had no request for too long, again and again.
    pub(super) async fn end_idle(&self) {
        loop {
            sleep((self.timeout / 4).min(LONGEST_INTERVAL)).await;
            let open = self.manager.sessions.read().await;
            let idle: Vec<Arc<str>> = {
                let mut activities = lock(&self.activities);
                activities.retain(|id, _| open.contains_key(id));
                let is_idle = |of: &Activity| of.open == 0 && of.last.elapsed() >= self.timeout;
                activities.iter().filter(|(_, activity)| is_idle(activity)).map(|(id, _)| id.clone()).collect()
            };
            drop(open);
            self.close(idle).await;
        }
    }

    /// Ends all sessions.
    pub(super) async fn end_all(&self) {
        let open = self.manager.sessions.read().await.keys().cloned().collect();
        self.close(open).await;
    }

    async fn close(&self, ids: Vec<Arc<str>>) {
        for id in ids {
            // It may have ended meanwhile.
            let _ = self.manager.close_session(&id).await;
        }
    }
}

/// A request that is counted while it may open a session.
pub(super) struct Opening<'a>(&'a AtomicUsize);

impl<'a> Opening<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request of a session whose response is not complete.
pub(super) struct OpenRequest {
    sessions: Arc<Sessions>,
    id: Arc<str>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(activity) = lock(&self.sessions.activities).get_mut(&self.id) {
            activity.open -= 1;
            activity.last = Instant::now();
        }
    }
}
