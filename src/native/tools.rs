//! Native tools that come with the crate.

use std::time::Duration;

use futures_util::stream;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use super::{NativeTool, ToolContext, ToolError};
use crate::call::{ChunkMode, ToolResponse};
use crate::policy::ToolKind;

/// The longest wait, in seconds.
const MAX_SECONDS: f64 = 86_400.0;
/// Maximum number of reports of one wait.
const MAX_REPORTS: f64 = 10_000.0;

/// The arguments of [`wait`].
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Wait {
    /// The number of seconds to wait, at most one day.
    #[schemars(range(min = 0, max = 86_400))]
    seconds: f64,
    /// The number of seconds between reports of the progress. Without it only the end is reported.
    #[serde(default)]
    #[schemars(range(min = 0.01))]
    every: Option<f64>,
}

/// A tool that waits for a number of seconds: for a build, a deployment or a rate limit that the model checks again
/// afterwards. It reports its progress if asked to, and needs no thread while it waits.
#[must_use]
pub fn wait() -> NativeTool {
    let description = "Wait for a number of seconds before going on, for example until a job has made progress and can be \
                       looked at again. Reports the progress if `every` is given.";
    NativeTool::streaming("wait", description, |_: ToolContext, wait: Wait| {
        stream::unfold(Some(WaitProgress::new(&wait)), step)
    })
    .with_kind(ToolKind::Think)
    .with_quick_start()
}

/// The progress of a wait.
struct WaitProgress {
    seconds: f64,
    every: Option<f64>,
    began: Instant,
    /// Number of reports made.
    reports: u32,
}

impl WaitProgress {
    fn new(wait: &Wait) -> Result<Self, ToolError> {
        let Wait { seconds, every } = *wait;
        if !(0.0..=MAX_SECONDS).contains(&seconds) {
            return Err(ToolError::new(format!("`seconds` must be between 0 and {MAX_SECONDS}")));
        }
        if every.is_some_and(|every| !(every > 0.0 && seconds / every <= MAX_REPORTS)) {
            return Err(ToolError::new(format!(
                "`every` must be greater than 0 and at least `seconds` / {MAX_REPORTS}"
            )));
        }
        Ok(Self { seconds, every, began: Instant::now(), reports: 0 })
    }
}

/// The next report, or the end.
async fn step(
    waiting: Option<Result<WaitProgress, ToolError>>,
) -> Option<(Result<ToolResponse, ToolError>, Option<Result<WaitProgress, ToolError>>)> {
    let mut waiting = match waiting? {
        Ok(waiting) => waiting,
        Err(error) => return Some((Err(error), None)),
    };
    let next = waiting.every.map(|every| every * f64::from(waiting.reports + 1)).filter(|at| *at < waiting.seconds);
    let at = next.unwrap_or(waiting.seconds);
    // A timer takes at least a millisecond.
    if at > 0.0 {
        sleep_until(waiting.began + Duration::from_secs_f64(at)).await;
    }
    if next.is_none() {
        let response = ToolResponse::of_text(format!("Waited {} seconds.", waiting.seconds));
        return Some((Ok(response.ending_stream()), None));
    }
    waiting.reports += 1;
    let report = ToolResponse::of_text(format!("Waited {at} of {} seconds.", waiting.seconds));
    Some((Ok(ToolResponse { mode: ChunkMode::Progress, stream: true, is_last: false, ..report }), Some(Ok(waiting))))
}
