//! The calls in flight on a connection, and the messages that belong to them.
//!
//! [`Tap`] stands between a transport and rmcp, and sees every message in order. So the progress of a call reaches it before
//! its result, a request of the server finds the call that it belongs to, and an answer to no request is counted and dropped.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions, GetMeta, JsonRpcMessage, ProgressNotificationParam,
    ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::InboundStreamOrigin;
use rmcp::transport::Transport;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::native::ToolContext;
use crate::sync::lock;

/// Maximum number of progress reports that wait for the reader of a call. The oldest are dropped.
const MAX_REPORTS: usize = 64;

/// A call in flight. It travels with its request as an extension, so that it is registered before the request is sent.
pub(super) struct CallSlot {
    /// The context of the call, for the questions of the server.
    pub(super) context: ToolContext,
    reports: Mutex<VecDeque<ProgressNotificationParam>>,
    reported: Notify,
    /// Cancelled when the call has ended: open questions of the server are abandoned.
    pub(super) over: CancellationToken,
}

impl CallSlot {
    pub(super) fn new(context: ToolContext) -> Arc<Self> {
        Arc::new(Self { context, reports: Mutex::default(), reported: Notify::new(), over: CancellationToken::new() })
    }

    fn report(&self, report: ProgressNotificationParam) {
        let mut reports = lock(&self.reports);
        if reports.len() == MAX_REPORTS {
            reports.pop_front();
        }
        reports.push_back(report);
        drop(reports);
        self.reported.notify_one();
    }

    /// Waits for the next progress report.
    pub(super) async fn next_report(&self) -> ProgressNotificationParam {
        loop {
            if let Some(report) = self.take_report() {
                return report;
            }
            self.reported.notified().await;
        }
    }

    /// The next progress report that has arrived.
    pub(super) fn take_report(&self) -> Option<ProgressNotificationParam> {
        lock(&self.reports).pop_front()
    }
}

/// The requests in flight on a connection.
pub(super) struct Routes {
    pending: Mutex<Pending>,
    strays: Arc<AtomicU64>,
    /// Number of `tools/list_changed` notifications.
    changes: AtomicU64,
    /// Woken by such a notification.
    pub(super) changed: Notify,
    /// Cancelled when the connection can receive no more messages.
    pub(super) lost: CancellationToken,
}

#[derive(Default)]
struct Pending {
    requests: HashMap<RequestId, PendingRequest>,
    /// The calls of requests by the token of their progress reports.
    tokens: HashMap<ProgressToken, Arc<CallSlot>>,
    /// Number of requests ever sent, which orders them.
    sent: u64,
}

struct PendingRequest {
    number: u64,
    token: Option<ProgressToken>,
    call: Option<Arc<CallSlot>>,
}

impl Pending {
    fn insert(&mut self, id: RequestId, token: Option<ProgressToken>, call: Option<Arc<CallSlot>>) {
        self.sent += 1;
        if let (Some(token), Some(call)) = (&token, &call) {
            self.tokens.insert(token.clone(), Arc::clone(call));
        }
        self.requests.insert(id, PendingRequest { number: self.sent, token, call });
    }

    fn remove(&mut self, id: &RequestId) -> bool {
        let Some(request) = self.requests.remove(id) else { return false };
        if let Some(token) = &request.token {
            self.tokens.remove(token);
        }
        true
    }
}

/// The reason why a request of the server belongs to no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unrouted {
    NoCall,
    Ambiguous,
}

