//! Answers to the requests of a server: questions to the user, and requests for a model.
//!
//! They belong to a call, and are answered by the host of that call.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::join_all;
use rmcp::RoleClient;
use rmcp::model::{ClientConfig, ClientResult, CustomResult, ErrorCode, ErrorData, ServerNotification, ServerRequest};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, Service};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::Sampler;
use super::routes::{CallSlot, Routes, Unrouted};
use crate::native::{Question, Unanswered};

/// The code of a refusal by the user, as the protocol's examples have it.
const REFUSED: ErrorCode = ErrorCode(-1);

/// Maximum number of requests of a server that are answered at the same time.
const MAX_OPEN: usize = 16;

/// The side of the client that answers the server.
pub(super) struct Answerer {
    routes: Arc<Routes>,
    sampler: Option<Sampler>,
    config: ClientConfig,
    open: Semaphore,
}

impl Answerer {
    pub(super) fn new(routes: Arc<Routes>, sampler: Option<Sampler>, config: ClientConfig) -> Self {
        Self { routes, sampler, config, open: Semaphore::new(MAX_OPEN) }
    }
}

impl Service<RoleClient> for Answerer {
    async fn handle_request(
        &self,
        request: ServerRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<ClientResult, ErrorData> {
        let request = serde_json::to_value(&request).unwrap_or_default();
        let (method, params) = (request["method"].as_str().unwrap_or_default(), &request["params"]);
        let is_for_call = matches!(method, "elicitation/create" | "sampling/createMessage");
        let answer = if is_for_call {
            let _open = self.open.try_acquire().map_err(|_| refused("too many requests are open"))?;
            let calls = self.routes.admit(context.extensions.get::<InboundStreamOrigin>()).map_err(unrouted)?;
            let call = calls.last().ok_or_else(|| unrouted(Unrouted::NoCall))?;
            let over = join_all(calls.iter().map(|call| call.over.cancelled()));
            tokio::select! {
                answer = answer(method, params, call, self.sampler.as_ref()) => answer,
                _ = over => Err(refused("the call has ended")),
                () = self.routes.lost.cancelled() => Err(refused("the connection has ended")),
                () = context.ct.cancelled() => Err(refused("the request was cancelled")),
            }
        } else if method == "roots/list" {
            Ok(json!({"roots": []}))
        } else {
            Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, Cow::Owned(method.to_owned()), None))
        };
        answer.map(|answer| ClientResult::CustomResult(CustomResult(answer)))
    }

    async fn handle_notification(
        &self,
        _: ServerNotification,
        _: NotificationContext<RoleClient>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}

/// Answers a request of the server that belongs to a call.
pub(super) async fn answer(
    method: &str,
    params: &Value,
    call: &CallSlot,
    sampler: Option<&Sampler>,
) -> Result<Value, ErrorData> {
    match (method, sampler) {
        ("elicitation/create", _) => {
            check_fields(params, &QUESTION)?;
            Ok(elicit(params, call).await)
        }
        ("sampling/createMessage", Some(sampler)) => {
            check_fields(params, &MODEL_REQUEST)?;
            sampler(call.context.clone(), params.clone()).await.map_err(|reason| refused(&reason))
        }
        ("roots/list", _) => Ok(json!({"roots": []})),
        _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, Cow::Owned(format!("{method} is not supported")), None)),
    }
}

/// The type of a field, and its name for people.
type Field = (&'static str, fn(&Value) -> bool, &'static str);

const TEXT: &str = "text";

/// The fields of a question to the user that are read here, and those that its asker relies on.
const QUESTION: [Field; 2] = [
    ("message", Value::is_string, TEXT),
    ("requestedSchema", |schema| schema.is_null() || schema.is_object(), "an object"),
];

/// The fields of a request to a model, which a sampler relies on.
const MODEL_REQUEST: [Field; 7] = [
    ("messages", |messages| all(messages, is_message), "a list of messages with `role` and `content`"),
    ("maxTokens", |tokens| tokens.is_null() || tokens.is_u64(), "a whole number"),
    ("systemPrompt", |prompt| prompt.is_null() || prompt.is_string(), TEXT),
    ("temperature", |temperature| temperature.is_null() || temperature.is_number(), "a number"),
    ("stopSequences", |texts| texts.is_null() || all(texts, Value::is_string), "a list of texts"),
    ("modelPreferences", |preferences| preferences.is_null() || preferences.is_object(), "an object"),
    ("tools", |tools| tools.is_null() || all(tools, Value::is_object), "a list of objects"),
];

fn all(list: &Value, is_valid: fn(&Value) -> bool) -> bool {
    list.as_array().is_some_and(|items| items.iter().all(is_valid))
}

fn is_message(message: &Value) -> bool {
    message["role"].is_string() && (message["content"].is_object() || message["content"].is_array())
}

/// Refuses a request with a field of the wrong type: functions of the program are called with them.
fn check_fields(params: &Value, fields: &[Field]) -> Result<(), ErrorData> {
    match fields.iter().find(|(name, is_valid, _)| !is_valid(&params[*name])) {
        Some((name, _, expected)) => Err(ErrorData::invalid_params(format!("`{name}` must be {expected}"), None)),
        None => Ok(()),
    }
}

/// Asks the user.
async fn elicit(params: &Value, call: &CallSlot) -> Value {
    // A page that the user should open is not shown: the model could not tell which one.
    if params["mode"] == "url" {
        return json!({"action": "decline"});
    }
    let text = params["message"].as_str().unwrap_or_default().to_owned();
    let schema = params.get("requestedSchema").filter(|schema| schema.is_object()).cloned();
    let schema = schema.unwrap_or_else(|| json!({"type": "object"}));
    let defaults = defaults_of(&schema);
    match call.context.ask(Question::User { text, schema }).await {
        Ok(Value::Object(content)) => {
            let content: Map<String, Value> = defaults.into_iter().chain(content).collect();
            json!({"action": "accept", "content": content})
        }
        Ok(_) | Err(Unanswered::Failed(_)) => json!({"action": "cancel"}),
        Err(Unanswered::Declined | Unanswered::NotSupported) => json!({"action": "decline"}),
    }
}

/// The defaults of the fields that a form has: a field that the user leaves out has its default.
fn defaults_of(schema: &Value) -> Map<String, Value> {
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone()))).collect()
}

/// A refusal of a request of the server.
pub(super) fn refused(reason: &str) -> ErrorData {
    ErrorData::new(REFUSED, Cow::Owned(reason.to_owned()), None)
}

fn unrouted(reason: Unrouted) -> ErrorData {
    refused(match reason {
        Unrouted::NoCall => "no call is in progress that this request could belong to",
        Unrouted::Ambiguous => {
            "calls of several callers are in progress, and the request does not say to which it belongs"
        }
        Unrouted::TooMany => "the call has asked for too many answers",
    })
}
