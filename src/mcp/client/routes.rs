//! The calls in flight on a connection, and the messages that belong to them.
//!
//! [`Tap`] stands between a transport and rmcp, and sees every message in order. So the progress of a call reaches it before
//! its result, a request of the server finds the call that it belongs to, and an answer to no request is counted and dropped.
//! rmcp starts a task for each request and notification, so a flood of them ends here.

use std::collections::{HashMap, HashSet, VecDeque};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientResult, ErrorData, GetExtensions, GetMeta, JsonRpcMessage,
    ProgressNotificationParam, ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification, ServerRequest,
    ServerResult,
};
use rmcp::service::InboundStreamOrigin;
use rmcp::transport::Transport;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::answer::refused;
use super::message::{Unreadable, UnreadableKind, without_params};
use super::strays::Strays;
use crate::native::ToolContext;
use crate::sync::lock;

/// Maximum number of progress reports that wait for the reader of a call. The oldest are dropped.
const MAX_REPORTS: usize = 64;
/// Maximum number of requests of a server that rmcp handles at the same time.
const MAX_INBOUND: usize = 64;
/// Maximum number of immediate answers that are being sent. Requests beyond them are dropped.
const MAX_REPLIES: usize = 16;
/// The time that a request whose answer could not be read waits for another one.
const GRACE: Duration = Duration::from_millis(250);

/// A call in flight. It travels with its request as an extension, so that it is registered before the request is sent.
pub(super) struct CallSlot {
    /// The context of the call, for the questions of the server.
    pub(super) context: ToolContext,
    reports: Mutex<VecDeque<ProgressNotificationParam>>,
    reported: Notify,
    /// Cancelled when the call has ended: open questions of the server are abandoned.
    pub(super) over: CancellationToken,
    /// Number of questions and model requests that the server may send.
    max_requests: usize,
    /// Number of those that it may still send and that name this call.
    requests_left: AtomicUsize,
    /// Cancelled when the server has sent more: the call ends.
    pub(super) overdrawn: CancellationToken,
}

impl CallSlot {
    pub(super) fn new(context: ToolContext, max_requests: usize) -> Arc<Self> {
        Arc::new(Self {
            context,
            reports: Mutex::default(),
            reported: Notify::new(),
            over: CancellationToken::new(),
            max_requests,
            requests_left: AtomicUsize::new(max_requests),
            overdrawn: CancellationToken::new(),
        })
    }

    /// Counts questions and model requests that name this call; false, and the end of the call, if they are too many.
    pub(super) fn admit_requests(&self, count: usize) -> bool {
        let left = |left: usize| left.checked_sub(count);
        let is_admitted = self.requests_left.fetch_update(Ordering::AcqRel, Ordering::Acquire, left).is_ok();
        if !is_admitted {
            self.overdrawn.cancel();
        }
        is_admitted
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
    strays: Arc<Strays>,
    /// Woken when an answer could not be read.
    doubted: Notify,
    /// The last message that could not be read and belongs to no request, for the text of a timeout.
    unreadable: Mutex<Option<(Instant, String)>>,
    /// The reason why the transport has ended, if it knows one.
    fault: OnceLock<String>,
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
    /// The requests of the server that rmcp handles.
    inbound: HashSet<RequestId>,
    /// Number of requests ever sent, which orders them.
    sent: u64,
    /// Number of questions that named no call.
    questions: usize,
    /// Number of those that the calls in flight have sent at least.
    open_questions: usize,
}

struct PendingRequest {
    number: u64,
    token: Option<ProgressToken>,
    call: Option<Arc<CallSlot>>,
    /// Number of questions that named no call before this request.
    questions_before: usize,
    /// The answer, if it has come and not passed the [`Tap`] yet.
    answer: Option<ServerJsonRpcMessage>,
    /// The time at which an answer came that could not be read, and the reason.
    doubt: Option<(Instant, String)>,
}

impl Pending {
    fn insert(&mut self, id: RequestId, token: Option<ProgressToken>, call: Option<Arc<CallSlot>>) {
        self.sent += 1;
        if let (Some(token), Some(call)) = (&token, &call) {
            self.tokens.insert(token.clone(), Arc::clone(call));
        }
        let (number, questions_before) = (self.sent, self.questions);
        let request = PendingRequest { number, token, call, questions_before, answer: None, doubt: None };
        self.requests.insert(id, request);
    }

