//! Questions of tools to the client: a form for its user, which is called elicitation, or a request to its model, which is
//! called sampling.
//!
//! Clients up to 2025-11-25 receive a request while the call goes on. Later ones receive a result that asks for input, and send the
//! call again together with it; the tool waits in [`SuspendedCalls`] meanwhile.
#![allow(deprecated, reason = "the protocol has sampling still")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use rmcp::model::{
    ClientCapabilities, ClientResult, CreateMessageRequest, CreateMessageRequestParams, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest, InputRequiredResult,
    InputResponses, ServerRequest,
};
use rmcp::{Peer, RoleServer, ServiceError};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use super::call::RunningCall;
use super::host::ClientAbilities;
use crate::bytes::{hex, random_bytes};
use crate::native::{Asker, Question, Unanswered};
use crate::sync::lock;

/// The name of the only field of a form for a schema that is not an object.
const ANSWER: &str = "answer";
/// The key of the only request in a result that asks for input.
const INPUT: &str = "question";
/// The time for which a tool waits for the call to be sent again.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// The most tools that wait at a time.
const MOST_WAITING: usize = 1000;
/// The questions that a tool may ask before the first is sent.
const BUFFERED_QUESTIONS: usize = 16;

/// A question on its way to the client, with the way back for its answer.
pub(super) struct AskedQuestion {
    inquiry: Inquiry,
    answer: oneshot::Sender<Result<Value, Unanswered>>,
}

/// A question in the terms of the protocol.
enum Inquiry {
    /// A form for the user.
    Form(Form),
    /// A request to the model.
    Model(Box<CreateMessageRequestParams>),
}

/// The form of the answer that an inquiry expects.
#[derive(Clone, Copy)]
enum AnswerForm {
    /// The content of a form; its only field if it is wrapped.
    Form { is_wrapped: bool },
    /// The message of a model.
    Message,
}

/// A question as a form.
struct Form {
    message: String,
    schema: ElicitationSchema,
    /// True if the answer is the value of the only field.
    is_wrapped: bool,
}

/// The inputs that a client says it can give.
pub(super) fn abilities_of(capabilities: Option<&ClientCapabilities>) -> ClientAbilities {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    let sampling = capabilities.and_then(|capabilities| capabilities.sampling.as_ref());
    ClientAbilities {
        forms: elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
        model: sampling.is_some(),
        model_with_tools: sampling.is_some_and(|sampling| sampling.tools.is_some()),
    }
}

/// An asker whose questions arrive at the receiver. Questions that the client cannot answer, or no form can express, are not
/// supported.
pub(super) fn asker(abilities: ClientAbilities) -> (Asker, mpsc::Receiver<AskedQuestion>) {
    let (sender, receiver) = mpsc::channel(BUFFERED_QUESTIONS);
    let asker = Asker::new(move |question| {
        let sender = sender.clone();
        async move {
            let inquiry = match question {
                Question::User { text, schema } if abilities.forms => {
                    Inquiry::Form(Form::new(text, schema).ok_or(Unanswered::NotSupported)?)
                }
                Question::Model { request } if abilities.model => Inquiry::of_model(request, abilities)?,
                Question::User { .. } | Question::Model { .. } => return Err(Unanswered::NotSupported),
            };
            let (answer, answered) = oneshot::channel();
            let gone = || Unanswered::Failed("the client is gone".to_owned());
            sender.send(AskedQuestion { inquiry, answer }).await.map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        }
    });
    (asker, receiver)
}

impl Inquiry {
    /// A request to the model of the client.
    fn of_model(request: Value, abilities: ClientAbilities) -> Result<Self, Unanswered> {
        let invalid = |reason: String| Unanswered::Failed(format!("invalid request to a model: {reason}"));
        let request: CreateMessageRequestParams =
            serde_json::from_value(request).map_err(|error| invalid(error.to_string()))?;
        request.validate().map_err(invalid)?;
        if (request.tools.is_some() || request.tool_choice.is_some()) && !abilities.model_with_tools {
            return Err(Unanswered::Failed("the model of the client does not take tools".to_owned()));
        }
        Ok(Self::Model(Box::new(request)))
    }

