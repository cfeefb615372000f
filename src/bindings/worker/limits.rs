//! The rules of the thread pool that need no thread: the order of its queue, the numbers of threads, and the growth.
//!
//! Jobs that other jobs wait for come first, the deepest ones before all others, and shallow jobs leave threads to deeper
//! ones: jobs without a waiting thread may use a half of all threads, those with one three quarters, and so on. So a tool that
//! calls a tool gets a thread, however many other tools have been called.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::pool::Work;

/// Number of threads that are started without delay and kept.
pub(super) const CORE_THREADS: usize = 8;
/// Maximum number of threads, without those that wait for another call or the reader of a generator, and abandoned ones. It is
/// raised when they stand still: then they seem to wait as well.
const MAX_ACTIVE_THREADS: usize = 256;
/// Maximum number of all threads.
pub(super) const MAX_THREADS: usize = 1024;
/// Shortest standstill after which a thread is added.
const MIN_STANDSTILL: Duration = Duration::from_millis(2);
/// Longest standstill after which a thread is added; and the standstill that is reported, if none can be added.
pub(super) const MAX_STANDSTILL: Duration = Duration::from_secs(1);
/// Standstill of all threads after which the jobs that a thread waits for are refused: the tools that use the threads may wait for
/// these jobs in a way that is not known, such as a thread of their own.
const ENDLESS_STANDSTILL: Duration = Duration::from_secs(30);
/// Length of a standstill that counts, in multiples of the last wait for the GIL.
const GIL_WAIT_FACTOR: u32 = 10;
/// Number of tools that a report names.
const NAMED_TOOLS: usize = 8;

/// A job and the thread that runs it. A thread that has gone on to another job does not have it any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RunningJob {
    /// The number of the thread.
    serial: usize,
    /// The number of the job.
    number: u64,
}

/// The queue of jobs.
#[derive(Default)]
pub(super) struct WorkQueue {
    /// Jobs that no thread waits for.
    roots: VecDeque<Arc<dyn Work>>,
    /// The others, by the number of threads that wait for them.
    nested: BTreeMap<usize, VecDeque<Arc<dyn Work>>>,
}

impl WorkQueue {
    pub(super) fn push(&mut self, work: Arc<dyn Work>) {
        match work.depth() {
            0 => self.roots.push_back(work),
            depth => self.nested.entry(depth).or_default().push_back(work),
        }
    }

    /// Removes the job of this depth that was added last.
    pub(super) fn undo_push(&mut self, depth: usize) {
        match self.nested.get_mut(&depth) {
            Some(jobs) => jobs.pop_back(),
            None => self.roots.pop_back(),
        };
    }

    /// The depth of the next job.
    pub(super) fn deepest(&self) -> Option<usize> {
        match self.nested.last_key_value() {
            Some((depth, _)) => Some(*depth),
            None => (!self.roots.is_empty()).then_some(0),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.roots.is_empty() && self.nested.is_empty()
    }

    fn len(&self) -> usize {
        self.roots.len() + self.nested.values().map(VecDeque::len).sum::<usize>()
    }

    fn pop(&mut self) -> Option<Arc<dyn Work>> {
        let Some(mut deepest) = self.nested.last_entry() else { return self.roots.pop_front() };
        let work = deepest.get_mut().pop_front();
        if deepest.get().is_empty() {
            deepest.remove();
        }
        work
    }

    pub(super) fn take_all(&mut self) -> Vec<Arc<dyn Work>> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    fn take_nested(&mut self) -> Vec<Arc<dyn Work>> {
        std::mem::take(&mut self.nested).into_values().flatten().collect()
    }
}

/// The state of a pool.
#[derive(Default)]
pub(super) struct PoolState {
    pub(super) queue: WorkQueue,
    /// Number of jobs taken, by which the supervisor notices a standstill.
    pub(super) taken: u64,
    pub(super) threads: usize,
    /// Threads that are no longer counted but have not ended yet.
    pub(super) leaving: usize,
    pub(super) idle: usize,
    /// Workers that wait for the GIL to take a job, new threads included.
    pub(super) waking: usize,
    /// Threads that wait for another call or for the reader of a generator, and those of abandoned jobs.
    held_up: usize,
    /// Threads of abandoned jobs.
    abandoned: usize,
    /// Idle workers that may stop waiting, already counted in `waking`.
    pub(super) permits: usize,
    pub(super) growth: Growth,
    pub(super) is_closed: bool,
    /// The number of the next thread.
    pub(super) serial: usize,
    /// The current job of each thread, by the thread's number.
    running: HashMap<usize, Running, ahash::RandomState>,
}

/// The job of a thread.
struct Running {
    number: u64,
    work: Weak<dyn Work>,
    /// Number of things that its thread waits for.
    holds: usize,
    is_abandoned: bool,
}

impl Running {
    fn is_held_up(&self) -> bool {
        self.holds > 0 || self.is_abandoned
    }
}

impl PoolState {
    /// Takes the next job for a thread that has ended its last one; `None` if there is none, or if the thread is needed for
    /// deeper ones.
    pub(super) fn take_work(&mut self, serial: usize) -> Option<(Arc<dyn Work>, RunningJob)> {
        self.end_job(serial);
        let depth = self.queue.deepest()?;
        if self.in_use() > self.limit(depth) {
            return None;
        }
        let work = self.queue.pop()?;
        self.taken += 1;
        let running = Running { number: self.taken, work: Arc::downgrade(&work), holds: 0, is_abandoned: false };
        self.running.insert(serial, running);
        Some((work, RunningJob { serial, number: self.taken }))
    }