impl Routes {
    pub(super) fn new(strays: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self {
            pending: Mutex::default(),
            strays,
            changes: AtomicU64::new(0),
            changed: Notify::new(),
            lost: CancellationToken::new(),
        })
    }

    /// Number of notifications so far that the list of tools has changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Records that the list of tools has changed or may have.
    pub(super) fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.changed.notify_one();
    }

    /// Forgets a request whose caller is gone; its answer will be a stray.
    pub(super) fn forget(&self, id: &RequestId) {
        lock(&self.pending).remove(id);
    }

    /// The call that a request of the server belongs to: by the stream on which it arrived, otherwise the newest call if all
    /// calls in flight have the same caller and session.
    pub(super) fn call_of(&self, origin: Option<&InboundStreamOrigin>) -> Result<Arc<CallSlot>, Unrouted> {
        let requests = &lock(&self.pending).requests;
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            return requests.get(id).and_then(|request| request.call.clone()).ok_or(Unrouted::NoCall);
        }
        let mut calls: Vec<(u64, &Arc<CallSlot>)> =
            requests.values().filter_map(|request| Some((request.number, request.call.as_ref()?))).collect();
        calls.sort_by_key(|(number, _)| *number);
        let (_, newest) = calls.last().ok_or(Unrouted::NoCall)?;
        let identity = |call: &CallSlot| (call.context.caller.clone(), call.context.session.clone());
        let same = calls.iter().all(|(_, call)| identity(call) == identity(newest));
        if same { Ok(Arc::clone(newest)) } else { Err(Unrouted::Ambiguous) }
    }

    fn stray(&self) {
        self.strays.fetch_add(1, Ordering::Relaxed);
    }

    /// Registers a request before it is sent, and forgets one that is cancelled.
    fn sending(&self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                let token = request.request.get_meta().get_progress_token();
                let call = request.request.extensions().get::<Arc<CallSlot>>().cloned();
                lock(&self.pending).insert(request.id.clone(), token, call);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.forget(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// Delivers a progress report, notes a change of the list, and drops strays; every other message is for rmcp.
    fn received(&self, message: ServerJsonRpcMessage) -> Option<ServerJsonRpcMessage> {
        match &message {
            JsonRpcMessage::Response(response) => self.answered(&response.id).then_some(message),
            JsonRpcMessage::Error(error) => {
                let is_answer = error.id.as_ref().is_some_and(|id| self.answered(id));
                if error.id.is_none() {
                    self.stray();
                }
                is_answer.then_some(message)
            }
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    let call = lock(&self.pending).tokens.get(&progress.params.progress_token).cloned();
                    match call {
                        Some(call) => call.report(progress.params.clone()),
                        None => self.stray(),
                    }
                    None
                }
                ServerNotification::ToolListChangedNotification(_) => {
                    self.note_change();
                    None
                }
                // Servers that name an unknown method or wrong parameters.
                ServerNotification::CustomNotification(_) => {
                    self.stray();
                    None
                }
                _ => Some(message),
            },
            JsonRpcMessage::Request(_) => Some(message),
        }
    }

    /// Removes the request that an answer belongs to; false if there is none.
    fn answered(&self, id: &RequestId) -> bool {
        // Some servers send numbers back as text.
        let number = match id {
            RequestId::String(text) => text.parse().ok().map(RequestId::Number),
            RequestId::Number(_) => None,
        };
        let mut pending = lock(&self.pending);
        let found = pending.remove(id) || number.is_some_and(|number| pending.remove(&number));
        drop(pending);
        if !found {
            self.stray();
        }
        found
    }
}

/// A transport whose messages pass through the [`Routes`] of its connection.
pub(super) struct Tap<T> {
    inner: T,
    routes: Arc<Routes>,
}

impl<T> Tap<T> {
    pub(super) fn new(inner: T, routes: Arc<Routes>) -> Self {
        Self { inner, routes }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.routes.sending(&message);
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        while let Some(message) = self.inner.receive().await {
            if let Some(message) = self.routes.received(message) {
                return Some(message);
            }
        }
        self.routes.lost.cancel();
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

impl<T> Drop for Tap<T> {
    fn drop(&mut self) {
        self.routes.lost.cancel();
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    #[test]
    fn a_reader_that_is_slow_gets_the_newest_reports() {
        let slot = CallSlot::new(ToolContext::of("t"));
        let report = |n: u32| ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(1)), f64::from(n));

        (0..1000).for_each(|n| slot.report(report(n)));

        let kept: Vec<f64> = std::iter::from_fn(|| slot.take_report()).map(|report| report.progress).collect();
        assert_eq!((kept.len(), kept[0], kept[63]), (64, 936.0, 999.0));
    }

    #[test]
    fn calls_of_the_same_caller_share_their_questions_and_others_do_not() {
        let routes = Routes::new(Arc::default());
        let call =
            |caller: &str| Some(CallSlot::new(ToolContext { caller: Some(caller.into()), ..ToolContext::of("t") }));
        assert_eq!(routes.call_of(None).err(), Some(Unrouted::NoCall));

        lock(&routes.pending).insert(RequestId::Number(7), None, call("ann"));
        let newest = call("ann");
        lock(&routes.pending).insert(RequestId::Number(3), None, newest.clone());

        assert!(Arc::ptr_eq(&routes.call_of(None).ok().unwrap(), &newest.unwrap()));
        lock(&routes.pending).insert(RequestId::Number(8), None, call("eve"));
        assert_eq!(routes.call_of(None).err(), Some(Unrouted::Ambiguous));
        let exact = InboundStreamOrigin::OutboundRequest(RequestId::Number(8));
        assert_eq!(routes.call_of(Some(&exact)).ok().unwrap().context.caller.as_deref(), Some("eve"));
    }
}
