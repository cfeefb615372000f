//! The native driver of a call, from the request to its last response. `call` has the path as decisions; here they are
//! carried out on tokio.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::host::NativeHost;
use super::run::{Failure, Run};
use super::{NativeTool, ToolContext, Toolkit};
use crate::Result;
use crate::call::{
    ApprovalRequest, CallInfo, CheckedArguments, Code, EventKind, Next, Path, Repair, Reply, ResultBudget, Spending,
    ToolCall, ToolResponse, Waiting, WholeResult, WholeText, failed_too_often,
};
use crate::policy::{Answer, Choice};
use crate::registry::{LimitReached, Registry, Tool};
use crate::trace::{Outcome, RustSpan, ToolSpan, is_watched};

/// The stream of the responses to a call, at least one.
///
/// The last response is the whole result, and only it has [`is_last`](ToolResponse::is_last). The responses of a tool that
/// streams come before it, each with its [`mode`](ToolResponse::mode).
///
/// Dropping it ends the call: the tool's future is dropped with it. A call that is ended by its
/// [`cancellation`](Self::cancellation) has a last response with the code `interrupted`.
#[must_use = "a call does nothing unless its responses are polled"]
pub struct ToolStream {
    responses: Pin<Box<dyn Stream<Item = ToolResponse> + Send>>,
    cancellation: CancellationToken,
}

impl ToolStream {
    pub(super) fn new(toolkit: Toolkit, request: ToolCall, info: CallInfo) -> Self {
        let cancellation = CancellationToken::new();
        let call = Call { toolkit, request, info, cancellation: cancellation.clone(), budget: OnceLock::new() };
        let responses = stream::once(call.start()).flatten();
        Self { responses: Box::pin(responses), cancellation }
    }

    /// The token that cancels the call, from any task or thread.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.cancellation.clone()
    }
}

impl Stream for ToolStream {
    type Item = ToolResponse;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ToolResponse>> {
        self.responses.as_mut().poll_next(context)
    }
}

impl fmt::Debug for ToolStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ToolStream").finish_non_exhaustive()
    }
}

/// A call before its tool runs.
struct Call {
    toolkit: Toolkit,
    request: ToolCall,
    info: CallInfo,
    cancellation: CancellationToken,
    /// The budget of the result, once the tool is known.
    budget: OnceLock<Option<CallBudget>>,
}

/// The end of a call before its tool has run.
type Early = Box<ToolResponse>;

impl Call {
    /// The path of a call: each stage returns its result or the response that ends the call.
    async fn start(self) -> impl Stream<Item = ToolResponse> + Send {
        let report = CallReport::open(&self);
        let prepared = match select(pin!(self.permitted()), pin!(self.cancellation.cancelled())).await {
            Either::Left((prepared, _)) => prepared,
            Either::Right(_) => Err(Box::new(ToolResponse::interrupted(None))),
        };
        let mut responding = match prepared {
            Ok((tool, arguments, repairs)) => Responding::running(&self, &tool, arguments, repairs, report),
            Err(response) => Responding::early(*response, report),
        };
        responding.budget = match self.budget.into_inner() {
            Some(budget) => budget,
            None => self.toolkit.result_budget().map(|budget| CallBudget::new(budget, false)),
        };
        stream::unfold(responding, Responding::next)
    }

    /// The stages find, admit, arguments and permission.
    async fn permitted(&self) -> Result<(NativeTool, CheckedArguments, Vec<Repair>), Early> {
        let (tool, repairs, mut next) = self.prepare()?;
        let is_kept = !tool.tags.iter().any(|tag| **tag == *ARTIFACT_TAG);
        let _ = self.budget.set(self.toolkit.budget_of(&tool).map(|budget| CallBudget::new(budget, is_kept)));
        loop {
            next = match next {
                Next::Run(arguments) => return Ok((tool.body, arguments, repairs)),
                Next::Ask(question) => {
                    let (request, waiting) = *question;
                    let answer = self.ask(request).await;
                    self.answered(&tool, waiting, answer)
                }
                Next::Pend(pending) => {
                    let reply = Reply::Pending { tool: tool.name.to_string() };
                    let response = ToolResponse::replying(&reply).with_metadata("pending", pending.to_value());
                    return Err(Box::new(response));
                }
                Next::Respond(reply) => return Err(Box::new(with_repairs(ToolResponse::replying(&reply), &repairs))),
                // Not reached: the host of this driver waits by itself.
                Next::Wait(_) => return Err(Box::new(ToolResponse::interrupted(None))),
            };
        }
    }

