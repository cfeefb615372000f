//! Events of calls, and the hub that hands them to listeners: each has a queue of its own, and no call ever waits for one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::policy::rfc3339;

/// What happened to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// It starts.
    CallStart,
    /// A response is delivered.
    Chunk,
    /// Somebody is asked whether it may run.
    PermissionRequest,
    /// It is decided whether it may run.
    PermissionResult,
    /// It has ended, in whatever way.
    CallEnd,
    /// It went wrong.
    Error,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::CallStart, Self::Chunk, Self::PermissionRequest, Self::PermissionResult, Self::CallEnd, Self::Error];

    /// Reads the word for it.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The word.
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

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    /// Every kind.
    pub const ALL: Self = Self(0b11_1111);

    /// Whether a kind is among them.
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

/// One thing that happened to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The id of the call.
    pub call: Arc<str>,
    /// The tool's name, as the model wrote it; none if it wrote none.
    pub tool: Option<Arc<str>>,
    /// Who calls.
    pub caller: Option<Arc<str>>,
    /// When it happened.
    pub time: Timestamp,
    /// What there is to say about it.
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
            "time": rfc3339(self.time),
            "data": self.data,
        })
    }
}

/// Called when something is there for a listener that had nothing; it must not wait, and may come once too often.
pub type Waker = Box<dyn Fn() + Send + Sync>;

/// Hands events to listeners. `E` is the form of an event.
///
/// Emitting copies an event into the queue of each listener that wants its kind; where there is no room, the oldest goes
/// and is counted. What has to go is dropped, and whoever waits is woken, when no lock is held.
#[derive(Debug)]
pub struct EventHub<E = Arc<Event>> {
    shared: Arc<Shared<E>>,
}

#[derive(Debug)]
struct Shared<E> {
    /// Every kind that a listener wants.
    wanted: AtomicU8,
    queues: Mutex<Arc<[Arc<Queue<E>>]>>,
}

struct Queue<E> {
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

impl<E> std::fmt::Debug for Queue<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("kinds", &self.kinds).field("size", &self.size).finish_non_exhaustive()
    }
}

impl<E> Default for EventHub<E> {
    fn default() -> Self {
        Self { shared: Arc::new(Shared { wanted: AtomicU8::new(0), queues: Mutex::new(Arc::new([])) }) }
    }
}

impl<E> EventHub<E> {
    /// True if there is a listener.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.shared.wanted.load(Ordering::Relaxed) != 0
    }

    /// True if a listener wants events of this kind; only then is one worth making.
    #[must_use]
    pub fn wants(&self, kind: EventKind) -> bool {
        Kinds::from_bits(self.shared.wanted.load(Ordering::Relaxed)).contains(kind)
    }

    /// Listens to events of some kinds, of which up to `size` wait to be taken.
    #[must_use]
    pub fn listen(&self, kinds: Kinds, size: usize, waker: Option<Waker>) -> Listener<E> {
        let backlog = Mutex::new(Backlog { events: VecDeque::new(), dropped: 0, is_closed: false });
        let queue = Arc::new(Queue { kinds, size: size.max(1), waker, backlog });
        self.shared.change(|queues| queues.push(queue.clone()));
        Listener { queue, shared: Arc::downgrade(&self.shared) }
    }
}

impl<E: Clone> EventHub<E> {
    /// Tells of an event of a kind.
    pub fn tell(&self, kind: EventKind, event: &E) {
        if !self.wants(kind) {
            return;
        }
        let queues = self.shared.queues.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for queue in queues.iter().filter(|queue| queue.kinds.contains(kind)) {
            queue.push(event.clone());
        }
    }
}

impl EventHub {
    /// Tells of an event.
    pub fn emit(&self, event: Event) {
        let kind = event.kind;
        if self.wants(kind) {
            self.tell(kind, &Arc::new(event));
        }
    }
}

impl<E> Shared<E> {
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Queue<E>>>)) {
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

impl<E> Queue<E> {
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

/// The end of a queue where events are taken. When it is dropped, nothing more is kept for it.
#[derive(Debug)]
pub struct Listener<E = Arc<Event>> {
    queue: Arc<Queue<E>>,
    shared: Weak<Shared<E>>,
}

impl<E> Listener<E> {
    /// Takes the oldest event, if there is one.
    #[must_use = "nobody else gets what was taken"]
    pub fn take(&self) -> Option<E> {
        self.queue.backlog().events.pop_front()
    }

    /// Takes every event there is, oldest first.
    #[must_use = "nobody else gets what was taken"]
    pub fn take_all(&self) -> Vec<E> {
        std::mem::take(&mut self.queue.backlog().events).into()
    }

    /// Whether there is nothing to take.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.backlog().events.is_empty()
    }

    /// Looks at every event there is, oldest first, unless somebody is just changing them.
    ///
    /// # Errors
    ///
    /// Whatever `look` stops with.
    pub fn try_each<T>(&self, look: impl FnMut(&E) -> Result<(), T>) -> Result<(), T> {
        self.queue.backlog.try_lock().map_or(Ok(()), |backlog| backlog.events.iter().try_for_each(look))
    }

    /// How many events made room for newer ones.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.queue.backlog().dropped
    }

    /// Stops listening; what is there can still be taken.
    pub fn close(&self) {
        self.queue.backlog().is_closed = true;
        if let Some(shared) = self.shared.upgrade() {
            shared.change(|queues| queues.retain(|queue| !Arc::ptr_eq(queue, &self.queue)));
        }
    }
}

impl<E> Drop for Listener<E> {
    fn drop(&mut self) {
        self.close();
        // A call that is just telling may still know the queue, but not what is in it.
        drop(self.take_all());
    }
}
