//! Calls of a client in the same process.
#![allow(deprecated, reason = "the protocol has log messages and sampling still")]

use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, Implementation, LoggingLevel,
    LoggingMessageNotificationParam, ProgressNotificationParam, RequestParamsMeta, SamplingCapability, SamplingMessage,
    SetLevelRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RunningService};
use rmcp::{ClientHandler, ErrorData, RoleClient, ServiceError, ServiceExt};
use serde_json::{Value, json};
use toolcrib::mcp::server::serve_connection;
use toolcrib::prelude::*;

use super::{DEADLINE, host, toolkit, until};

/// A client that records notifications and answers questions.
#[derive(Clone, Default)]
struct Recorder {
    answer: Option<Value>,
    /// The answer of its model.
    rhyme: Option<String>,
    messages: Arc<Mutex<Vec<LoggingMessageNotificationParam>>>,
    changes: Arc<Mutex<usize>>,
    progress: Arc<Mutex<Vec<ProgressNotificationParam>>>,
}

impl ClientHandler for Recorder {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.answer.is_some() {
            capabilities.elicitation = Some(rmcp::model::ElicitationCapability::default());
        }
        if self.rhyme.is_some() {
            capabilities.sampling = Some(SamplingCapability::default());
        }
        ClientConfig::new(capabilities, Implementation::new("recorder", "1"))
            .with_protocol_version(rmcp::model::ProtocolVersion::V_2025_11_25)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = request else {
            return Err(ErrorData::invalid_params("not a form", None));
        };
        assert_eq!(message, "How many?");
        let mut result = ElicitResult::new(ElicitationAction::Accept);
        result.content.clone_from(&self.answer);
        Ok(result)
    }

    async fn create_message(
        &self,
        request: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        assert_eq!(request.max_tokens, 10);
        let message = SamplingMessage::assistant_text(self.rhyme.clone().unwrap());
        Ok(CreateMessageResult::new(message, "muse".to_owned()))
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.messages.lock().unwrap().push(params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        *self.changes.lock().unwrap() += 1;
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(params);
    }
}

async fn connect(toolkit: &Toolkit, client: Recorder) -> RunningService<RoleClient, Recorder> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(theirs);
    tokio::spawn(serve_connection(host(toolkit), reader, writer));
    client.serve(ours).await.unwrap()
}

async fn called(client: &RunningService<RoleClient, Recorder>, tool: &str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    tokio::time::timeout(DEADLINE, client.call_tool(request)).await.unwrap().unwrap()
}

fn text(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| block.as_text().map(|text| text.text.clone())).collect()
}

#[tokio::test]
async fn a_client_lists_the_active_tools_with_their_schemas_and_hints() {
    let (toolkit, _) = toolkit();
    let client = connect(&toolkit, Recorder::default()).await;

    let tools = client.list_all_tools().await.unwrap();

    let names: Vec<_> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["add", "count", "sleep", "fail", "ask", "sample", "mutter", "guarded"]);
    let add = serde_json::to_value(&tools[0]).unwrap();
    assert_eq!(add["inputSchema"]["required"], json!(["a", "b"]));
    assert_eq!(add["outputSchema"]["properties"]["total"]["type"], "integer");
    assert_eq!(add["annotations"], json!({"readOnlyHint": true}));
    let info = client.peer_info().unwrap();
    assert_eq!(info.instructions.as_deref(), Some("Add things."));
    assert_eq!(info.server_info.as_ref().unwrap().version, "1.2.3");
}