    /// The span of the call.
    fn described(&self) -> ToolSpan<'_> {
        let text = |text: &'_ Arc<str>| text.to_string().into();
        ToolSpan::new(Some(&self.request.name), self.request.id.as_deref(), None)
            .called_by(self.info.caller.as_ref().map(text), self.info.session_id().map(text))
    }

    /// The stages up to the first one that waits. The tool is a copy, because the registry may change while the call waits.
    fn prepare(&self) -> Result<(Tool<NativeTool>, Vec<Repair>, Next), Early> {
        let registry = self.toolkit.registry();
        let host = NativeHost::new(&self.toolkit, &registry, &self.info, None);
        let path = self.path(&registry, &host);
        let failed = |error: crate::Error| Box::new(ToolResponse::replying(&self.denied(&error)));
        let prepared = path.prepare(&self.request, &self.info);
        let prepared = prepared.map_err(failed)?;
        match (prepared.tool, prepared.next) {
            (Some(tool), next) => Ok((copy(tool), prepared.repairs, next)),
            (None, Next::Respond(reply)) => Err(Box::new(ToolResponse::replying(&reply))),
            // Not reached: a call without a tool always has a response.
            (None, _) => Err(Box::new(ToolResponse::interrupted(None))),
        }
    }

    fn path<'a>(
        &'a self,
        registry: &'a Registry<NativeTool>,
        host: &'a NativeHost<'a>,
    ) -> Path<'a, NativeTool, NativeHost<'a>> {
        Path { registry, view: self.toolkit.view.as_deref(), permissions: self.toolkit.permissions(), host }
    }

    /// Asks the approver. A panic of the approver counts as no, the cancellation of all questions as cancel.
    async fn ask(&self, request: ApprovalRequest) -> Answer {
        let state = &self.toolkit.state;
        let cancelled = self.toolkit.questions();
        let Some(approver) = state.approver() else { return Choice::No.into() };
        let tool = request.tool.clone();
        let asked = AssertUnwindSafe(async move { approver(request).await }).catch_unwind();
        match select(pin!(asked), pin!(cancelled.cancelled())).await {
            Either::Left((Ok(answer), _)) => answer,
            Either::Left((Err(_), _)) => {
                tracing::warn!(target: "toolcrib", tool, "the approver panicked; denying the call");
                Choice::No.into()
            }
            Either::Right(_) => Choice::Cancel.into(),
        }
    }

    fn answered(&self, tool: &Tool<NativeTool>, waiting: Waiting, answer: Answer) -> Next {
        let registry = self.toolkit.registry();
        let host = NativeHost::new(&self.toolkit, &registry, &self.info, Some(tool));
        let next = self.path(&registry, &host).answer(tool, &self.request, &self.info, (waiting, answer));
        next.unwrap_or_else(|error| Next::Respond(self.denied(&error)))
    }

    /// The reply to an error of the developer, or to a pending value that is refused.
    fn denied(&self, error: &crate::Error) -> Reply {
        Reply::Denied { tool: self.request.name.clone(), reason: error.to_string() }
    }
}

/// The response stage: a tool that runs, or a call that ended before.
struct Responding {
    source: ResponseSource,
    /// The result so far of a tool that streams, once there was a response.
    whole: Option<WholeResult>,
    repairs: Vec<Repair>,
    report: CallReport,
    budget: Option<CallBudget>,
}

enum ResponseSource {
    Early(Option<Early>),
    Running {
        run: Run,
        tool: Arc<str>,
        is_streaming: bool,
        cancellation: CancellationToken,
        deadline: Option<(Instant, Duration)>,
    },
    Over,
}

impl Responding {
    fn early(response: ToolResponse, report: CallReport) -> Self {
        let source = ResponseSource::Early(Some(Box::new(response)));
        Self { source, whole: None, repairs: Vec::new(), report, budget: None }
    }

    fn running(
        call: &Call,
        tool: &NativeTool,
        arguments: CheckedArguments,
        repairs: Vec<Repair>,
        report: CallReport,
    ) -> Self {
        let deadline = tool.timeout().map(|limit| (Instant::now() + limit, limit));
        let context = ToolContext {
            tool: tool.name().into(),
            call_id: call.request.id.as_deref().map(Arc::from),
            caller: call.info.caller.clone(),
            session: call.info.session_id().cloned(),
            deadline: deadline.map(|(at, _)| at.into_std()),
            // The tool ends with the call, but the call does not end with the tool.
            cancellation: call.cancellation.child_token(),
            asker: call.toolkit.asker(),
            logger: call.toolkit.logger.clone(),
            trace: call.toolkit.trace.clone(),
        };
        let run = tool.run(context, arguments.sent);
        let source = ResponseSource::Running {
            run,
            tool: tool.name().into(),
            is_streaming: tool.is_streaming(),
            cancellation: call.cancellation.clone(),
            deadline,
        };
        Self { source, whole: None, repairs, report, budget: None }
    }

