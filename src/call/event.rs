//! Events of calls, and the hub that delivers them to listeners. Each listener has a queue of its own; no call waits for one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::policy::rfc3339;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The call starts.
    CallStart,
    /// A response is delivered.
    Chunk,
    /// An approver is asked for permission.
    PermissionRequest,
    /// The permission is granted or denied.
    PermissionResult,
    /// The call has ended, for any reason.
    CallEnd,
    /// The call failed.
    Error,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::CallStart, Self::Chunk, Self::PermissionRequest, Self::PermissionResult, Self::CallEnd, Self::Error];

    /// The kind of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The name of the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CallStart => "call_start",
            Self::Chunk => "chunk",
            Self::PermissionRequest => "permission_request",
            Self::PermissionResult => "permission_result",
            Self::CallEnd => "call_end",
            Self::Error => "error",
        }
    }
}

/// A set of event kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    /// Every kind.
    pub const ALL: Self = Self(0b11_1111);

    /// True if the set has this kind.
    #[must_use]
    pub const fn contains(self, kind: EventKind) -> bool {
        self.0 & 1 << kind as u8 != 0
    }

    const fn bits(self) -> u8 {
        self.0
    }

    const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
}

impl FromIterator<EventKind> for Kinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | 1 << kind as u8))
    }
}

/// An event of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The kind of event.
    pub kind: EventKind,
    /// The id of the call.
    pub call: Arc<str>,
    /// The tool's name as the model wrote it, if it wrote one.
    pub tool: Option<Arc<str>>,
    /// The caller.
    pub caller: Option<Arc<str>>,
    /// The id of the session.
    pub session: Option<Arc<str>>,
    /// The agents that called each other until the call, from the outermost one.
    pub path: Vec<Arc<str>>,
    /// The time of the event.
    pub time: Timestamp,
    /// The details, which depend on the kind.
    pub data: Value,
}

impl Event {
    /// The event as a JSON object.
    #[must_use]
    pub fn to_value(&self) -> Value {
        json!({
            "type": self.kind.as_str(),
            "call_id": *self.call,
            "tool": self.tool.as_deref(),
            "caller": self.caller.as_deref(),
            "session": self.session.as_deref(),
            "path": self.path.iter().map(|agent| &**agent).collect::<Vec<_>>(),
            "time": rfc3339(self.time),
            "data": self.data,
        })
    }
}

/// A callback for a listener whose queue was empty and has an event. It must not block, and spurious calls are possible.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// A hub that delivers events to listeners. `E` is the type of an event.
///
/// Emitting copies an event into the queue of each listener that wants its kind; a full queue drops its oldest event and
/// counts it. Events are dropped and listeners are woken while no lock is held.
#[derive(Debug)]
pub struct EventHub<E = Arc<Event>> {
    state: Arc<HubState<E>>,
}

#[derive(Debug)]
struct HubState<E> {
    /// The kinds that any listener wants.
    wanted: AtomicU8,
    queues: Mutex<Arc<[Arc<ListenerQueue<E>>]>>,
}

struct ListenerQueue<E> {
    kinds: Kinds,
    size: usize,
    waker: Option<Waker>,
    backlog: Mutex<Backlog<E>>,
}

#[derive(Debug)]
struct Backlog<E> {
    events: VecDeque<E>,
    dropped: u64,
    is_closed: bool,
}

impl<E> std::fmt::Debug for ListenerQueue<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListenerQueue").field("kinds", &self.kinds).field("size", &self.size).finish_non_exhaustive()
    }
}

impl<E> Default for EventHub<E> {
    fn default() -> Self {
        Self { state: Arc::new(HubState { wanted: AtomicU8::new(0), queues: Mutex::new(Arc::new([])) }) }
    }
}

