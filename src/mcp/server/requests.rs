//! The open requests of one client: each id once, a limited number of running calls, and the end of all with the client.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{ClientRequest, GetExtensions, JsonRpcRequest, RequestId, ServerJsonRpcMessage};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::sync::lock;

/// The most open requests of one connection, each of which takes several KiB.
const MOST_OPEN: usize = 1_024;
/// The most of them that are not calls. They are answered at once, unless the client does not read its answers.
const MOST_QUICK: usize = 64;
/// The most bytes of open requests and their values, before the last one.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// The size of a request, in bytes, that needs no room unless it is a call.
const SMALL_REQUEST: usize = 64 * 1024;
/// The time after which a request is refused for which there is no room, if no other one begins or ends. Open calls may wait for
/// what the client sends after it: answers to their questions, or cancellations.
const LONGEST_STANDSTILL: Duration = Duration::from_secs(1);

/// The open requests of one connection or session.
pub(super) struct PendingRequests {
    open: Mutex<Open>,
    turns: Arc<Semaphore>,
    /// Notified whenever a request ends.
    ended: Notify,
    /// Cancelled when the client is gone, or the server ends.
    gone: CancellationToken,
}

struct Open {
    ids: HashSet<RequestId>,
    quick: usize,
    bytes: usize,
    /// The time when a request last began or ended.
    changed: Instant,
}

/// True for requests that last: calls, and subscriptions.
fn is_call(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::CallToolRequest(_) | ClientRequest::SubscriptionsListenRequest(_))
}

/// The answer to a request for which there is no room.
pub(super) fn busy(id: &RequestId) -> ServerJsonRpcMessage {
    let reason = format!("busy: {MOST_OPEN} requests or {} MiB of them are open", MOST_BYTES >> 20);
    ServerJsonRpcMessage::error(ErrorData::internal_error(reason, None), Some(id.clone()))
}

impl PendingRequests {
    /// No requests, of a client that is gone when the token is cancelled, and so many of whose calls run at a time.
    pub(super) fn new(gone: CancellationToken, most_running: usize) -> Arc<Self> {
        let turns = Arc::new(Semaphore::new(most_running));
        let open = Open { ids: HashSet::new(), quick: 0, bytes: 0, changed: Instant::now() };
        Arc::new(Self { open: Mutex::new(open), turns, ended: Notify::new(), gone })
    }

    /// Records a request of this size as an extension of itself, for its handler.
    ///
    /// # Errors
    ///
    /// The answer to a request whose id is that of an open one.
    pub(super) fn begin(
        self: &Arc<Self>,
        request: &mut JsonRpcRequest<ClientRequest>,
        size: usize,
    ) -> Result<PendingRequest, Box<ServerJsonRpcMessage>> {
        let Some(pending) = self.open(&request.id, is_call(&request.request), size) else {
            let reason = format!("invalid request: a request with the id `{}` is open", request.id);
            let error = ErrorData::invalid_request(reason, None);
            return Err(Box::new(ServerJsonRpcMessage::error(error, Some(request.id.clone()))));
        };
        request.request.extensions_mut().insert(pending.clone());
        Ok(pending)
    }

    fn open(self: &Arc<Self>, id: &RequestId, is_call: bool, size: usize) -> Option<PendingRequest> {
        let mut open = lock(&self.open);
        if !open.ids.insert(id.clone()) {
            return None;
        }
        open.quick += usize::from(!is_call);
        open.bytes += size;
        open.changed = Instant::now();
        let (requests, id) = (self.clone(), id.clone());
        Some(PendingRequest(Arc::new(Pending { requests, id, is_call, size, turn: OnceLock::new() })))
    }

    /// The token that is cancelled when the client is gone.
    pub(super) fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    pub(super) fn is_empty(&self) -> bool {
        lock(&self.open).ids.is_empty()
    }

    /// Waits until all requests are over.
    pub(super) async fn all_over(&self) {
        self.until(|open| open.ids.is_empty()).await;
    }

    /// Waits until the answers to requests that are answered at once are written. They need no further message of the client.
    pub(super) async fn quick_room(&self) {
        self.until(|open| open.quick < MOST_QUICK).await;
    }

    /// Waits until there is room for a request of this size; false if there is none, and the open requests stand still.
    pub(super) async fn room(&self, request: &ClientRequest, size: usize) -> bool {
        self.room_for(is_call(request), size).await
    }