#[tokio::test]
async fn a_result_has_text_and_structured_content() {
    let (toolkit, _) = toolkit();
    let client = connect(&toolkit, Recorder::default()).await;

    let result = called(&client, "add", json!({"a": 1, "b": "2"})).await;

    assert_eq!((text(&result).as_str(), result.is_error), (r#"{"total":3}"#, Some(false)));
    assert_eq!(result.structured_content, Some(json!({"total": 3})));
}

#[tokio::test]
async fn mistakes_of_the_model_are_results_and_an_unknown_tool_is_an_error() {
    let (toolkit, _) = toolkit();
    let client = connect(&toolkit, Recorder::default()).await;

    for (tool, arguments, expected) in [
        ("add", json!({"a": 1}), "b"),
        ("fail", json!({}), "the disk is full"),
        ("hidden", json!({}), "extra"),
        ("guarded", json!({}), "approv"),
    ] {
        let result = called(&client, tool, arguments).await;

        assert_eq!(result.is_error, Some(true), "{tool}");
        assert!(text(&result).contains(expected), "{tool}: {}", text(&result));
        assert_eq!(result.structured_content, None);
    }
    let unknown = client.call_tool(CallToolRequestParams::new("subtract")).await;
    let Err(ServiceError::McpError(error)) = unknown else { panic!("{unknown:?}") };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
}

#[tokio::test]
async fn a_result_that_waits_for_approval_says_so_and_keeps_its_pending_value() {
    let (toolkit, _) = toolkit();
    let client = connect(&toolkit, Recorder::default()).await;

    let result = called(&client, "guarded", json!({})).await;

    let whole = serde_json::to_string(&result).unwrap();
    assert!(!whole.contains("pending\":") && !whole.contains("signature"), "{whole}");
}

#[tokio::test]
async fn chunks_are_progress_and_the_last_response_is_the_result() {
    let (toolkit, _) = toolkit();
    let recorder = Recorder::default();
    let client = connect(&toolkit, recorder.clone()).await;

    let result = called(&client, "count", json!({})).await;

    assert_eq!(text(&result), "123");
    until(|| recorder.progress.lock().unwrap().len() == 3).await;
    let progress = recorder.progress.lock().unwrap();
    let reports: Vec<_> = progress.iter().map(|report| (report.progress, report.message.clone().unwrap())).collect();
    assert_eq!(reports, [(1.0, "1".to_owned()), (2.0, "2".to_owned()), (3.0, "3".to_owned())]);
}

#[tokio::test]
async fn a_cancelled_call_drops_the_tool() {
    let (toolkit, sleeper) = toolkit();
    let client = connect(&toolkit, Recorder::default()).await;
    let request = rmcp::model::ClientRequest::CallToolRequest(rmcp::model::CallToolRequest::new(
        CallToolRequestParams::new("sleep"),
    ));
    let running =
        client.send_cancellable_request(request, rmcp::service::PeerRequestOptions::no_options()).await.unwrap();
    sleeper.has_started().await;

    running.cancel(Some("enough".to_owned())).await.unwrap();

    sleeper.was_cancelled().await;
}

#[tokio::test]
async fn a_client_that_is_gone_cancels_its_calls() {
    let (toolkit, sleeper) = toolkit();
    let client = connect(&toolkit, Recorder::default()).await;
    let peer = client.peer().clone();
    let calling = tokio::spawn(async move { peer.call_tool(CallToolRequestParams::new("sleep")).await });
    sleeper.has_started().await;

    client.cancel().await.unwrap();

    sleeper.was_cancelled().await;
    calling.await.unwrap().unwrap_err();
}

#[tokio::test]
async fn a_question_is_answered_by_the_user_of_the_client() {
    let (toolkit, _) = toolkit();
    let client = connect(&toolkit, Recorder { answer: Some(json!({"answer": 3})), ..Recorder::default() }).await;

    let result = called(&client, "ask", json!({})).await;

    assert_eq!(text(&result), "got 3");
}

#[tokio::test]
async fn the_asker_of_the_toolkit_is_used_if_the_client_cannot_answer() {
    let (toolkit, _) = toolkit();
    let toolkit = toolkit.with_asker(toolcrib::native::Asker::new(|_| async { Ok(json!(5)) }));
    let able = connect(&toolkit, Recorder { answer: Some(json!({"answer": 3})), ..Recorder::default() }).await;
    let unable = connect(&toolkit, Recorder::default()).await;

    assert_eq!(text(&called(&able, "ask", json!({})).await), "got 3");
    assert_eq!(text(&called(&unable, "ask", json!({})).await), "got 5");
}

#[tokio::test]
async fn a_change_of_the_tools_is_notified_and_listed() {
    let (toolkit, _) = toolkit();
    let recorder = Recorder::default();
    let client = connect(&toolkit, recorder.clone()).await;
    assert_eq!(client.list_all_tools().await.unwrap().len(), 8);

    toolkit.set_active("extra", true).unwrap();

    until(|| *recorder.changes.lock().unwrap() > 0).await;
    assert_eq!(client.list_all_tools().await.unwrap().len(), 9);
    assert_eq!(text(&called(&client, "hidden", json!({})).await), "seen");
}

#[tokio::test]
async fn every_client_is_a_caller_and_a_session_of_its_own() {
    let toolkit = Toolkit::new();
    let who = NativeTool::new("who", "Names the caller.", |context: ToolContext, (): ()| async move {
        Ok(json!({"caller": context.caller.as_deref(), "session": context.session.as_deref()}))
    });
    toolkit.register(who).unwrap();
    let one = connect(&toolkit, Recorder::default()).await;
    let other = connect(&toolkit, Recorder::default()).await;

    let (first, again) = (called(&one, "who", json!({})).await, called(&one, "who", json!({})).await);
    let second = called(&other, "who", json!({})).await;

    assert_eq!(text(&first), text(&again));
    assert_ne!(text(&first), text(&second));
    assert!(text(&first).contains("mcp:recorder"));
}

#[tokio::test]
async fn a_view_keeps_its_caller_and_its_tools() {
    let (toolkit, _) = toolkit();
    let filter = Filter { names: Some(["add".into()].into_iter().collect()), ..Filter::default() };
    let view = toolkit.view(Some("guest"), filter);
    let client = connect(&view, Recorder::default()).await;

    assert_eq!(client.list_all_tools().await.unwrap().len(), 1);
    client.call_tool(CallToolRequestParams::new("count")).await.unwrap_err();
    assert_eq!(text(&called(&client, "add", json!({"a": 1, "b": 1})).await), r#"{"total":2}"#);
}

#[tokio::test]
async fn a_tool_asks_the_model_of_the_client_and_otherwise_that_of_the_toolkit() {
    let (toolkit, _) = toolkit();
    let able = connect(&toolkit, Recorder { rhyme: Some("cloak".to_owned()), ..Recorder::default() }).await;
    let unable = connect(&toolkit, Recorder::default()).await;

    assert_eq!(text(&called(&able, "sample", json!({})).await), "\"cloak\"");
    assert_eq!(text(&called(&unable, "sample", json!({})).await), "no answer: no function answers such questions");
}

#[tokio::test]
async fn a_client_gets_the_log_messages_of_the_level_that_it_sets() {
    let (toolkit, _) = toolkit();
    let recorder = Recorder::default();
    let client = connect(&toolkit, recorder.clone()).await;

    called(&client, "mutter", json!({})).await;
    until(|| recorder.messages.lock().unwrap().len() == 7).await;
    let by_default = std::mem::take(&mut *recorder.messages.lock().unwrap());
    client.set_level(SetLevelRequestParams::new(LoggingLevel::Critical)).await.unwrap();
    called(&client, "mutter", json!({})).await;
    until(|| recorder.messages.lock().unwrap().len() == 3).await;

    let levels = |messages: &[LoggingMessageNotificationParam]| -> Vec<Value> {
        messages.iter().map(|message| serde_json::to_value(message.level).unwrap()).collect()
    };
    assert_eq!(levels(&by_default)[..2], [json!("info"), json!("notice")]);
    let critical = recorder.messages.lock().unwrap().clone();
    assert_eq!(levels(&critical), [json!("critical"), json!("alert"), json!("emergency")]);
    assert_eq!((critical[0].logger.as_deref(), &critical[0].data), (Some("mutter"), &json!("at critical")));
}

#[tokio::test]
async fn a_tool_gets_the_span_of_the_client() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let (toolkit, _) = toolkit();
    let client = connect(&toolkit, Recorder::default()).await;
    let call = |parent: &str| {
        let mut request = CallToolRequestParams::new("mutter");
        request.set_traceparent(parent);
        client.call_tool(request)
    };

    let traced = call(PARENT).await.unwrap();
    let untraced = call("00-nonsense").await.unwrap();

    assert_eq!((text(&traced).as_str(), text(&untraced).as_str()), (PARENT, ""));
}