    /// The next response, and the next state.
    async fn next(mut self) -> Option<(ToolResponse, Self)> {
        let (response, is_over) = match &mut self.source {
            ResponseSource::Over => return None,
            ResponseSource::Early(response) => (response.take().map(|response| *response), true),
            ResponseSource::Running { run, tool, is_streaming, cancellation, deadline } => {
                match step(run, cancellation, deadline.map(|(at, _)| at)).await {
                    Stepped::Item(Some(Ok(response))) if *is_streaming && !response.ends_stream() => {
                        self.whole.get_or_insert_default().add(&response);
                        (Some(ToolResponse { stream: true, is_last: false, ..response }), false)
                    }
                    Stepped::Item(Some(Ok(mut response))) => {
                        // A tool that streams sets the mark also on its only response. If there were others it is set below.
                        response.stream &= !*is_streaming;
                        (Some(response), true)
                    }
                    Stepped::Item(Some(Err(failure))) => {
                        self.report.failure(&failure);
                        (Some(ToolResponse::replying(&failure.reply(tool))), true)
                    }
                    // A stream has at least one response.
                    Stepped::Item(None) => {
                        (Some(self.whole.take().map_or_else(ToolResponse::default, WholeResult::into_response)), true)
                    }
                    Stepped::Cancelled => {
                        let result = self.whole.take().map(WholeResult::into_response);
                        (Some(ToolResponse::interrupted(result)), true)
                    }
                    Stepped::TimedOut => {
                        let seconds = deadline.map_or(0.0, |(_, limit)| limit.as_secs_f64());
                        (Some(ToolResponse::replying(&Reply::Timeout { tool: tool.to_string(), seconds })), true)
                    }
                }
            }
        };
        let response = if is_over {
            self.source = ResponseSource::Over;
            self.count_result(response)
        } else {
            response
        };
        let response = match &mut self.budget {
            Some(budget) => budget.cut(response?, is_over, &self.report).await,
            None => response?,
        };
        let mut response = with_repairs(response, &std::mem::take(&mut self.repairs));
        // An error in mid-stream is a part of the stream as well.
        response.stream |= self.whole.is_some();
        self.report.chunk(&response);
        Some((response, self))
    }
}

impl Responding {
    /// Counts the result of the call in its session; the failure after which the tool may not be called again says so.
    fn count_result(&self, response: Option<ToolResponse>) -> Option<ToolResponse> {
        let report = &self.report;
        let Some(session) = report.toolkit.current_session().filter(|session| session.counts_failures()) else {
            return response;
        };
        let code = response.as_ref().and_then(|last| last.code).map(Code::as_str);
        let limit = Code::is_failure(code).and_then(|failed| session.count_result(&report.tool, failed));
        match (response, limit) {
            (Some(response), Some(LimitReached::Retries(failures))) => {
                Some(response.with_text(failed_too_often(&report.tool, failures)))
            }
            (response, _) => response,
        }
    }
}

enum Stepped {
    Item(Option<<Run as Stream>::Item>),
    Cancelled,
    TimedOut,
}