    /// Makes a thread idle.
    pub(super) fn rest(&mut self, serial: usize) {
        self.end_job(serial);
        self.idle += 1;
        self.growth.is_reported = false;
    }

    fn end_job(&mut self, serial: usize) {
        if let Some(ended) = self.running.remove(&serial) {
            self.held_up -= usize::from(ended.is_held_up());
            self.abandoned -= usize::from(ended.is_abandoned);
        }
    }

    /// Counts a reason for which a thread waits. True if it is the first one.
    pub(super) fn hold(&mut self, job: RunningJob) -> bool {
        let Some(running) = self.running.get_mut(&job.serial).filter(|it| it.number == job.number) else {
            return false;
        };
        let is_first = !running.is_held_up();
        running.holds += 1;
        self.held_up += usize::from(is_first);
        is_first
    }

    /// Removes a reason for which a thread waits.
    pub(super) fn release(&mut self, job: RunningJob) {
        let Some(running) = self.running.get_mut(&job.serial).filter(|it| it.number == job.number) else { return };
        let was_held_up = running.is_held_up();
        running.holds = running.holds.saturating_sub(1);
        self.held_up -= usize::from(was_held_up && !running.is_held_up());
    }

    /// Marks the job of a thread as abandoned. True if the thread was an active one.
    pub(super) fn abandon(&mut self, job: RunningJob) -> bool {
        let running = self.running.get_mut(&job.serial);
        let Some(running) = running.filter(|it| it.number == job.number && !it.is_abandoned) else { return false };
        let is_first = !running.is_held_up();
        running.is_abandoned = true;
        self.held_up += usize::from(is_first);
        self.abandoned += 1;
        is_first
    }

    /// The jobs that are running.
    pub(super) fn running(&self) -> Vec<Arc<dyn Work>> {
        self.running.values().filter_map(|running| running.work.upgrade()).collect()
    }

    /// Number of threads that run work or are about to.
    pub(super) fn busy(&self) -> usize {
        self.threads.saturating_sub(self.idle + self.held_up)
    }

    /// Number of threads that have work which is not abandoned.
    fn in_use(&self) -> usize {
        self.threads.saturating_sub(self.idle + self.abandoned)
    }

    /// Maximum number of threads in use for which a job of this depth is started.
    fn limit(&self, depth: usize) -> usize {
        let all = MAX_THREADS.saturating_sub(self.abandoned);
        let reserved = (all / 2).checked_shr(u32::try_from(depth).unwrap_or(u32::MAX)).unwrap_or(0);
        (all - reserved + self.growth.overdraft).min(all)
    }