    fn answer_form(&self) -> AnswerForm {
        match self {
            Self::Form(form) => AnswerForm::Form { is_wrapped: form.is_wrapped },
            Self::Model(_) => AnswerForm::Message,
        }
    }

    /// Asks the client by a request of its own.
    async fn ask(self, peer: &Peer<RoleServer>) -> Result<Value, ServiceError> {
        match self {
            Self::Form(form) => {
                let result = peer.create_elicitation(form.request()).await?;
                Ok(serde_json::to_value(result).unwrap_or_default())
            }
            Self::Model(request) => {
                let request = ServerRequest::CreateMessageRequest(CreateMessageRequest::new(*request));
                // Results of other forms than rmcp knows are passed on as they are.
                Ok(match peer.send_request(request).await? {
                    ClientResult::CustomResult(result) => result.0,
                    result => serde_json::to_value(result).unwrap_or_default(),
                })
            }
        }
    }

    /// The request as a part of a result that asks for input.
    fn input_request(self) -> InputRequest {
        match self {
            Self::Form(form) => InputRequest::Elicitation(ElicitRequest::new(form.request())),
            Self::Model(request) => InputRequest::CreateMessage(CreateMessageRequest::new(*request)),
        }
    }
}

impl AnswerForm {
    /// Reads the answer of a client.
    fn read(self, answer: Value) -> Result<Value, Unanswered> {
        let invalid = || Unanswered::Failed("the client's answer is invalid".to_owned());
        match self {
            Self::Form { is_wrapped } => {
                let result = serde_json::from_value::<ElicitResult>(answer).map_err(|_| invalid())?;
                answer_of(result, is_wrapped)
            }
            Self::Message if answer["role"].is_string() && !answer["content"].is_null() => Ok(answer),
            Self::Message => Err(invalid()),
        }
    }
}

impl Form {
    /// A form for a schema; none if it is not one of an object of primitives, or of a primitive.
    fn new(message: String, schema: Value) -> Option<Self> {
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        let shown = if is_object {
            schema
        } else {
            let mut form = json!({"type": "object", "required": [ANSWER]});
            form["properties"] = Value::Object(Map::from_iter([(ANSWER.to_owned(), titled(schema))]));
            form
        };
        let schema = serde_json::from_value(shown).ok()?;
        Some(Self { message, schema, is_wrapped: !is_object })
    }

    fn request(self) -> ElicitRequestParams {
        ElicitRequestParams::FormElicitationParams { meta: None, message: self.message, requested_schema: self.schema }
    }
}

/// A schema in the form that elicitation has: single values are an enumeration of one.
fn titled(mut schema: Value) -> Value {
    if let Value::Object(entries) = &mut schema
        && let Some(only) = entries.shift_remove("const").filter(Value::is_string)
    {
        entries.insert("enum".to_owned(), json!([only]));
    }
    schema
}

/// Reads the result of a form.
fn answer_of(result: ElicitResult, is_wrapped: bool) -> Result<Value, Unanswered> {
    match (result.action, result.content) {
        (ElicitationAction::Accept, Some(Value::Object(mut content))) if is_wrapped => {
            let missing = || Unanswered::Failed(format!("the client's answer has no `{ANSWER}`"));
            content.shift_remove(ANSWER).ok_or_else(missing)
        }
        (ElicitationAction::Accept, Some(content)) if !is_wrapped => Ok(content),
        (ElicitationAction::Accept, _) => Err(Unanswered::Failed("the client's answer has no content".to_owned())),
        _ => Err(Unanswered::Declined),
    }
}

impl AskedQuestion {
    /// Asks the client while the call goes on.
    pub(super) async fn ask(self, peer: Peer<RoleServer>) {
        let form = self.inquiry.answer_form();
        let answer = match self.inquiry.ask(&peer).await {
            Ok(answer) => form.read(answer),
            Err(ServiceError::McpError(error)) => {
                Err(Unanswered::Failed(format!("the client refused: {}", error.message)))
            }
            Err(error) => Err(Unanswered::Failed(format!("the client did not answer: {error}"))),
        };
        // The tool may have ended meanwhile.
        let _ = self.answer.send(answer);
    }
}