    fn remove(&mut self, id: &RequestId) -> Option<PendingRequest> {
        let request = self.requests.remove(id)?;
        if let Some(token) = &request.token {
            self.tokens.remove(token);
        }
        if let Some(call) = &request.call {
            // The call has sent so many questions at most. The others must be of those that are still in flight.
            let most = (self.questions - request.questions_before).min(call.max_requests);
            self.open_questions = self.open_questions.saturating_sub(most);
        }
        Some(request)
    }

    /// The id of the request that an answer names: some servers send numbers back as text.
    fn named(&self, id: &RequestId) -> Option<RequestId> {
        let ids = [Some(id.clone()), numeric(id)];
        ids.into_iter().flatten().find(|id| self.requests.contains_key(id))
    }
}

/// The reason why a request of the server belongs to no call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unrouted {
    NoCall,
    Ambiguous,
    /// The server has sent more than it may.
    TooMany,
}

impl Routes {
    pub(super) fn new(strays: Arc<Strays>) -> Arc<Self> {
        Arc::new(Self {
            pending: Mutex::default(),
            strays,
            doubted: Notify::new(),
            unreadable: Mutex::default(),
            fault: OnceLock::new(),
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

    /// Counts a request of the server, and finds the calls that it may belong to, the newest one last: that of the stream on
    /// which it arrived, otherwise all calls in flight if they have the same caller and session.
    ///
    /// Together these calls may have as many requests as each of them alone.
    pub(super) fn admit(&self, origin: Option<&InboundStreamOrigin>) -> Result<Vec<Arc<CallSlot>>, Unrouted> {
        let mut pending = lock(&self.pending);
        if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            let call = pending.requests.get(id).and_then(|request| request.call.clone()).ok_or(Unrouted::NoCall)?;
            return if call.admit_requests(1) { Ok(vec![call]) } else { Err(Unrouted::TooMany) };
        }
        let numbered = pending.requests.values().filter_map(|request| Some((request.number, request.call.clone()?)));
        let mut calls: Vec<(u64, Arc<CallSlot>)> = numbered.collect();
        calls.sort_by_key(|(number, _)| *number);
        let calls: Vec<Arc<CallSlot>> = calls.into_iter().map(|(_, call)| call).collect();
        let newest = calls.last().ok_or(Unrouted::NoCall)?;
        let identity = |call: &CallSlot| (call.context.caller.clone(), call.context.session.clone());
        if calls.iter().any(|call| identity(call) != identity(newest)) {
            return Err(Unrouted::Ambiguous);
        }
        let limit = calls.iter().fold(0_usize, |limit, call| limit.saturating_add(call.max_requests));
        if pending.open_questions >= limit {
            for call in &calls {
                call.overdrawn.cancel();
            }
            return Err(Unrouted::TooMany);
        }
        pending.questions += 1;
        pending.open_questions += 1;
        Ok(calls)
    }

    /// Keeps the answer to a call until it passes the [`Tap`], and returns a short one in its place: rmcp's transport reads an
    /// event once more, type by type.
    pub(super) fn keep_answer(&self, answer: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
        let id = match &answer {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let mut pending = lock(&self.pending);
        let Some((id, named)) = id.and_then(|id| Some((id.clone(), pending.named(id)?))) else { return answer };
        match pending.requests.get_mut(&named) {
            Some(request) if request.call.is_some() => {
                // The first answer counts.
                request.answer.get_or_insert(answer);
                JsonRpcMessage::response(ServerResult::empty(()), id)
            }
            _ => answer,
        }
    }

    /// Forgets a request of the server that is not answered.
    pub(super) fn forget_inbound(&self, id: &RequestId) {
        lock(&self.pending).inbound.remove(id);
    }

    /// Records the reason of the transport's end. The first one counts.
    pub(super) fn set_fault(&self, fault: String) {
        let _ = self.fault.set(fault);
    }

    pub(super) fn fault(&self) -> Option<String> {
        self.fault.get().cloned()
    }

    /// Logs a message that cannot be read. If it is the answer to a request, by its id or because only one call is in flight, that
    /// request ends. The result is a message for rmcp, if the server waits for an answer.
    pub(super) fn drop_unreadable(&self, unreadable: Unreadable) -> Option<ServerJsonRpcMessage> {
        let Unreadable { reason, kind } = unreadable;
        self.strays.add_unreadable(&reason);
        let at = Instant::now();
        let id = match kind {
            UnreadableKind::Answer(id) => id,
            UnreadableKind::Request(id, method) => return without_params(&id, &method),
            UnreadableKind::Other => {
                *lock(&self.unreadable) = Some((at, reason));
                return None;
            }
        };
        let mut pending = lock(&self.pending);
        let id = id.or_else(|| {
            let mut calls = pending.requests.iter().filter(|(_, request)| request.call.is_some()).map(|(id, _)| id);
            calls.next().filter(|_| calls.next().is_none()).cloned()
        });
        let id = id.and_then(|id| pending.named(&id));
        match id.and_then(|id| pending.requests.get_mut(&id)) {
            Some(request) => request.doubt = Some((at, reason)),
            None => *lock(&self.unreadable) = Some((at, reason)),
        }
        drop(pending);
        self.doubted.notify_waiters();
        None
    }

    /// The answer to a request whose answer cannot be read, if no other can come.
    pub(super) fn unreadable_answer(&self, id: RequestId, reason: &str) -> ServerJsonRpcMessage {
        let text = format!("MCP server `{}`: its answer cannot be read: {reason}", self.strays.server());
        JsonRpcMessage::error(ErrorData::internal_error(text, None), Some(id))
    }

    /// Waits until an answer to a request has come that could not be read, and no other came for a moment. The result is the
    /// reason.
    pub(super) async fn doubt(&self, id: &RequestId) -> String {
        loop {
            let mut doubted = pin!(self.doubted.notified());
            doubted.as_mut().enable();
            let doubt = lock(&self.pending).requests.get(id).and_then(|request| request.doubt.clone());
            if let Some((at, reason)) = doubt {
                sleep_until(at + GRACE).await;
                return reason;
            }
            doubted.await;
        }
    }

    /// The reason why the last message since a time could not be read.
    pub(super) fn unreadable_since(&self, began: Instant) -> Option<String> {
        lock(&self.unreadable).as_ref().filter(|(at, _)| *at >= began).map(|(_, reason)| reason.clone())
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

    /// Delivers a progress report, notes a change of the list, and drops strays; every other message is for rmcp, or is answered
    /// at once.
    fn received(&self, message: ServerJsonRpcMessage) -> Received {
        let for_rmcp = match &message {
            JsonRpcMessage::Response(response) => match self.answered(Some(&response.id)) {
                Some(PendingRequest { answer: Some(kept), .. }) => return Received::ForRmcp(kept),
                request => request.is_some(),
            },
            JsonRpcMessage::Error(error) => self.answered(error.id.as_ref()).is_some(),
            JsonRpcMessage::Notification(notification) => match &notification.notification {
                ServerNotification::ProgressNotification(progress) => {
                    let call = lock(&self.pending).tokens.get(&progress.params.progress_token).cloned();
                    match call {
                        Some(call) => call.report(progress.params.clone()),
                        None => self.strays.add(),
                    }
                    false
                }
                ServerNotification::ToolListChangedNotification(_) => {
                    self.note_change();
                    false
                }
                // Servers that name an unknown method or wrong parameters.
                ServerNotification::CustomNotification(_) => {
                    self.strays.add();
                    false
                }
                ServerNotification::CancelledNotification(cancelled) => {
                    cancelled.params.request_id.iter().for_each(|id| self.forget_inbound(id));
                    true
                }
                ServerNotification::SubscriptionsAcknowledgedNotification(_) => true,
                notification => {
                    tracing::debug!(target: "toolcrib::mcp", ?notification, "notification of a server");
                    false
                }
            },
            JsonRpcMessage::Request(request) => {
                if let ServerRequest::PingRequest(_) = &request.request {
                    let pong = ClientJsonRpcMessage::response(ClientResult::empty(()), request.id.clone());
                    return Received::Answer(pong);
                }
                let inbound = &mut lock(&self.pending).inbound;
                if inbound.len() >= MAX_INBOUND || !inbound.insert(request.id.clone()) {
                    let error = refused("too many requests are open");
                    return Received::Answer(ClientJsonRpcMessage::error(error, Some(request.id.clone())));
                }
                true
            }
        };
        if for_rmcp { Received::ForRmcp(message) } else { Received::Handled }
    }

    /// Removes the request that an answer belongs to.
    fn answered(&self, id: Option<&RequestId>) -> Option<PendingRequest> {
        let mut pending = lock(&self.pending);
        let request = id.and_then(|id| pending.named(id)).and_then(|id| pending.remove(&id));
        drop(pending);
        if request.is_none() {
            self.strays.add();
        }
        request
    }
}

/// The number that an id is the text of: some servers send numbers back as text.
pub(super) fn numeric(id: &RequestId) -> Option<RequestId> {
    match id {
        RequestId::String(text) => text.parse().ok().map(RequestId::Number),
        RequestId::Number(_) => None,
    }
}

/// The outcome of a message of the server.
enum Received {
    ForRmcp(ServerJsonRpcMessage),
    Answer(ClientJsonRpcMessage),
    Handled,
}

/// A transport whose messages pass through the [`Routes`] of its connection.
pub(super) struct Tap<T> {
    inner: T,
    routes: Arc<Routes>,
    /// Room for answers that are being sent.
    replies: Arc<Semaphore>,
}

impl<T> Tap<T> {
    pub(super) fn new(inner: T, routes: Arc<Routes>) -> Self {
        Self { inner, routes, replies: Arc::new(Semaphore::new(MAX_REPLIES)) }
    }

    pub(super) fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }
}

impl<T: Transport<RoleClient>> Tap<T> {
    /// Sends an answer without waiting for it. A server that sends more requests than it takes answers gets none.
    async fn reply(&mut self, answer: ClientJsonRpcMessage) {
        let Ok(room) = self.replies.clone().try_acquire_owned() else { return self.routes.strays.add() };
        let mut sending = Box::pin(self.inner.send(answer));
        let is_sent = std::future::poll_fn(|context| Poll::Ready(sending.as_mut().poll(context).is_ready())).await;
        if !is_sent {
            tokio::spawn(async move {
                let _ = sending.await;
                drop(room);
            });
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tap<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.routes.sending(&message);
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let (sending, routes) = (self.inner.send(message), self.routes.clone());
        async move {
            let sent = sending.await;
            // Until then rmcp holds a task for it, which may take as long as a request over HTTP.
            if let Some(id) = answered {
                routes.forget_inbound(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        while let Some(message) = self.inner.receive().await {
            match self.routes.received(message) {
                Received::ForRmcp(message) => return Some(message),
                Received::Answer(answer) => self.reply(answer).await,
                Received::Handled => {}
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
        let slot = CallSlot::new(ToolContext::of("t"), 1);
        let report = |n: u32| ProgressNotificationParam::new(ProgressToken(NumberOrString::Number(1)), f64::from(n));

        (0..1000).for_each(|n| slot.report(report(n)));

        let kept: Vec<f64> = std::iter::from_fn(|| slot.take_report()).map(|report| report.progress).collect();
        assert_eq!((kept.len(), kept[0], kept[63]), (64, 936.0, 999.0));
    }

    #[test]
    fn questions_that_name_no_call_are_counted_for_all_calls_in_flight() {
        let routes = Routes::new(Strays::new("s".into(), None));
        let calls: Vec<_> = (0..3).map(|_| CallSlot::new(ToolContext::of("t"), 10)).collect();
        let start = |n: i64, call: usize| {
            lock(&routes.pending).insert(RequestId::Number(n), None, Some(calls[call].clone()));
        };
        let admitted = || (0..100).take_while(|_| routes.admit(None).is_ok()).count();

        start(0, 0);
        start(1, 1);
        let ten = (0..10).filter(|_| routes.admit(None).is_ok()).count();
        // All of them may be of the other call.
        routes.forget(&RequestId::Number(0));
        let more = admitted();
        let is_over = calls[1].overdrawn.is_cancelled() && !calls[0].overdrawn.is_cancelled();
        routes.forget(&RequestId::Number(1));
        start(2, 2);

        assert_eq!((ten, more, is_over), (10, 10, true));
        assert_eq!((admitted(), calls[2].overdrawn.is_cancelled()), (10, true));
    }

    #[test]
    fn a_call_that_asks_nothing_leaves_nothing_to_others() {
        let routes = Routes::new(Strays::new("s".into(), None));
        let call = || Some(CallSlot::new(ToolContext::of("t"), 10));
        lock(&routes.pending).insert(RequestId::Number(0), None, call());
        for quiet in 1..50 {
            lock(&routes.pending).insert(RequestId::Number(quiet), None, call());
            routes.forget(&RequestId::Number(quiet));
        }

        let admitted = (0..100).take_while(|_| routes.admit(None).is_ok()).count();

        assert_eq!(admitted, 10);
    }

    #[test]
    fn an_answer_to_a_call_is_kept_and_replaced_by_the_first_one() {
        let routes = Routes::new(Strays::new("s".into(), None));
        let id = RequestId::Number(7);
        lock(&routes.pending).insert(id.clone(), None, Some(CallSlot::new(ToolContext::of("t"), 1)));
        let error = |text: &str, id: RequestId| ServerJsonRpcMessage::error(refused(text), Some(id));

        let short = routes.keep_answer(error("first", RequestId::String("7".into())));
        let second = routes.keep_answer(error("second", id.clone()));
        let other = routes.keep_answer(error("other", RequestId::Number(8)));

        assert!(matches!(&short, JsonRpcMessage::Response(answer) if answer.id == RequestId::String("7".into())));
        assert!(matches!(&other, JsonRpcMessage::Error(answer) if answer.error.message == "other"));
        let Received::ForRmcp(JsonRpcMessage::Error(kept)) = routes.received(short) else { panic!() };
        assert_eq!(kept.error.message, "first");
        assert!(matches!(routes.received(second), Received::Handled) && routes.strays.count() == 1);
    }

    #[test]
    fn calls_of_the_same_caller_share_their_questions_and_others_do_not() {
        let routes = Routes::new(Strays::new("s".into(), None));
        let call =
            |caller: &str| Some(CallSlot::new(ToolContext { caller: Some(caller.into()), ..ToolContext::of("t") }, 1));
        assert_eq!(routes.admit(None).err(), Some(Unrouted::NoCall));

        lock(&routes.pending).insert(RequestId::Number(7), None, call("ann"));
        let newest = call("ann");
        lock(&routes.pending).insert(RequestId::Number(3), None, newest.clone());

        assert!(Arc::ptr_eq(routes.admit(None).ok().unwrap().last().unwrap(), &newest.unwrap()));
        lock(&routes.pending).insert(RequestId::Number(8), None, call("eve"));
        assert_eq!(routes.admit(None).err(), Some(Unrouted::Ambiguous));
        let exact = InboundStreamOrigin::OutboundRequest(RequestId::Number(8));
        assert_eq!(routes.admit(Some(&exact)).ok().unwrap()[0].context.caller.as_deref(), Some("eve"));
    }
}
