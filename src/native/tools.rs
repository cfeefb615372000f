//! The native tools that come with the crate.

use std::time::Duration;

use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use super::{NativeTool, ToolContext, ToolError};
use crate::call::ToolResponse;
use crate::policy::ToolKind;

/// The longest wait, in seconds.
const LONGEST: f64 = 86_400.0;
/// The most reports of one wait.
const MOST_REPORTS: f64 = 10_000.0;

/// The arguments of [`wait`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Wait {
    /// How many seconds to wait, at most one day.
    #[schemars(range(min = 0, max = 86_400))]
    seconds: f64,
    /// Report the progress after each of so many seconds. Leave it out to hear of the end only.
    #[serde(default)]
    #[schemars(range(min = 0.01))]
    every: Option<f64>,
}

/// A tool that waits: for a build, a deployment, a rate limit or anything else that takes its time and is looked at again
/// afterwards. It reports its progress if asked to, and costs no thread while it waits.
#[must_use]
pub fn wait() -> NativeTool {
    let description = "Wait for a number of seconds before going on, for example until a job has made progress and can be \
                       looked at again. Reports the progress if `every` is given.";
    NativeTool::streaming("wait", description, |_: ToolContext, wait: Wait| {
        stream::unfold(Some(Waiting::new(&wait)), step)
    })
    .with_kind(ToolKind::Think)
}

/// A wait under way.
struct Waiting {
    seconds: f64,
    every: Option<f64>,
    began: Instant,
    /// How many reports were made.
    reports: u32,
}

impl Waiting {
    fn new(wait: &Wait) -> Result<Self, ToolError> {
        let Wait { seconds, every } = *wait;
        if !(0.0..=LONGEST).contains(&seconds) {
            return Err(ToolError::new(format!("`seconds` must be between 0 and {LONGEST}")));
        }
        if every.is_some_and(|every| !(every > 0.0 && seconds / every <= MOST_REPORTS)) {
            return Err(ToolError::new(format!(
                "`every` must be greater than 0 and at least `seconds` / {MOST_REPORTS}"
            )));
        }
        Ok(Self { seconds, every, began: Instant::now(), reports: 0 })
    }
}

/// The next report, or the end.
async fn step(
    waiting: Option<Result<Waiting, ToolError>>,
) -> Option<(Result<ToolResponse, ToolError>, Option<Result<Waiting, ToolError>>)> {
    let mut waiting = match waiting? {
        Ok(waiting) => waiting,
        Err(error) => return Some((Err(error), None)),
    };
    let next = waiting.every.map(|every| every * f64::from(waiting.reports + 1)).filter(|at| *at < waiting.seconds);
    let at = next.unwrap_or(waiting.seconds);
    // A timer takes a millisecond at least.
    if at > 0.0 {
        sleep_until(waiting.began + Duration::from_secs_f64(at)).await;
    }
    if next.is_none() {
        return Some((Ok(ToolResponse::of_text(format!("Waited {} seconds.", waiting.seconds))), None));
    }
    waiting.reports += 1;
    let report = ToolResponse::of_text(format!("Waited {at} of {} seconds.", waiting.seconds));
    Some((Ok(ToolResponse { stream: true, is_last: false, ..report }), Some(Ok(waiting))))
}
