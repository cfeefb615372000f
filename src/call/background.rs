//! Calls that run in the background: which of them run, what the finished ones gave, and how long that is kept.

use std::time::Duration;

use super::Notice;
use super::queue::Queue;

/// The letters of ids: those that are not mistaken for one another when they are read.
pub const ID_LETTERS: &[u8; 57] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// How many letters an id has: as many as 128 random bits need.
const ID_LENGTH: usize = 22;

/// The id that 128 random bits stand for.
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

/// How many finished results are kept, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most results; the oldest makes room for a new one.
    pub count: usize,
    /// The greatest age of a result.
    pub age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { count: 1_000, age: Duration::from_secs(60 * 60) }
    }
}

/// What runs in the background and what came of it. `T` stands for a task, `R` is a result.
///
/// Times are measured from any fixed moment. What a method takes off the board it gives back, so that the caller drops it
/// when no lock is held.
#[derive(Debug)]
pub struct Board<T, R> {
    running: Queue<T>,
    /// Cancelled, but not yet at their end.
    leaving: Queue<T>,
    finished: Queue<(R, Duration)>,
    limits: Limits,
}

impl<T, R> Default for Board<T, R> {
    fn default() -> Self {
        Self {
            running: Queue::default(),
            leaving: Queue::default(),
            finished: Queue::default(),
            limits: Limits::default(),
        }
    }
}

impl<T, R> Board<T, R> {
    /// Notes that a task runs. Its id must be new.
    pub fn start(&mut self, id: &str, task: T) {
        self.running.push(id, task);
    }

    /// Notes what a task came to; gives back the task and the results that have to go. Of a task that was cancelled, that is
    /// its own.
    pub fn finish(&mut self, id: &str, result: R, now: Duration) -> (Option<T>, Vec<R>) {
        let Some(task) = self.running.remove(id) else { return (self.leaving.remove(id), vec![result]) };
        self.finished.push(id, (result, now));
        (Some(task), self.sweep(now))
    }

    /// Notes that a task has come to its end without a result; gives it back.
    pub fn forget(&mut self, id: &str) -> Option<T> {
        self.running.remove(id).or_else(|| self.leaving.remove(id))
    }

    /// Takes results off the board that are too old or too many, the oldest first.
    pub fn sweep(&mut self, now: Duration) -> Vec<R> {
        let mut dropped = Vec::new();
        while self.finished.len() > self.limits.count
            || self.finished.first().is_some_and(|(_, finished)| now.saturating_sub(*finished) > self.limits.age)
        {
            dropped.extend(self.finished.pop_first().map(|(result, _)| result));
        }
        dropped
    }

    /// Sets how many results are kept and how long; gives back those that have to go.
    pub fn limit(&mut self, limits: Limits, now: Duration) -> Vec<R> {
        self.limits = limits;
        self.sweep(now)
    }

    /// Answers whoever asks for the result of a task: with the result, which is then off the board, or with what there is to
    /// say instead.
    ///
    /// # Errors
    /// When there is no result: the task runs, or nobody knows it.
    pub fn fetch(&mut self, id: &str) -> Result<R, Notice> {
        match self.finished.remove(id) {
            Some((result, _)) => Ok(result),
            None if self.running.get(id).is_some() => Err(Notice::Running),
            None => Err(Notice::Unknown),
        }
    }

    /// Answers whoever wants a task cancelled: with the task, which then only has to come to its end.
    ///
    /// # Errors
    /// When there is nothing to cancel: the task is over, which leaves its result where it is, or nobody knows it.
    pub fn cancel(&mut self, id: &str) -> Result<&T, Notice> {
        match self.running.remove(id) {
            Some(task) => Ok(self.leaving.push(id, task)),
            None if self.finished.get(id).is_some() => Err(Notice::Completed),
            None => Err(Notice::Unknown),
        }
    }

    /// The running task of an id.
    #[must_use]
    pub fn task(&self, id: &str) -> Option<&T> {
        self.running.get(id)
    }

    /// The result of an id that nobody has fetched.
    #[must_use]
    pub fn outcome(&self, id: &str) -> Option<&R> {
        self.finished.get(id).map(|(result, _)| result)
    }

    /// The tasks that run, in the order they were started.
    pub fn running(&self) -> impl Iterator<Item = (&str, &T)> {
        self.running.iter()
    }

    /// The tasks that are cancelled, but not yet at their end.
    pub fn leaving(&self) -> impl Iterator<Item = (&str, &T)> {
        self.leaving.iter()
    }

    /// The results that nobody has fetched, in the order they came.
    pub fn finished(&self) -> impl Iterator<Item = (&str, &R)> {
        self.finished.iter().map(|(id, (result, _))| (id, result))
    }
}