impl<E> EventHub<E> {
    /// True if there is a listener.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.state.wanted.load(Ordering::Relaxed) != 0
    }

    /// True if a listener wants events of this kind. Otherwise there is no need to make one.
    #[must_use]
    pub fn wants(&self, kind: EventKind) -> bool {
        Kinds::from_bits(self.state.wanted.load(Ordering::Relaxed)).contains(kind)
    }

    /// Adds a listener for events of some kinds, with a queue of up to `size` events.
    #[must_use]
    pub fn listen(&self, kinds: Kinds, size: usize, waker: Option<Waker>) -> Listener<E> {
        let backlog = Mutex::new(Backlog { events: VecDeque::new(), dropped: 0, is_closed: false });
        let queue = Arc::new(ListenerQueue { kinds, size: size.max(1), waker, backlog });
        self.state.change(|queues| queues.push(queue.clone()));
        Listener { queue, state: Arc::downgrade(&self.state) }
    }
}

impl<E: Clone> EventHub<E> {
    /// Delivers an event of a kind.
    pub fn publish(&self, kind: EventKind, event: &E) {
        if !self.wants(kind) {
            return;
        }
        let queues = self.state.queues.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for queue in queues.iter().filter(|queue| queue.kinds.contains(kind)) {
            queue.push(event.clone());
        }
    }
}

impl EventHub {
    /// Delivers an event.
    pub fn emit(&self, event: Event) {
        let kind = event.kind;
        if self.wants(kind) {
            self.publish(kind, &Arc::new(event));
        }
    }
}

impl<E> HubState<E> {
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<ListenerQueue<E>>>)) {
        let _old = {
            let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
            let mut changed = queues.to_vec();
            change(&mut changed);
            let wanted = changed.iter().fold(0, |wanted, queue| wanted | queue.kinds.bits());
            self.wanted.store(wanted, Ordering::Relaxed);
            std::mem::replace(&mut *queues, changed.into())
        };
    }
}

impl<E> ListenerQueue<E> {
    fn backlog(&self) -> MutexGuard<'_, Backlog<E>> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, event: E) {
        let (was_empty, _oldest) = {
            let mut backlog = self.backlog();
            if backlog.is_closed {
                drop(backlog);
                return;
            }
            let was_empty = backlog.events.is_empty();
            let oldest = if backlog.events.len() < self.size { None } else { backlog.events.pop_front() };
            backlog.dropped += u64::from(oldest.is_some());
            backlog.events.push_back(event);
            (was_empty, oldest)
        };
        if was_empty && let Some(waker) = &self.waker {
            waker();
        }
    }
}

/// A listener, which takes events from its queue. Dropping it unsubscribes it.
#[derive(Debug)]
pub struct Listener<E = Arc<Event>> {
    queue: Arc<ListenerQueue<E>>,
    state: Weak<HubState<E>>,
}

impl<E> Listener<E> {
    /// Takes the oldest event, if there is one.
    #[must_use = "the events are removed from the queue"]
    pub fn take(&self) -> Option<E> {
        self.queue.backlog().events.pop_front()
    }

    /// Takes all events, oldest first.
    #[must_use = "the events are removed from the queue"]
    pub fn take_all(&self) -> Vec<E> {
        std::mem::take(&mut self.queue.backlog().events).into()
    }

    /// True if there are no events to take.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.backlog().events.is_empty()
    }

    /// Visits all events, oldest first. Does nothing while another thread holds the queue.
    ///
    /// # Errors
    ///
    /// The first error of `visit`.
    pub fn try_each<T>(&self, visit: impl FnMut(&E) -> Result<(), T>) -> Result<(), T> {
        self.queue.backlog.try_lock().map_or(Ok(()), |backlog| backlog.events.iter().try_for_each(visit))
    }

    /// The number of events that were dropped because the queue was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.backlog().dropped
    }

    /// Unsubscribes. Events in the queue can still be taken.
    pub fn close(&self) {
        self.queue.backlog().is_closed = true;
        if let Some(state) = self.state.upgrade() {
            state.change(|queues| queues.retain(|queue| !Arc::ptr_eq(queue, &self.queue)));
        }
    }
}

impl<E> Drop for Listener<E> {
    fn drop(&mut self) {
        self.close();
        // A call that is emitting may still hold the queue; its events are dropped here.
        drop(self.take_all());
    }
}
