//! Background tasks: the running ones, the results of finished ones, and the texts about them.

use std::time::Duration;

use indexmap::IndexMap;

use super::Code;

/// The alphabet of task ids: letters and digits that are not mistaken for one another.
pub const ID_LETTERS: &[u8; 57] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// The length of a task id: as many letters as 128 random bits need.
const ID_LENGTH: usize = 22;

/// The task id for 128 random bits.
#[must_use]
pub fn task_id(bits: u128) -> String {
    let base = ID_LETTERS.len() as u128;
    let mut rest = bits;
    let mut letters = [ID_LETTERS[0]; ID_LENGTH];
    for place in letters.iter_mut().rev() {
        *place = ID_LETTERS[usize::try_from(rest % base).unwrap_or_default()];
        rest /= base;
    }
    letters.iter().map(|letter| char::from(*letter)).collect()
}

/// The limits on finished results that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of results; the oldest one is dropped for a new one.
    pub count: usize,
    /// The maximum age of a result.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { count: 1_000, age: Duration::from_secs(60 * 60) }
    }
}

/// The background tasks of a toolkit, each with an id. `T` is a task, `R` is a result.
///
/// Times are measured from any fixed moment. A method returns the values that it removes, so that the caller can drop them
/// after it has released its lock.
#[derive(Debug)]
pub struct Board<T, R> {
    running: IndexMap<Box<str>, T>,
    /// Cancelled tasks that have not ended.
    leaving: IndexMap<Box<str>, T>,
    /// Results with the time they arrived, oldest first.
    finished: IndexMap<Box<str>, (R, Duration)>,
    limits: Limits,
    keeps_cancelled: bool,
}

impl<T, R> Default for Board<T, R> {
    fn default() -> Self {
        Self {
            running: IndexMap::new(),
            leaving: IndexMap::new(),
            finished: IndexMap::new(),
            limits: Limits::default(),
            keeps_cancelled: false,
        }
    }
}

impl<T, R> Board<T, R> {
    /// Adds a running task. Its id must be new.
    pub fn start(&mut self, id: &str, task: T) {
        self.running.insert(id.into(), task);
    }

    /// Keeps the results of cancelled tasks too, from now on.
    pub fn keep_cancelled(&mut self) {
        self.keeps_cancelled = true;
    }

    /// Stores the result of a task. Returns the task and the results that are dropped; for a cancelled task, its own result,
    /// unless such results are kept.
    pub fn finish(&mut self, id: &str, result: R, now: Duration) -> (Option<T>, Vec<R>) {
        let is_cancelled = !self.running.contains_key(id);
        let task = self.forget(id);
        if task.is_none() || (is_cancelled && !self.keeps_cancelled) {
            return (task, vec![result]);
        }
        self.finished.shift_remove(id);
        self.finished.insert(id.into(), (result, now));
        (task, self.sweep(now))
    }

    /// Removes a task that has ended without a result.
    pub fn forget(&mut self, id: &str) -> Option<T> {
        self.running.shift_remove(id).or_else(|| self.leaving.shift_remove(id))
    }

    /// Removes the results that are too old or too many, oldest first.
    pub fn sweep(&mut self, now: Duration) -> Vec<R> {
        let too_many = self.finished.len().saturating_sub(self.limits.count);
        let is_old = |(_, finished): &(R, Duration)| now.saturating_sub(*finished) > self.limits.age;
        let too_old = self.finished.values().take_while(|result| is_old(result)).count();
        self.finished.drain(..too_many.max(too_old)).map(|(_, (result, _))| result).collect()
    }

    /// Changes the limits and removes the results that exceed them.
    pub fn limit(&mut self, limits: Limits, now: Duration) -> Vec<R> {
        self.limits = limits;
        self.sweep(now)
    }

    /// Removes and returns the result of a task.
    ///
    /// # Errors
    /// If there is no result: the task is running or unknown.
    pub fn fetch(&mut self, id: &str) -> Result<R, Notice> {
        match self.finished.shift_remove(id) {
            Some((result, _)) => Ok(result),
            None if self.running.contains_key(id) => Err(Notice::Running),
            None => Err(Notice::Unknown),
        }
    }

    /// Marks a task as cancelled and returns it, so that the caller can stop it.
    ///
    /// # Errors
    /// If there is nothing to cancel: the task has finished, which keeps its result, or is unknown.
    pub fn cancel(&mut self, id: &str) -> Result<&T, Notice> {
        match self.running.shift_remove_entry(id) {
            Some((id, task)) => Ok(self.leaving.entry(id).insert_entry(task).into_mut()),
            None if self.finished.contains_key(id) => Err(Notice::Completed),
            None => Err(Notice::Unknown),
        }
    }

    /// The running task of an id.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<&T> {
        self.running.get(id)
    }

    /// The result of an id, without fetching it.
    #[must_use]
    pub fn outcome(&self, id: &str) -> Option<&R> {
        self.finished.get(id).map(|(result, _)| result)
    }

    /// The running tasks, in the order in which they were started.
    pub fn running(&self) -> impl Iterator<Item = (&str, &T)> {
        self.running.iter().map(|(id, task)| (&**id, task))
    }

    /// The cancelled tasks that have not ended.
    pub fn leaving(&self) -> impl Iterator<Item = (&str, &T)> {
        self.leaving.iter().map(|(id, task)| (&**id, task))
    }

    /// The results that were not fetched, oldest first.
    pub fn finished(&self) -> impl Iterator<Item = (&str, &R)> {
        self.finished.iter().map(|(id, (result, _))| (&**id, result))
    }
}

/// A response about a background task, with its fixed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The tool runs in the background.
    Started {
        /// The tool's name.
        tool: String,
    },
    /// The task has not finished.
    Running,
    /// The task has not finished within the time that the caller waited.
    StillRunning {
        /// That time, as the caller wrote it.
        seconds: String,
    },
    /// The task was cancelled by this request.
    Cancelled,
    /// The task was cancelled while the caller waited for it.
    CancelledMeanwhile,
    /// The task has finished and cannot be cancelled.
    Completed,
    /// The event loop of the task was closed before it finished.
    LoopClosed,
    /// There is no task of this id.
    Unknown,
}

impl Notice {
    /// The error code; `None` if the request succeeded.
    #[must_use]
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Started { .. } | Self::Cancelled => None,
            Self::Running | Self::StillRunning { .. } => Some(Code::TaskRunning),
            Self::CancelledMeanwhile => Some(Code::Interrupted),
            Self::Completed => Some(Code::TaskFinished),
            Self::LoopClosed => Some(Code::Failed),
            Self::Unknown => Some(Code::UnknownTask),
        }
    }

    /// The text for the model about the task `id`.
    #[must_use]
    pub fn text(&self, id: &str) -> String {
        match self {
            Self::Started { tool } => format!(
                "<system-reminder>Tool '{tool}' is executing asynchronously. Task ID: {id}. \
                 Use view_task('{id}') to check status, wait_task('{id}') to wait for completion, \
                 or cancel_task('{id}') to cancel the task.</system-reminder>"
            ),
            Self::Running => format!("Task {id} is still running."),
            Self::StillRunning { seconds } => {
                format!("Task {id} is still running after waiting for {seconds} seconds.")
            }
            Self::Cancelled | Self::CancelledMeanwhile => format!("Task {id} has been cancelled."),
            Self::Completed => format!("Task {id} has already completed and cannot be cancelled."),
            Self::LoopClosed => {
                "Error during async execution: the event loop was closed before the tool had finished.".to_owned()
            }
            Self::Unknown => format!("InvalidTaskIdError: Cannot find async task with ID {id}."),
        }
    }
}
