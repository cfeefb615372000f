//! Calls as Rust programs see them, through the crate `tracing` and whatever subscriber they have.

use tracing::field::Empty;
use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;
use tracing::{Span, info, info_span};

use super::span::{OPERATION, TYPE, key};
use super::{Outcome, ToolSpan};

/// Whether a subscriber may want to hear of calls. Without one this is a look at a static.
#[inline]
#[must_use]
pub fn is_watched() -> bool {
    LevelFilter::current() >= LevelFilter::INFO
}

/// A call under way, as a span of `tracing`. It ends when this is dropped.
#[derive(Debug)]
pub struct Watch(Span);

impl Watch {
    /// Opens the span below the current one. The fields that begin with `otel.` are for `tracing-opentelemetry`.
    #[must_use]
    pub fn open(call: &ToolSpan<'_>) -> Self {
        let span = info_span!(
            target: "toolcrib",
            "execute_tool",
            otel.name = &*call.name(),
            otel.kind = "internal",
            otel.status_code = Empty,
            otel.status_description = Empty,
            gen_ai.operation.name = OPERATION,
            gen_ai.tool.type = TYPE,
            gen_ai.tool.name = Empty,
            gen_ai.tool.call.id = Empty,
            gen_ai.tool.description = Empty,
            error.type = Empty,
            toolcrib.cancelled = Empty,
        );
        let known = call.attributes().filter(|(name, _)| *name != key::OPERATION && *name != key::TYPE);
        for (name, value) in known {
            span.record(name, value);
        }
        Self(span)
    }

    /// Makes the span the current one until the guard is dropped, which has to be before the call gives way.
    pub fn enter(&self) -> EnteredSpan {
        self.0.clone().entered()
    }

    /// Says how the call ended, in the span and by an event in it.
    pub fn end(&self, outcome: &Outcome) {
        let Some(error) = outcome.error_type() else {
            info!(target: "toolcrib", parent: &self.0, "the tool call ended");
            return;
        };
        self.0.record("otel.status_code", "ERROR");
        self.0.record(key::ERROR_TYPE, error);
        if let Some(description) = outcome.description() {
            self.0.record("otel.status_description", &*description);
        }
        if outcome.is_cancelled() {
            self.0.record(key::CANCELLED, true);
        }
        info!(target: "toolcrib", parent: &self.0, { error.type = error }, "the tool call failed");
    }
}