    /// True if a thread may be added for a job of this depth.
    pub(super) fn has_room(&self, depth: usize) -> bool {
        self.busy() < self.growth.most_active
            && self.in_use() < self.limit(depth)
            && (self.idle > 0 || self.threads < MAX_THREADS)
    }

    /// Number of threads to add after a standstill.
    pub(super) fn workers_to_add(&mut self) -> usize {
        let Some(depth) = self.queue.deepest() else { return 0 };
        let wanted = self.growth.next_step().min(self.queue.len());
        if !self.has_room(depth) {
            if self.busy() < self.growth.most_active {
                // Those that use the threads do not seem to need deeper jobs.
                self.growth.overdraft = (self.growth.overdraft + wanted).min(MAX_THREADS);
            } else if self.growth.is_reported {
                self.growth.most_active = (self.growth.most_active + wanted).min(MAX_THREADS);
            }
        }
        if !self.has_room(depth) {
            return 0;
        }
        let by_use = self.limit(depth) - self.in_use();
        wanted.min(by_use).min(self.growth.most_active - self.busy()).min(self.idle + MAX_THREADS - self.threads)
    }

    /// Takes the jobs that no thread will run, if the queue has stood still for this long and no thread can be added.
    pub(super) fn take_hopeless(&mut self, still: Duration) -> Vec<Arc<dyn Work>> {
        if self.busy() == 0 {
            self.queue.take_all()
        } else if still >= ENDLESS_STANDSTILL && self.idle == 0 && self.threads >= MAX_THREADS {
            self.queue.take_nested()
        } else {
            Vec::new()
        }
    }

    /// The report of a standstill in which this many jobs are refused.
    pub(super) fn describe(&self, refused: usize) -> String {
        let mut counts = BTreeMap::<String, usize>::new();
        for work in self.running() {
            *counts.entry(work.name().to_owned()).or_default() += 1;
        }
        let mut tools: Vec<_> = counts.into_iter().collect();
        tools.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut names = String::new();
        for (name, count) in tools.iter().take(NAMED_TOOLS) {
            let comma = if names.is_empty() { "" } else { ", " };
            let _ = write!(names, "{comma}`{name}` ({count})");
        }
        if tools.len() > NAMED_TOOLS {
            names.push_str(", and others");
        }
        let (threads, abandoned) = (self.threads, self.abandoned);
        let held = format!(
            "all {threads} worker threads are in use, {abandoned} of them by calls that have timed out or were cancelled; \
             the tools that run in them: {names}"
        );
        match refused {
            0 => format!("{} calls of synchronous tools wait for a thread: {held}", self.queue.len()),
            refused => format!("{refused} calls of synchronous tools are answered with `busy`: {held}"),
        }
    }
}

/// The state of the rule by which the pool grows.
pub(super) struct Growth {
    pub(super) has_supervisor: bool,
    pub(super) is_watching: bool,
    /// Length of a standstill after which threads are added.
    pub(super) patience: Duration,
    /// Number of threads that the next standstill adds.
    step: usize,
    /// Number of threads that may be active, which a long standstill raises.
    most_active: usize,
    /// Number of threads that jobs may take from deeper ones, which a standstill raises.
    overdraft: usize,
    /// The beginning of the present standstill.
    still_since: Option<Instant>,
    /// True if a standstill was reported since a thread was idle.
    is_reported: bool,
}

impl Default for Growth {
    fn default() -> Self {
        Growth {
            has_supervisor: false,
            is_watching: false,
            patience: MIN_STANDSTILL,
            step: 1,
            most_active: MAX_ACTIVE_THREADS,
            overdraft: 0,
            still_since: None,
            is_reported: false,
        }
    }
}

impl Growth {
    pub(super) fn record_gil_wait(&mut self, waited: Duration) {
        // Less than a millisecond is a thread switch, not contention.
        if waited < Duration::from_millis(1) {
            self.patience = MIN_STANDSTILL;
        } else {
            self.patience = (waited * GIL_WAIT_FACTOR).clamp(MIN_STANDSTILL, MAX_STANDSTILL);
            self.step = 1;
        }
    }

