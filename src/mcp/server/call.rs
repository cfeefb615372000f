//! One `tools/call`: the responses of the tool as notifications and a result.

use futures_util::stream::{BoxStream, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, ResultType,
};
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::handler::ServerState;
use super::host::{ClientTools, ServedCall};
use super::listing::Listing;
use super::log::{self, Messages, SessionLevel};
use super::question::{AskedQuestion, abilities_of, asker};
use crate::call::{Code, ToolResponse};
use crate::json::hash;
use crate::provider::{ToolResult, to_mcp};
use crate::trace::TraceContext;

/// A tool that runs for a client. Dropping it cancels the tool.
pub(super) struct RunningCall {
    tool: String,
    /// The hash of the arguments, by which a call that is sent again is recognised.
    arguments: [u8; 32],
    responses: BoxStream<'static, ToolResponse>,
    questions: Option<mpsc::Receiver<AskedQuestion>>,
    messages: Option<Messages>,
    /// The progress that was reported last.
    progress: Option<f64>,
}

/// The end of a call, or a question that ends it for now.
pub(super) enum CallOutcome {
    /// The last response.
    Result(ToolResponse),
    /// The client has to send the call again, with the answer.
    Question(RunningCall, AskedQuestion),
    /// The client has cancelled the call or is gone, or the server ends.
    Cancelled,
}

impl RunningCall {
    /// Starts a call.
    pub(super) fn start(
        tools: &dyn ClientTools,
        tool: String,
        arguments: Map<String, Value>,
        context: &RequestContext<RoleServer>,
        level: &SessionLevel,
    ) -> Self {
        let abilities = abilities_of(context.client_capabilities().as_ref());
        let (asker, questions) = abilities.any().then(|| asker(abilities)).unzip();
        let (logger, messages) = log::logger(context, level).unzip();
        // Only a call with questions may be sent again.
        let hash = if asker.is_some() { hash(&Value::Object(arguments.clone())) } else { [0; 32] };
        let meta = context.meta.0.0.clone();
        let trace = TraceContext::read(&meta);
        let (name, id) = (tool.clone(), context.id.to_string());
        let call = ServedCall { name, arguments, id, meta, trace, abilities, asker, logger };
        Self { tool, arguments: hash, responses: tools.call(call), questions, messages, progress: None }
    }

    /// True if it is a call of this tool with these arguments.
    pub(super) fn is_call_of(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        self.tool == tool && self.arguments == hash(&Value::Object(arguments.clone()))
    }

    /// Carries the call on until it ends, or has a question that the client can only answer by another request.
    pub(super) async fn advance(
        mut self,
        context: &RequestContext<RoleServer>,
        gone: &CancellationToken,
    ) -> CallOutcome {
        let token = context.meta.get_progress_token();
        let asks_by_result = context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28);
        let mut asking = FuturesUnordered::new();
        let mut last = None;
        loop {
            tokio::select! {
                biased;
                () = context.ct.cancelled() => return CallOutcome::Cancelled,
                () = gone.cancelled() => return CallOutcome::Cancelled,
                Some(()) = asking.next() => {}
                Some(message) = next_of(&mut self.messages) => log::notify(context, &self.tool, message).await,
                Some(question) = next_of(&mut self.questions) => {
                    if asks_by_result {
                        return CallOutcome::Question(self, question);
                    }
                    asking.push(question.ask(context.peer.clone()).boxed());
                }
                response = self.responses.next() => {
                    let Some(response) = response else {
                        // Messages of the last moment, before the result.
                        while let Some(message) = self.messages.as_mut().and_then(|messages| messages.try_recv().ok()) {
                            log::notify(context, &self.tool, message).await;
                        }
                        // A host gives at least one response; without any, the call counts as cancelled.
                        return last.map_or(CallOutcome::Cancelled, CallOutcome::Result);
                    };
                    if let Some(earlier) = last.replace(response) {
                        self.report(context, token.as_ref(), &earlier).await;
                    }
                    if last.as_ref().is_some_and(|last: &ToolResponse| !last.is_last)
                        && let Some(chunk) = last.take()
                    {
                        self.report(context, token.as_ref(), &chunk).await;
                    }
                }
            }
        }
    }

    /// Sends a response that is not the result as a notification, if the client wants any.
    async fn report(
        &mut self,
        context: &RequestContext<RoleServer>,
        token: Option<&ProgressToken>,
        response: &ToolResponse,
    ) {
        let Some(token) = token else { return };
        let reported = response.metadata.as_ref().and_then(|metadata| metadata.get("progress"));
        let number = |name: &str| reported.and_then(|progress| progress.get(name)?.as_f64());
        // Progress has to increase with each notification; a tool may report the same number with another text.
        let progress = match (number("done"), self.progress) {
            (Some(done), last) if last.is_none_or(|last| done > last) => done,
            (Some(_), last) => last.unwrap_or_default() + 0.001,
            (None, last) => last.unwrap_or_default() + 1.0,
        };
        self.progress = Some(progress);
        let mut progress = ProgressNotificationParam::new(token.clone(), progress);
        progress.total = number("total");
        progress.message = Some(response.text()).filter(|text| !text.is_empty());
        // A client that is gone is noticed by the cancellation of its requests.
        let _ = context.peer.notify_progress(progress).await;
    }
}

