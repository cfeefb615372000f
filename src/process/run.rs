//! One run of a program: a task that drains its output, whatever its consumer does, until the program and all its processes
//! have ended.

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::code_file::CodeFile;
use super::environment::Surroundings;
use super::options::Settings;
use super::output::{Excerpt, decode};
use super::supervised::Supervised;
use crate::native::run::blocking;

/// The time in which the output of a program is read after its end.
const DRAIN: Duration = Duration::from_secs(2);
/// The time for which output is collected before it becomes an event. Programs that end in that time have no such events.
const INTERVAL: Duration = Duration::from_millis(200);
/// Bytes of output in one event; of a longer one, the middle is omitted.
const EVENT_BYTES: usize = 32 * 1024;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// A time that never comes.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A program to run.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) arguments: Vec<OsString>,
    pub(super) timeout: Duration,
    /// A file that is removed after its end, with its folder and everything in it.
    pub(super) code: Option<CodeFile>,
}

/// The end of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Report {
    /// The exit code, or the negative number of the signal.
    Ended(i32),
    /// It could not be started.
    Failed(String),
}

/// An event of a run.
#[derive(Debug)]
pub(super) enum Event {
    /// New text of the output with this number: the standard output, or that of errors.
    Output(usize, String),
    /// The end, after which nothing follows.
    End(Outcome),
}

/// The result of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) report: Report,
    pub(super) has_timed_out: bool,
    /// The output and the errors.
    pub(super) outputs: [Excerpt; 2],
}

impl Outcome {
    fn failed(reason: String) -> Self {
        Self { report: Report::Failed(reason), has_timed_out: false, outputs: [Excerpt::new(0), Excerpt::new(0)] }
    }
}

/// Starts a program in the current tokio runtime. It ends when the receiver is dropped.
pub(super) fn start(surroundings: Surroundings, settings: Arc<Settings>, program: Program) -> Receiver<Event> {
    let (events, receiver) = mpsc::channel(2);
    tokio::spawn(async move {
        let (outcome, child) = run(&surroundings, &settings, &program, &events).await;
        if let Some(folder) = program.code.as_ref().and_then(CodeFile::left_folder) {
            // A link in its place is removed itself, and none below it is followed.
            let _ = blocking(move || std::fs::remove_dir_all(folder)).await;
        }
        if let Some(outcome) = outcome {
            let _ = events.send(Event::End(outcome)).await;
        }
        if let Some(child) = child {
            child.end().await;
        }
    });
    receiver
}

/// Runs a program to its end. Returns the result, unless the consumer is gone before, and the supervisor, which is left to be
/// reaped.
async fn run(
    surroundings: &Surroundings,
    settings: &Settings,
    program: &Program,
    events: &Sender<Event>,
) -> (Option<Outcome>, Option<Supervised>) {
    let arguments: Vec<_> = program.arguments.iter().map(AsRef::as_ref).collect();
    let deadline = Instant::now() + program.timeout.min(FOREVER);
    let start = timeout_at(deadline, Supervised::start(surroundings, settings, &arguments, program.code.as_ref()));
    let started = tokio::select! {
        () = events.closed() => return (None, None),
        started = start => started.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
    };
    let (mut child, output, errors) = match started {
        Ok(started) => started,
        Err(error) => return (Some(Outcome::failed(error.to_string())), None),
    };
    let limit = settings.programs.limits.output_bytes;
    let (mut output, mut errors) = (Output::new(output, limit), Output::new(errors, limit));
    let (mut report, mut has_timed_out) = (None, false);
    // First the timeout, then the end of the time for the rest.
    let mut until = deadline;
    let mut next_event: Option<Instant> = None;
    loop {
        if report.is_some() && output.has_ended && errors.has_ended {
            break;
        }
        if next_event.is_none() && output.news.len() + errors.news.len() > 0 {
            next_event = Some(Instant::now() + INTERVAL);
        }
        tokio::select! {
            () = events.closed() => {
                child.end().await;
                return (None, None);
            }
            () = sleep_until(until) => {
                if report.is_some() || has_timed_out {
                    break;
                }
                has_timed_out = true;
                child.stop();
                until = Instant::now() + DRAIN;
            }
            () = sleep_until(next_event.unwrap_or(until)), if next_event.is_some() && !has_timed_out && report.is_none() => {
                next_event = None;
                output.send_news(0, events);
                errors.send_news(1, events);
            }
            ended = child.report(), if report.is_none() => {
                report = Some(ended);
                if !has_timed_out {
                    until = Instant::now() + DRAIN;
                }
            }
            () = output.read(), if !output.has_ended => {}
            () = errors.read(), if !errors.has_ended => {}
        }
    }
    // Without a report the program could not be killed in time, and its supervisor goes on trying.
    let report = report.unwrap_or(Report::Ended(-1));
    (Some(Outcome { report, has_timed_out, outputs: [output.finish(), errors.finish()] }), Some(child))
}

/// One output of a program.
struct Output<R> {
    pipe: R,
    /// Bytes that are not decoded yet.
    buffer: Vec<u8>,
    has_ended: bool,
    kept: Excerpt,
    /// The text since the last event.
    news: Excerpt,
}

impl<R: AsyncRead + Unpin> Output<R> {
    fn new(pipe: R, limit: usize) -> Self {
        Self {
            pipe,
            buffer: Vec::with_capacity(READ_BYTES),
            has_ended: false,
            kept: Excerpt::new(limit),
            news: Excerpt::new(EVENT_BYTES),
        }
    }

    /// Reads once. It may be dropped and called again.
    async fn read(&mut self) {
        self.has_ended = !matches!(self.pipe.read_buf(&mut self.buffer).await, Ok(count) if count > 0);
        let Self { buffer, has_ended, kept, news, .. } = self;
        decode(buffer, *has_ended, |text| {
            kept.push(text);
            news.push(text);
        });
    }

    /// Sends the new text of the output with this number. A consumer that is behind gets it with the next event.
    fn send_news(&mut self, number: usize, events: &Sender<Event>) {
        if self.news.len() > 0
            && let Ok(place) = events.try_reserve()
        {
            let mut text = String::new();
            std::mem::replace(&mut self.news, Excerpt::new(EVENT_BYTES)).append_to(&mut text);
            place.send(Event::Output(number, text));
        }
    }

    fn finish(mut self) -> Excerpt {
        decode(&mut self.buffer, true, |text| self.kept.push(text));
        self.kept
    }
}
