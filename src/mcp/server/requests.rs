//! The open requests of one client: each id once, a limited number of running calls, and the end of all with the client.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};

use rmcp::ErrorData;
use rmcp::model::{ClientRequest, GetExtensions, JsonRpcRequest, RequestId, ServerJsonRpcMessage};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::sync::lock;

/// The most open requests of one connection before its next message is read.
const MOST_OPEN: usize = 10_000;
/// The most of them that are not calls. They are answered at once, unless the client does not read its answers.
const MOST_QUICK: usize = 64;
/// The most bytes of open requests before the next message is read.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The open requests of one connection or session.
pub(super) struct PendingRequests {
    open: Mutex<Open>,
    turns: Arc<Semaphore>,
    /// Notified whenever a request ends.
    ended: Notify,
    /// Cancelled when the client is gone, or the server ends.
    gone: CancellationToken,
}

#[derive(Default)]
struct Open {
    ids: HashSet<RequestId>,
    quick: usize,
    bytes: usize,
}

impl PendingRequests {
    /// No requests, of a client that is gone when the token is cancelled, and so many of whose calls run at a time.
    pub(super) fn new(gone: CancellationToken, most_running: usize) -> Arc<Self> {
        let turns = Arc::new(Semaphore::new(most_running));
        Arc::new(Self { open: Mutex::default(), turns, ended: Notify::new(), gone })
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
    ) -> Result<PendingRequest, ServerJsonRpcMessage> {
        // Subscriptions last as calls do.
        let is_call =
            matches!(request.request, ClientRequest::CallToolRequest(_) | ClientRequest::SubscriptionsListenRequest(_));
        let Some(pending) = self.open(&request.id, is_call, size) else {
            let reason = format!("invalid request: a request with the id `{}` is open", request.id);
            let error = ErrorData::invalid_request(reason, None);
            return Err(ServerJsonRpcMessage::error(error, Some(request.id.clone())));
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

    /// Waits until there is room for another message, whatever it is.
    pub(super) async fn room(&self) {
        let has_room = |open: &Open| open.ids.len() < MOST_OPEN && open.quick < MOST_QUICK && open.bytes < MOST_BYTES;
        self.until(has_room).await;
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

    #[test]
    fn the_next_message_waits_for_quick_requests_and_for_bytes_but_not_for_calls() {
        let requests = requests();
        let begin = |id: usize, is_call, size| requests.open(&RequestId::Number(id as i64), is_call, size).unwrap();
        let has_room = || requests.room().now_or_never().is_some();

        let calls: Vec<_> = (0..1000).map(|id| begin(id, true, 10)).collect();
        assert!(has_room());
        let large = begin(1000, true, MOST_BYTES);
        assert!(!has_room());
        drop(large);
        assert!(has_room());
        let quick: Vec<_> = (2000..2000 + MOST_QUICK).map(|id| begin(id, false, 10)).collect();
        assert!(!has_room());
        drop(quick);
        assert!(has_room());
        drop(calls);
        assert!(requests.is_empty());
    }

    #[tokio::test]
    async fn a_call_waits_for_its_turn() {
        let requests = requests();
        let begin = |id: usize| requests.open(&RequestId::Number(id as i64), true, 0).unwrap();
        let (first, second, third) = (begin(1), begin(2), begin(3));
        first.turn().await;
        second.turn().await;

        assert!(third.turn().now_or_never().is_none());

        drop(first);
        third.turn().await;
    }
}
