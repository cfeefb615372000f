//! Values that native tools return, as responses.

use serde::Serialize;
use serde_json::Value;

use crate::call::ToolResponse;

/// Something that a native tool may return: it becomes a response as it does in a Python tool. Text stays text; other
/// values become JSON text and keep their value in the metadata.
pub trait IntoResponse {
    /// The response.
    fn into_response(self) -> ToolResponse;
}

impl IntoResponse for ToolResponse {
    fn into_response(self) -> ToolResponse {
        self
    }
}

impl IntoResponse for String {
    fn into_response(self) -> ToolResponse {
        ToolResponse::text(self)
    }
}

impl IntoResponse for &str {
    fn into_response(self) -> ToolResponse {
        ToolResponse::text(self)
    }
}

impl IntoResponse for Value {
    fn into_response(self) -> ToolResponse {
        ToolResponse::value(self)
    }
}

/// A value of any type that serde can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> ToolResponse {
        match serde_json::to_value(self.0) {
            Ok(value) => ToolResponse::value(value),
            // A map with keys that are no text, or a `Serialize` that fails: the tool's own mistake.
            Err(error) => ToolResponse::answer(&crate::call::Answer::Failed {
                message: format!("the result cannot be written as JSON: {error}"),
            }),
        }
    }
}