    async fn room_for(&self, is_call: bool, size: usize) -> bool {
        if !is_call && size <= SMALL_REQUEST {
            return true;
        }
        let has_room = self.until(|open| open.ids.len() < MOST_OPEN && open.bytes < MOST_BYTES);
        let mut has_room = std::pin::pin!(has_room);
        loop {
            let changed = lock(&self.open).changed;
            let standstill = changed + LONGEST_STANDSTILL;
            if timeout_at(standstill, has_room.as_mut()).await.is_ok() {
                return true;
            }
            if lock(&self.open).changed == changed {
                return false;
            }
        }
    }

    async fn until(&self, holds: impl Fn(&Open) -> bool) {
        loop {
            // It is notified of all ends from here on.
            let ended = self.ended.notified();
            if holds(&lock(&self.open)) {
                return;
            }
            ended.await;
        }
    }
}

/// A request that is open until its last clone is dropped. The handler has one as an extension of the request, and the transport
/// one until the answer is sent.
#[derive(Clone)]
pub(super) struct PendingRequest(Arc<Pending>);

struct Pending {
    requests: Arc<PendingRequests>,
    id: RequestId,
    is_call: bool,
    size: usize,
    turn: OnceLock<OwnedSemaphorePermit>,
}

impl PendingRequest {
    /// The token that is cancelled when its client is gone.
    pub(super) fn gone(&self) -> &CancellationToken {
        self.0.requests.gone()
    }

    /// Waits for the turn of a call, which lasts until the request ends.
    pub(super) async fn turn(&self) {
        // The semaphore is never closed.
        if let Ok(turn) = self.0.requests.turns.clone().acquire_owned().await {
            let _ = self.0.turn.set(turn);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut open = lock(&self.requests.open);
        open.ids.remove(&self.id);
        open.quick -= usize::from(!self.is_call);
        open.bytes -= self.size;
        open.changed = Instant::now();
        drop(open);
        self.requests.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn requests() -> Arc<PendingRequests> {
        PendingRequests::new(CancellationToken::new(), 2)
    }

    #[test]
    fn an_id_is_open_until_the_last_clone_is_dropped() {
        let requests = requests();
        let id = RequestId::Number(7);

        let first = requests.open(&id, true, 1).unwrap();
        let clone = first.clone();

        assert!(requests.open(&id, true, 1).is_none());
        assert!(requests.open(&RequestId::String("7".into()), true, 1).is_some());
        drop(first);
        assert!(requests.open(&id, true, 1).is_none());
        drop(clone);
        assert!(requests.open(&id, true, 1).is_some());
    }

    #[tokio::test]
    async fn the_next_message_waits_for_quick_requests_and_a_call_for_bytes_but_not_for_calls() {
        let requests = requests();
        let begin = |id: i64, is_call, size| requests.open(&RequestId::Number(id), is_call, size).unwrap();
        let has_room = || requests.quick_room().now_or_never().is_some();
        let has_room_for_a_call = || requests.room_for(true, 10).now_or_never() == Some(true);

        let calls: Vec<_> = (0..1000).map(|id| begin(id, true, 10)).collect();
        assert!(has_room_for_a_call());
        let large = begin(1000, true, MOST_BYTES);
        assert!(!has_room_for_a_call());
        assert!(has_room());
        assert_eq!(requests.room_for(false, 10).now_or_never(), Some(true));
        drop(large);
        assert!(has_room_for_a_call());
        let quick: Vec<_> = (2000..).take(MOST_QUICK).map(|id| begin(id, false, 10)).collect();
        assert!(!has_room());
        drop(quick);
        assert!(has_room());
        drop(calls);
        assert!(requests.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_room_is_refused_when_the_open_ones_stand_still() {
        let requests = requests();
        let begin = |id: i64, size| requests.open(&RequestId::Number(id), true, size).unwrap();
        let (_large, small) = (begin(1, MOST_BYTES), begin(2, 10));
        let ends = async {
            tokio::time::sleep(LONGEST_STANDSTILL / 2).await;
            drop(small);
        };
        let start = Instant::now();

        let (has_room, ()) = tokio::join!(requests.room_for(true, 10), ends);

        assert!(!has_room);
        assert_eq!(start.elapsed().as_millis() / 100, LONGEST_STANDSTILL.as_millis() * 3 / 2 / 100);
        assert!(requests.room_for(true, 10).now_or_never().is_none_or(|has_room| !has_room));
    }

    #[tokio::test]
    async fn a_call_waits_for_its_turn() {
        let requests = requests();
        let begin = |id: i64| requests.open(&RequestId::Number(id), true, 0).unwrap();
        let (first, second, third) = (begin(1), begin(2), begin(3));
        first.turn().await;
        second.turn().await;

        assert!(third.turn().now_or_never().is_none());

        drop(first);
        third.turn().await;
    }
}