/// The calls whose tools wait for an answer of a client that sends its calls again.
#[derive(Default)]
pub(super) struct SuspendedCalls(Mutex<HashMap<String, SuspendedCall>>);

struct SuspendedCall {
    running: RunningCall,
    form: AnswerForm,
    answer: oneshot::Sender<Result<Value, Unanswered>>,
}

impl SuspendedCalls {
    /// Suspends a call until it is sent again; returns the result that asks for the input.
    pub(super) fn suspend(
        self: &Arc<Self>,
        running: RunningCall,
        question: AskedQuestion,
    ) -> Option<InputRequiredResult> {
        let state = hex(&random_bytes::<16>().ok()?);
        let AskedQuestion { inquiry, answer } = question;
        let form = inquiry.answer_form();
        {
            let mut waiting = lock(&self.0);
            if waiting.len() >= MOST_WAITING {
                return None;
            }
            waiting.insert(state.clone(), SuspendedCall { running, form, answer });
        }
        tokio::spawn(expire(Arc::downgrade(self), state.clone()));
        let requests = [(INPUT.to_owned(), inquiry.input_request())].into();
        Some(InputRequiredResult::new(Some(requests), Some(state)))
    }

    /// Cancels all calls.
    pub(super) fn clear(&self) {
        let waiting = std::mem::take(&mut *lock(&self.0));
        drop(waiting);
    }

    /// Resumes a call with the input. A state can be used once, and only for the same call.
    pub(super) fn resume(
        &self,
        state: &str,
        (tool, arguments): (&str, &Map<String, Value>),
        input: Option<InputResponses>,
    ) -> Option<RunningCall> {
        let SuspendedCall { running, form, answer } = {
            let mut waiting = lock(&self.0);
            if !waiting.get(state)?.running.is_call_of(tool, arguments) {
                return None;
            }
            waiting.remove(state)?
        };
        let given = input.and_then(|mut input| input.remove(INPUT));
        let missing = || Err(Unanswered::Failed(format!("the client sent no answer under `{INPUT}`")));
        let _ = answer.send(given.map_or_else(missing, |given| form.read(given)));
        Some(running)
    }
}

/// Cancels a call that was not sent again in time.
async fn expire(calls: Weak<SuspendedCalls>, state: String) {
    tokio::time::sleep(LONGEST_WAIT).await;
    if let Some(calls) = calls.upgrade() {
        let expired = lock(&calls.0).remove(&state);
        drop(expired);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(schema: Value) -> Option<Value> {
        Form::new("?".to_owned(), schema).map(|form| serde_json::to_value(form.schema).unwrap())
    }

    #[test]
    fn a_primitive_is_the_only_field_of_a_form() {
        for schema in [
            json!({"type": "string"}),
            json!({"type": "boolean"}),
            json!({"type": "integer", "minimum": 1}),
            json!({"enum": ["a", "b"], "type": "string"}),
            json!({"const": "a", "type": "string"}),
        ] {
            let form = shown(schema.clone()).unwrap_or_else(|| panic!("{schema}"));

            assert_eq!(form["required"], json!(["answer"]));
            assert!(form["properties"]["answer"].is_object());
        }
    }

    #[test]
    fn an_object_of_primitives_is_a_form_and_a_nested_one_is_not() {
        let flat = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        let nested = json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}}}});

        assert_eq!(shown(flat.clone()).unwrap()["properties"], flat["properties"]);
        assert_eq!(shown(nested), None);
        assert_eq!(shown(json!({"type": "array", "items": {"type": "object"}})), None);
    }

    #[test]
    fn an_answer_is_unwrapped() {
        let mut accepted = ElicitResult::new(ElicitationAction::Accept);
        accepted.content = Some(json!({"answer": 3}));

        assert_eq!(answer_of(accepted.clone(), true), Ok(json!(3)));
        assert_eq!(answer_of(accepted, false), Ok(json!({"answer": 3})));
        assert_eq!(answer_of(ElicitResult::new(ElicitationAction::Decline), true), Err(Unanswered::Declined));
    }
}