async fn next_of<T>(receiver: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => None,
    }
}

/// The answer to a request, from the end of its call.
pub(super) fn answer(
    outcome: CallOutcome,
    tool: &str,
    listing: Option<&Listing>,
    server: &ServerState,
) -> Result<CallToolResponse, ErrorData> {
    match outcome {
        CallOutcome::Result(response) if matches!(response.code, Some(Code::UnknownTool | Code::ToolNotAvailable)) => {
            Err(ErrorData::invalid_params(response.text(), None))
        }
        CallOutcome::Result(response) => result(&response, tool, listing, server).map(CallToolResponse::Complete),
        CallOutcome::Question(running, question) => server
            .suspended
            .suspend(running, question)
            .map(CallToolResponse::InputRequired)
            .ok_or_else(|| ErrorData::internal_error("too many calls wait for input", None)),
        CallOutcome::Cancelled => Err(cancelled()),
    }
}

/// The answer to a call that was cancelled. Only a client whose server ends reads it.
pub(super) fn cancelled() -> ErrorData {
    ErrorData::new(ErrorCode::INTERNAL_ERROR, "the call was cancelled", None)
}

/// True if a response may have structured content.
pub(super) fn may_be_structured(outcome: &CallOutcome) -> bool {
    matches!(outcome, CallOutcome::Result(response) if response.is_ok())
}

/// The result of a call.
fn result(
    response: &ToolResponse,
    tool: &str,
    listing: Option<&Listing>,
    server: &ServerState,
) -> Result<CallToolResult, ErrorData> {
    let content = Value::Array(response.content.clone());
    let is_error = !response.is_ok();
    let written =
        to_mcp(ToolResult { content: &content, value: None, is_error, id: None, is_custom: false, name: None });
    let mut result: CallToolResult = serde_json::from_value(written)
        .map_err(|error| ErrorData::internal_error(format!("the result cannot be sent: {error}"), None))?;
    result.result_type = Some(ResultType::COMPLETE);
    if let Some(output) = listing.filter(|_| !is_error).and_then(|listing| listing.output(tool)) {
        // Text has no value beside it.
        let text = || Value::String(response.text());
        let value = response.metadata.as_ref().and_then(|metadata| metadata.get("value")).cloned().unwrap_or_else(text);
        match output.structured(value) {
            Ok(structured) => result.structured_content = Some(structured),
            // Clients refuse a result of such a tool without structured content, unless it is an error.
            Err(problem) => {
                let text = format!("the result of `{tool}` does not fit the output schema of the tool: {problem}");
                if output.is_first_mismatch() {
                    server.host.warn(&text);
                }
                result.is_error = Some(true);
                result.content.push(ContentBlock::text(format!("Error: {text}")));
            }
        }
    }
    Ok(result)
}
