//! One call of a tool: a stream of its progress and its result.

use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, InputResponses, MetaObject, ProgressNotificationParam,
    RequestMetaObject,
};
use serde_json::{Map, Number, Value, json};
use tokio::time::{Instant, timeout_at};

use super::answer::answer;
use super::connection::{CLOSED, Connection, Failure, PendingAnswer};
use super::content::{answered, failed, response};
use super::message;
use super::routes::CallSlot;
use super::shared::Shared;
use super::tools::Entry;
use super::{CallOptions, redefined};
use crate::call::{ChunkMode, Reply, ToolResponse};
use crate::mcp::outline::{MAX_TREE, member_count, outline, weight_of_object};
use crate::native::{ToolContext, ToolError};

/// Maximum number of times that a server may ask for more input before it gives a result.
const MAX_ROUNDS: usize = 10;

/// A call of a tool.
pub(super) struct Call {
    shared: Arc<Shared>,
    slot: Arc<CallSlot>,
    params: CallToolRequestParams,
    /// The definition with which the tool was registered.
    pin: Option<Arc<Entry>>,
    raw: bool,
    late: bool,
    limit: Duration,
    /// The deadline and the time until it, set when the call starts.
    deadline: Option<(Instant, Duration)>,
    stage: Stage,
    rounds: usize,
    /// True if the request was sent again because the server had not received it.
    is_resent: bool,
}

enum Stage {
    Fresh,
    Waiting { connection: Arc<Connection>, answer: PendingAnswer },
}

/// A response, and the end of the call.
enum Step {
    Progress(ToolResponse),
    Last(ToolResponse),
}