/// Waits for the next response of a tool, a cancellation or the deadline.
async fn step(run: &mut Run, cancellation: &CancellationToken, deadline: Option<Instant>) -> Stepped {
    let late = pin!(async {
        match deadline {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    });
    let cancelled = pin!(cancellation.cancelled());
    let stopped = select(cancelled, late);
    // The cancellation is polled first, so that it also ends a tool that is always ready.
    match select(stopped, run.next()).await {
        Either::Left((Either::Left(_), _)) => Stepped::Cancelled,
        Either::Left((Either::Right(_), _)) => Stepped::TimedOut,
        Either::Right((item, _)) => Stepped::Item(item),
    }
}

/// A copy of a registered tool.
fn copy(tool: &Tool<NativeTool>) -> Tool<NativeTool> {
    Tool {
        name: tool.name.clone(),
        group: tool.group.clone(),
        more: tool.more.clone(),
        tags: tool.tags.clone(),
        is_agent: tool.is_agent,
        quarantine: tool.quarantine.clone(),
        memberships: tool.memberships.clone(),
        schema: tool.schema.clone(),
        body: tool.body.clone(),
    }
}

/// A response with the repairs of the arguments in its metadata.
fn with_repairs(response: ToolResponse, repairs: &[Repair]) -> ToolResponse {
    if repairs.is_empty() {
        return response;
    }
    let entry =
        |repair: &Repair| json!({"what": repair.what.as_str(), "at": repair.at.to_string(), "text": repair.text()});
    let list = repairs.iter().map(entry).collect();
    response.with_metadata("repairs", Value::Array(list))
}

/// The tag of the tools that read whole results: what they give is not kept once more.
const ARTIFACT_TAG: &str = "artifact";

/// The budget of the result of a call.
struct CallBudget {
    budget: ResultBudget,
    spending: Spending,
    /// True if the whole text of a result that is cut may be kept.
    is_kept: bool,
}

impl CallBudget {
    fn new(budget: ResultBudget, is_kept: bool) -> Self {
        Self { budget, spending: Spending::default(), is_kept }
    }

    /// The response within the budget. The whole text of the last one is kept.
    async fn cut(&mut self, response: ToolResponse, is_last: bool, report: &CallReport) -> ToolResponse {
        let whole = if is_last && self.is_kept && self.budget.is_exceeded_by(&response.texts()) {
            keep(&response, report).await
        } else {
            None
        };
        let response = match self.spending.cut(&self.budget, &response.texts(), response.mode, whole.as_deref()) {
            Some(cut) => response.with_cut(cut, whole.as_deref()),
            None => response,
        };
        response.with_structured_within(&self.budget, whole.as_deref())
    }
}

/// Keeps the whole text of a response; returns the call by which the model reads it. Without it, the result is worth having.
async fn keep(response: &ToolResponse, report: &CallReport) -> Option<String> {
    let keeper = report.toolkit.state.whole_results()?;
    let session = report.toolkit.current_session().map(|session| session.id().to_string());
    let whole = WholeText { text: response.texts().join("\n"), tool: report.tool.to_string(), session };
    match keeper.keep(whole).await {
        Ok(whole) => Some(whole),
        Err(error) => {
            tracing::warn!(target: "toolcrib", tool = &*report.tool, error, "the whole result was not kept");
            None
        }
    }
}

/// The events and the span of a call. A call whose stream is dropped counts as completed.
struct CallReport {
    toolkit: Toolkit,
    id: Arc<str>,
    tool: Arc<str>,
    watch: Option<RustSpan>,
    began: Instant,
    chunks: usize,
    /// The code of the response delivered last.
    code: Option<&'static str>,
    /// Its text, if it has a code.
    text: String,
    is_cancelled: bool,
}

impl CallReport {
    fn open(call: &Call) -> Self {
        let watch = is_watched().then(|| RustSpan::open(&call.described()));
        let report = Self {
            toolkit: call.toolkit.clone(),
            id: call.info.id.as_str().into(),
            tool: call.info.tool.as_deref().unwrap_or_default().into(),
            watch,
            began: Instant::now(),
            chunks: 0,
            code: None,
            text: String::new(),
            is_cancelled: false,
        };
        let is_resumed = call.info.resumption.is_some();
        report.emit(EventKind::CallStart, || json!({"arguments": call.request.arguments, "resumed": is_resumed}));
        report
    }

    fn chunk(&mut self, response: &ToolResponse) {
        self.chunks += 1;
        self.code = response.code.map(Code::as_str);
        self.text = if response.code.is_some() { response.text() } else { String::new() };
        self.is_cancelled = response.is_interrupted;
        self.emit(EventKind::Chunk, || {
            let ToolResponse { mode, is_last, stream, .. } = response;
            json!({
                "text": response.text(),
                "code": self.code,
                "mode": mode.as_str(),
                "is_last": is_last,
                "stream": stream,
            })
        });
    }

    /// Logs a failure of the tool's own code, unless it is the model's mistake.
    fn failure(&self, failure: &Failure) {
        let (error, text) = match failure {
            Failure::Arguments(_) => return,
            Failure::Returned(error) if error.is_mistake() => return,
            Failure::Returned(error) => (error.message(), "the tool returned an error"),
            Failure::Panicked(message) => (message.as_str(), "the tool panicked"),
        };
        tracing::warn!(target: "toolcrib", tool = &*self.tool, call = &*self.id, error, "{text}");
    }

    fn emit(&self, kind: EventKind, data: impl FnOnce() -> Value) {
        super::host::emit(&self.toolkit, kind, &self.id, &self.tool, data);
    }
}

impl Drop for CallReport {
    fn drop(&mut self) {
        let outcome = if self.is_cancelled { Outcome::Cancelled } else { Outcome::of_code(self.code) };
        let word = match &outcome {
            Outcome::Cancelled => "cancelled",
            Outcome::Completed => "completed",
            Outcome::Answered { code } => code,
            Outcome::Raised { .. } => "failed",
        };
        if let Outcome::Answered { code } = &outcome
            && !Code::is_about_permission(code)
        {
            self.emit(EventKind::Error, || json!({"error": code, "message": self.text}));
        }
        self.emit(EventKind::CallEnd, || {
            let seconds = self.began.elapsed().as_secs_f64();
            json!({"outcome": word, "code": self.code, "chunks": self.chunks, "seconds": seconds})
        });
        if let Some(watch) = &self.watch {
            watch.end(&outcome);
        }
    }
}
