//! Questions of a native tool to its host in the middle of a call: to the user, or to a model.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

/// A question that a tool asks while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Question {
    /// A question to the user.
    User {
        /// The question.
        text: String,
        /// The JSON Schema of the answer.
        schema: Value,
    },
    /// A request to a model, such as the `sampling/createMessage` of an MCP server.
    Model {
        /// The request, in the form that the tool and the function that answers it agree on.
        request: Value,
    },
}

/// The reason why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// The host has no function that answers such questions.
    #[error("no function answers such questions")]
    NotSupported,
    /// The user declined to answer.
    #[error("the question was declined")]
    Declined,
    /// The function failed, or its answer is invalid.
    #[error("{0}")]
    Failed(String),
}

/// The function of a host that answers the questions of its tools.
#[derive(Clone)]
pub struct Asker(Arc<dyn Fn(Question) -> BoxFuture<'static, Result<Value, Unanswered>> + Send + Sync>);

impl Asker {
    /// Makes an asker of a function.
    pub fn new<Fut>(answer: impl Fn(Question) -> Fut + Send + Sync + 'static) -> Self
    where
        Fut: Future<Output = Result<Value, Unanswered>> + Send + 'static,
    {
        Self(Arc::new(move |question| Box::pin(answer(question))))
    }

    /// The same, with another asker for the questions that this one does not support.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |question: Question| {
            let (first, other) = (self.clone(), other.clone());
            async move {
                match first.ask(question.clone()).await {
                    Err(Unanswered::NotSupported) => other.ask(question).await,
                    answer => answer,
                }
            }
        })
    }

    /// Asks a question.
    ///
    /// # Errors
    ///
    /// The reason why there is no answer.
    pub async fn ask(&self, question: Question) -> Result<Value, Unanswered> {
        (self.0)(question).await
    }
}

impl fmt::Debug for Asker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Asker").finish_non_exhaustive()
    }
}