impl Call {
    pub(super) fn new(
        shared: Arc<Shared>,
        tool: &str,
        context: ToolContext,
        arguments: Map<String, Value>,
        options: CallOptions,
        pin: Option<Arc<Entry>>,
    ) -> Self {
        Self {
            slot: CallSlot::new(context, shared.options.max_requests),
            params: CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments),
            pin,
            raw: options.raw,
            late: options.late,
            limit: options.timeout.unwrap_or(shared.options.call_timeout),
            deadline: None,
            stage: Stage::Fresh,
            rounds: 0,
            is_resent: false,
            shared,
        }
    }

    /// The responses. Dropping the stream cancels the call.
    pub(super) fn stream(self) -> impl Stream<Item = Result<ToolResponse, ToolError>> + Send + 'static {
        stream::unfold(Some(self), |call| async move {
            let mut call = call?;
            match call.next().await {
                Step::Progress(report) => Some((Ok(report), Some(call))),
                Step::Last(response) => Some((Ok(response.ending_stream()), None)),
            }
        })
    }

    async fn next(&mut self) -> Step {
        let (deadline, limit) = *self.deadline.get_or_insert_with(|| {
            let began = Instant::now();
            let limit = match self.slot.context.deadline {
                Some(deadline) => self.limit.min(Instant::from_std(deadline).saturating_duration_since(began)),
                None => self.limit,
            };
            (began + limit, limit)
        });
        let cancellation = self.slot.context.cancellation.clone();
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Step::Last(ToolResponse::interrupted(None)),
            step = timeout_at(deadline, self.step(deadline)) => step.unwrap_or_else(|_| {
                let (tool, seconds) = (self.name().to_owned(), limit.as_secs_f64());
                let response = ToolResponse::replying(&Reply::Timeout { tool, seconds });
                Step::Last(match self.unreadable_since(deadline - limit) {
                    Some(reason) => response.with_text(reason),
                    None => response,
                })
            }),
        }
    }

    async fn step(&mut self, deadline: Instant) -> Step {
        loop {
            let Stage::Waiting { connection, answer } = &mut self.stage else {
                match self.start(deadline).await {
                    Ok(()) => continue,
                    Err(response) => return Step::Last(response),
                }
            };
            let result = tokio::select! {
                biased;
                report = self.slot.next_report() => return Step::Progress(progress(&report)),
                () = self.slot.overdrawn.cancelled() => return Step::Last(self.overdrawn()),
                result = answer.result() => result,
            };
            let connection = connection.clone();
            if let Some(response) = self.finish(connection, result).await {
                return Step::Last(response);
            }
        }
    }

    /// Connects if necessary, checks the definition, and sends the request.
    async fn start(&mut self, deadline: Instant) -> Result<(), ToolResponse> {
        let connection = self.shared.connection(deadline).await.map_err(|error| failed(error.to_string()))?;
        if let Some(pin) = &self.pin {
            self.shared.bring_up_to_date(&connection).await.map_err(|problem| {
                failed(format!("MCP server `{}`: its tools cannot be listed: {problem}", self.shared.name))
            })?;
            let tool = || self.name().to_owned();
            match self.shared.entry(&self.params.name) {
                None => {
                    let reply = Reply::UnknownTool { name: tool(), similar: None };
                    return Err(ToolResponse::replying(&reply));
                }
                Some(entry) if entry.digest != pin.digest => {
                    let reply = Reply::Quarantined { tool: tool(), reason: redefined(&self.shared.name) };
                    return Err(ToolResponse::replying(&reply));
                }
                Some(_) => {}
            }
        }
        self.send(connection).await
    }

    async fn send(&mut self, connection: Arc<Connection>) -> Result<(), ToolResponse> {
        let size = self.params.arguments.as_ref().map_or(0, weight_of_object);
        let room = match connection.room(size).await {
            Ok(room) => room,
            Err(failure) => return self.failed(&connection, failure).map_or(Ok(()), Err),
        };
        let mut request = CallToolRequest::new(self.params.clone());
        if let Some(room) = room {
            request.extensions.insert(room);
        }
        request.extensions.insert(self.slot.clone());
        if let Some(trace) = &self.slot.context.trace {
            let mut meta = Map::new();
            trace.write(&mut meta);
            // rmcp adds the token for progress.
            request.extensions.insert(RequestMetaObject(MetaObject(meta)));
        }
        match connection.send(ClientRequest::CallToolRequest(request)).await {
            Ok(answer) => {
                self.stage = Stage::Waiting { connection, answer };
                Ok(())
            }
            Err(failure) => self.failed(&connection, failure).map_or(Ok(()), Err),
        }
    }

    /// Converts the answer of the server; none if the request was sent again.
    async fn finish(&mut self, connection: Arc<Connection>, result: Result<String, Failure>) -> Option<ToolResponse> {
        match result {
            Ok(result) if outline(&result, ["resultType"]).members == [Some("\"input_required\"")] => {
                self.supply(connection, &result).await.err()
            }
            Ok(result) => {
                self.shared.succeeded();
                let entry = self.pin.clone().or_else(|| self.shared.entry(&self.params.name));
                let response = response(&self.shared.name, &result, entry.as_deref(), self.raw);
                Some(if self.late { response } else { response.with_late_metadata() })
            }
            Err(failure) => self.failed(&connection, failure),
        }
    }

    /// Answers the questions of the server, and sends the request again with the answers.
    async fn supply(&mut self, connection: Arc<Connection>, result: &str) -> Result<(), ToolResponse> {
        self.rounds += 1;
        let server = &self.shared.name;
        if self.rounds > MAX_ROUNDS {
            return Err(failed(format!("MCP server `{server}` asked for more input {MAX_ROUNDS} times")));
        }
        let [requests, state] = outline(result, ["inputRequests", "requestState"]).members;
        if !self.slot.admit_requests(requests.map_or(0, member_count)) {
            return Err(self.overdrawn());
        }
        let invalid = |reason| failed(format!("MCP server `{server}` asked for input in an invalid way: {reason}"));
        let requests: Option<Map<String, Value>> =
            requests.map(|requests| message::parse(requests, MAX_TREE)).transpose().map_err(invalid)?;
        let mut responses = InputResponses::new();
        for (key, request) in requests.unwrap_or_default() {
            let method = request["method"].as_str().unwrap_or_default();
            let sampler = self.shared.options.sampler.as_ref();
            let answered = answer(method, &request["params"], &self.slot, sampler).await.map_err(|error| {
                failed(format!("MCP server `{}` asked for `{method}`: {}", self.shared.name, error.message))
            })?;
            responses.insert(key, answered);
        }
        self.params.input_responses = Some(responses);
        self.params.request_state = state.and_then(|state| serde_json::from_str(state).ok());
        self.send(connection).await
    }

    /// The response to a call for which the server asked too much.
    fn overdrawn(&self) -> ToolResponse {
        let (server, limit) = (&self.shared.name, self.shared.options.max_requests);
        failed(format!(
            "MCP server `{server}` sent more than {limit} questions and model requests in one call (`max_requests`)"
        ))
    }

    /// The reason why a message of the server could not be read, if there was one since a time.
    fn unreadable_since(&self, began: Instant) -> Option<String> {
        let Stage::Waiting { connection, .. } = &self.stage else { return None };
        let reason = connection.routes.unreadable_since(began)?;
        Some(format!("MCP server `{}` has sent a message that cannot be read: {reason}", self.shared.name))
    }

    /// The response to a failure; none if the call starts again, because the server has not received it.
    fn failed(&mut self, connection: &Arc<Connection>, failure: Failure) -> Option<ToolResponse> {
        let server = &self.shared.name;
        Some(match failure {
            Failure::Answered(error) => answered(error.message.into_owned()),
            Failure::Refused(reason) => failed(format!("MCP server `{server}`: {reason}")),
            Failure::Lost(reason) => {
                self.shared.lost(connection, &reason);
                failed(format!("MCP server `{server}`: {reason}"))
            }
            Failure::Unsent => {
                self.shared.lost(connection, CLOSED);
                self.stage = Stage::Fresh;
                if !std::mem::replace(&mut self.is_resent, true) {
                    return None;
                }
                failed(format!("MCP server `{server}`: {CLOSED}"))
            }
        })
    }

    /// The name by which the model called the tool.
    fn name(&self) -> &str {
        let name = &*self.slot.context.tool;
        if name.is_empty() { &self.params.name } else { name }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.slot.over.cancel();
    }
}

/// A progress report as a response, in the form of those of Python tools.
fn progress(report: &ProgressNotificationParam) -> ToolResponse {
    let (done, total) = (number(report.progress), report.total.map(number));
    let text = report.message.clone().unwrap_or_else(|| match &total {
        None => done.to_string(),
        Some(total) => format!("{done} of {total}"),
    });
    let metadata = json!({"progress": {"done": done, "total": total, "text": text}});
    ToolResponse {
        mode: ChunkMode::Progress,
        stream: true,
        is_last: false,
        metadata: Some(metadata),
        ..ToolResponse::of_text(text)
    }
}

/// A number that is an integer if it has no fraction.
fn number(value: f64) -> Value {
    /// The largest integer up to which each has a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[allow(clippy::cast_possible_truncation, reason = "checked above")]
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