    /// Ends the supervision of a queue that is empty.
    pub(super) fn rest(&mut self) {
        (self.is_watching, self.step, self.still_since) = (false, 1, None);
        (self.most_active, self.overdraft) = (MAX_ACTIVE_THREADS, 0);
    }

    /// Ends a standstill, because a job was taken or is about to be.
    pub(super) fn note_progress(&mut self) {
        self.still_since = None;
    }

    /// Time for which no job has been taken, from the first time that this is asked for on.
    pub(super) fn stands_still(&mut self) -> Duration {
        self.still_since.get_or_insert_with(Instant::now).elapsed()
    }

    /// True the first time that a standstill is reported.
    pub(super) fn report(&mut self) -> bool {
        !std::mem::replace(&mut self.is_reported, true)
    }

    fn next_step(&mut self) -> usize {
        let step = self.step;
        self.step = (step * 2).min(CORE_THREADS * 8);
        step
    }
}

#[cfg(test)]
mod tests {
    use pyo3::prelude::*;

    use super::*;

    struct JobOfDepth(usize);

    impl Work for JobOfDepth {
        fn run(self: Arc<Self>, _: Python<'_>, _: RunningJob) {}

        fn refuse(self: Arc<Self>, _: Python<'_>) {}

        fn abandon(&self, _: Python<'_>) {}

        fn name(&self) -> &'static str {
            "tool"
        }

        fn depth(&self) -> usize {
            self.0
        }
    }

    fn full(in_use: usize, held_up: usize) -> PoolState {
        PoolState { threads: in_use, held_up, ..PoolState::default() }
    }

    #[test]
    fn a_contested_gil_makes_growth_reluctant_but_never_stops_it() {
        let mut growth = Growth { step: 16, ..Growth::default() };

        growth.record_gil_wait(Duration::from_micros(80));
        assert_eq!((growth.patience, growth.step), (MIN_STANDSTILL, 16));

        growth.record_gil_wait(Duration::from_millis(5));
        assert_eq!((growth.patience, growth.step), (Duration::from_millis(50), 1));

        growth.record_gil_wait(Duration::from_secs(9));
        assert_eq!((growth.patience, growth.step), (MAX_STANDSTILL, 1));
    }

    #[test]
    fn threads_that_wait_do_not_count_until_there_are_far_too_many() {
        assert!(!full(MAX_ACTIVE_THREADS, 0).has_room(0));
        assert!(full(MAX_ACTIVE_THREADS, 1).has_room(0));
        assert!(!full(MAX_THREADS, MAX_THREADS).has_room(100));
    }

    #[test]
    fn threads_that_may_wait_in_a_way_of_their_own_are_not_waited_for_endlessly() {
        let hopeless = |threads, held_up, still| -> Vec<usize> {
            let mut state = full(threads, held_up);
            for depth in [0, 1, 2, 0] {
                state.queue.push(Arc::new(JobOfDepth(depth)));
            }
            state.take_hopeless(still).iter().map(|work| work.depth()).collect()
        };

        assert!(hopeless(MAX_THREADS, 0, MAX_STANDSTILL).is_empty());
        assert!(hopeless(MAX_THREADS - 1, 0, ENDLESS_STANDSTILL).is_empty());
        assert_eq!(hopeless(MAX_THREADS, 0, ENDLESS_STANDSTILL), [1, 2]);
        assert_eq!(hopeless(MAX_THREADS, MAX_THREADS, MAX_STANDSTILL), [2, 1, 0, 0]);
    }

    #[test]
    fn every_depth_leaves_threads_to_the_next_one() {
        for depth in 0..9 {
            let used = full(0, 0).limit(depth);
            let state = full(used, used);

            assert!(!state.has_room(depth), "depth {depth}");
            assert!(state.has_room(depth + 1), "depth {depth}");
        }
    }

    #[test]
    fn abandoned_threads_leave_the_others_a_half_for_each_depth() {
        let mut state = full(600, 600);
        state.abandoned = 600;

        assert!(state.has_room(0));
        assert_eq!(state.limit(0), (MAX_THREADS - 600) / 2);

        (state.threads, state.held_up, state.abandoned) = (MAX_THREADS, MAX_THREADS, MAX_THREADS);
        assert!(!state.has_room(0));
    }
}
