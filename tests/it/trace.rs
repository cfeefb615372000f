//! Traces of calls, also with a real subscriber.

#![allow(clippy::unwrap_used)]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use proptest::prelude::*;
use serde_json::{Map, Value};
use toolcrib::call::{Code, ToolCall};
use toolcrib::native::{NativeTool, ToolContext, ToolError, Toolkit};
use toolcrib::trace::{Outcome, RustSpan, ToolSpan, TraceContext, is_watched};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

type Fields = BTreeMap<String, String>;

/// The records of a subscriber: the fields of each closed span, with its parent's name, and those of each event.
#[derive(Default, Clone)]
struct Heard(Arc<Mutex<Vec<Fields>>>);

impl Heard {
    fn add(&self, fields: Fields) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(fields);
    }

    fn all(&self) -> Vec<Fields> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Default)]
struct Reader(Fields);

impl Visit for Reader {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Heard {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut reader = Reader::default();
        attributes.record(&mut reader);
        if let Some(span) = context.span(id) {
            let parent = span.parent().map(|parent| parent.name().to_owned());
            reader.0.insert("parent".to_owned(), parent.unwrap_or_default());
            span.extensions_mut().insert(reader);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(reader) = span.extensions_mut().get_mut::<Reader>()
        {
            values.record(reader);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut reader = Reader::default();
        event.record(&mut reader);
        let span = context.event_span(event).map(|span| span.name().to_owned());
        reader.0.insert("in".to_owned(), span.unwrap_or_default());
        self.add(reader.0);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if let Some(span) = context.span(&id)
            && let Some(reader) = span.extensions_mut().remove::<Reader>()
        {
            self.add(reader.0);
        }
    }
}

fn fields<const N: usize>(fields: [(&str, &str); N]) -> Fields {
    fields.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn heard(call: impl FnOnce()) -> Vec<Fields> {
    let heard = Heard::default();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(heard.clone()), call);
    heard.all()
}

#[test]
fn a_span_is_named_after_its_tool_and_says_what_is_known() {
    let span = ToolSpan::new(Some("add"), Some("call-1"), Some(Cow::Borrowed("Add two numbers.")));

    let attributes: Vec<_> = span.attributes().collect();

    assert_eq!(span.name(), "execute_tool add");
    assert_eq!(
        attributes,
        [
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.type", "function"),
            ("gen_ai.tool.name", "add"),
            ("gen_ai.tool.call.id", "call-1"),
            ("gen_ai.tool.description", "Add two numbers."),
        ]
    );
}

#[test]
fn what_is_not_known_is_left_out() {
    let span = ToolSpan::new(None, Some(""), None);

    assert_eq!(span.name(), "execute_tool");
    assert_eq!(span.attributes().count(), 2);
}

#[test]
fn an_outcome_tells_its_error_type() {
    let raised = |message: &str| Outcome::Raised { class: "ValueError".to_owned(), message: message.to_owned() };

    assert_eq!(Outcome::of_code(None), Outcome::Completed);
    assert_eq!(Outcome::Completed.error_type(), None);
    assert_eq!(Outcome::of_code(Some(Code::UnknownTool.as_str())).error_type(), Some("unknown_tool"));
    assert_eq!(Outcome::of_code(Some(Code::InvalidArguments.as_str())).description(), None);
    assert_eq!(raised("no").error_type(), Some("ValueError"));
    assert_eq!(raised("no").description().as_deref(), Some("ValueError: no"));
    assert_eq!(raised("").description().as_deref(), Some("ValueError"));
    assert!(Outcome::of_code(Some(Code::Interrupted.as_str())).is_cancelled());
    assert_eq!(Outcome::Cancelled.error_type(), Some("CancelledError"));
}

#[test]
fn a_subscriber_hears_of_a_call_that_went_well() {
    let told = heard(|| {
        let outer = tracing::info_span!("agent").entered();
        let watch = RustSpan::open(&ToolSpan::new(Some("add"), Some("call-1"), None));
        drop(outer);
        {
            let _inside = watch.enter();
            tracing::info!("from inside the tool");
        }
        watch.end(&Outcome::Completed);
    });

    assert_eq!(told[0], fields([("in", "execute_tool"), ("message", "from inside the tool")]));
    assert_eq!(told[1], fields([("in", "execute_tool"), ("message", "the tool call ended")]));
    let call = told.iter().find(|span| span.contains_key("otel.name"));
    assert_eq!(
        call,
        Some(&fields([
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.call.id", "call-1"),
            ("gen_ai.tool.name", "add"),
            ("gen_ai.tool.type", "function"),
            ("otel.kind", "internal"),
            ("otel.name", "execute_tool add"),
            ("parent", "agent"),
        ]))
    );
}

#[test]
fn a_subscriber_hears_why_a_call_did_not_go_well() {
    let told = heard(|| {
        let call = ToolSpan::new(Some("add"), None, None);
        RustSpan::open(&call).end(&Outcome::of_code(Some("timeout")));
        RustSpan::open(&call).end(&Outcome::Cancelled);
    });

    assert_eq!(
        told[0],
        fields([("error.type", "timeout"), ("in", "execute_tool"), ("message", "the tool call failed")])
    );
    assert_eq!(told[1]["otel.status_code"], "ERROR");
    assert_eq!(told[1]["error.type"], "timeout");
    assert_eq!(told[3]["toolcrib.cancelled"], "true");
    assert_eq!(told[3]["otel.status_description"], "the call was cancelled");
}

#[test]
fn failures_of_native_tools_are_logged_and_mistakes_of_the_model_are_not() {
    let toolkit = Toolkit::new();
    let returning = |_: ToolContext, _: Value| async move { Err::<(), _>(ToolError::new("no such city")) };
    let panicking = |_: ToolContext, arguments: Value| async move {
        assert!(arguments.is_null(), "oh no");
        Ok(())
    };
    let picky = |_: ToolContext, _: u32| async move { Ok(()) };
    toolkit.register(NativeTool::new("returning", "", returning)).unwrap();
    toolkit.register(NativeTool::new("panicking", "", panicking)).unwrap();
    toolkit.register(NativeTool::new("picky", "", picky)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();

    let told = heard(|| {
        for tool in ["returning", "panicking", "picky"] {
            let call = ToolCall { id: Some("call-1".to_owned()), ..ToolCall::new(tool, Map::new()) };
            runtime.block_on(toolkit.call(call).collect::<Vec<_>>());
        }
    });

    let logged: Vec<&Fields> = told.iter().filter(|fields| fields.contains_key("error")).collect();
    let record = |tool, error, message| {
        fields([("tool", tool), ("call", "call-1"), ("error", error), ("in", ""), ("message", message)])
    };
    assert_eq!(
        logged,
        [
            &record("returning", "no such city", "the tool returned an error"),
            &record("panicking", "oh no", "the tool panicked")
        ]
    );
}

#[test]
fn a_subscriber_is_noticed() {
    let mut seen = false;

    heard(|| seen = is_watched());

    assert!(seen);
}

proptest! {
    #[test]
    fn a_name_of_any_length_is_told_within_bounds(name in "\\PC{0,400}", id in "\\PC{0,400}") {
        let span = ToolSpan::new(Some(&name), Some(&id), None);

        let longest = span.attributes().map(|(_, value)| value.chars().count()).max();

        prop_assert!(longest <= Some(256));
        if name.chars().count() <= 256 {
            prop_assert_eq!(span.name(), format!("execute_tool {name}"));
        }
    }
}

#[test]
fn a_traceparent_is_what_the_recommendation_says() {
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "00f067aa0ba902b7");
    let zeros = "0".repeat(32);
    let valid =
        [format!("00-{trace}-{span}-01"), format!("00-{trace}-{span}-00"), format!("cc-{trace}-{span}-01-more")];
    let invalid = [
        String::new(),
        format!("00-{trace}-{span}"),
        format!("00-{trace}-{span}-01-more"),
        format!("cc-{trace}-{span}-01more"),
        format!("ff-{trace}-{span}-01"),
        format!("00-{zeros}-{span}-01"),
        format!("00-{trace}-{}-01", &zeros[..16]),
        format!("00-{}-{span}-01", trace.to_uppercase()),
        format!("00_{trace}_{span}_01"),
        format!("00-{trace}-{span}-é"),
        format!("cc-{trace}-{span}-01-{}", "x".repeat(1000)),
    ];

    for text in valid {
        assert_eq!(TraceContext::new(&text, None).unwrap().traceparent(), text);
    }
    for text in invalid {
        assert_eq!(TraceContext::new(&text, None), None, "{text}");
    }
}

#[test]
fn a_tracestate_that_is_too_long_or_not_printable_is_left_out() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let state = |state: &str| TraceContext::new(parent, Some(state)).unwrap().tracestate().map(str::to_owned);

    assert_eq!(state("a=1,b=2").as_deref(), Some("a=1,b=2"));
    for invalid in [String::new(), "a=\n".to_owned(), "a=é".to_owned(), "x".repeat(513)] {
        assert_eq!(state(&invalid), None);
    }
}

#[test]
fn a_trace_context_is_read_as_it_was_written() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let context = TraceContext::new(parent, Some("a=1")).unwrap();
    let mut meta = Map::from_iter([("other".to_owned(), Value::from(1))]);

    context.write(&mut meta);

    assert_eq!(TraceContext::read(&meta), Some(context));
    assert_eq!(meta["other"], 1);
    assert_eq!(TraceContext::read(&Map::from_iter([("traceparent".to_owned(), Value::from(1))])), None);
}
