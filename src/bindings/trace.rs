//! OpenTelemetry spans of calls, through the API that the application has imported.
//!
//! Only the Python API is used, so that the application's own sampler, processors and exporters apply. Errors of a tracer
//! are reported as unraisable and never reach a call.

use std::sync::{Arc, Mutex, MutexGuard};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::call;
use super::imported::loaded_module;
use super::imported::{TRACED_TEXT, import_module};
use crate::bindings::once::{GilOnce, intern};
use crate::sync::lock;
use crate::trace::{Outcome, ToolSpan, TraceContext, key};

/// The result of [`find`].
pub(crate) enum TracerLookup {
    /// Tracing is disabled, or the API is not imported.
    Disabled,
    /// There is no tracer yet, but a provider may be set at any time. The globals of `opentelemetry.trace` and the present
    /// value of [`PROVIDER`] are included if a new provider will be seen there.
    NotYet(Option<(Py<PyDict>, Py<PyAny>)>),
    /// The tracer of the provider.
    Tracer(Arc<Tracer>),
}

/// The variable of `opentelemetry.trace` that holds the global provider.
pub(crate) const PROVIDER: &str = "_TRACER_PROVIDER";

/// A tracer with the settings for spans.
pub(crate) struct Tracer {
    api: Arc<Api>,
    start_span: Py<PyAny>,
    settings: TraceSettings,
}

/// The settings of `toolcrib.tracing.configure`.
#[derive(Clone, Copy)]
struct TraceSettings {
    enabled: bool,
    arguments: bool,
    results: bool,
    limit: usize,
}

/// Default number of characters that are recorded of arguments and results.
const LIMIT: usize = 4096;

/// The functions of the API, and the global variables of `opentelemetry.trace`.
struct Api {
    globals: Py<PyDict>,
    internal: Py<PyAny>,
    error: Py<PyAny>,
    status: Py<PyAny>,
    in_context: Py<PyAny>,
    current: Py<PyAny>,
    attach: Py<PyAny>,
    detach: Py<PyAny>,
    /// The propagator of W3C Trace Context, made when a span is first passed on or taken.
    propagator: GilOnce<Py<PyAny>>,
}

/// The state of tracing in this process.
struct TraceState {
    settings: TraceSettings,
    /// The provider passed to `configure`.
    given: Option<Py<PyAny>>,
    api: Option<Arc<Api>>,
    /// The last provider, with its tracer unless that is a no-op.
    provider: Option<(Py<PyAny>, Option<Arc<Tracer>>)>,
}

static STATE: Mutex<TraceState> = Mutex::new(TraceState {
    settings: TraceSettings { enabled: true, arguments: false, results: false, limit: LIMIT },
    given: None,
    api: None,
    provider: None,
});

/// The state, locked; no Python code may run meanwhile.
fn state() -> MutexGuard<'static, TraceState> {
    lock(&STATE)
}

/// Changes the settings for calls from now on.
#[pyfunction]
#[pyo3(name = "_configure_tracing")]
fn configure(
    enabled: bool,
    tracer_provider: Option<Py<PyAny>>,
    record_arguments: bool,
    record_results: bool,
    limit: usize,
) {
    let settings = TraceSettings { enabled, arguments: record_arguments, results: record_results, limit };
    let old = {
        let mut state = state();
        state.settings = settings;
        (std::mem::replace(&mut state.given, tracer_provider), state.provider.take())
    };
    drop(old);
    call::ask_who_traces();
}

/// Adds the function behind `toolcrib.tracing`.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Not by `add_function`, which would make it a public name.
    module.setattr("_configure_tracing", wrap_pyfunction!(configure, module)?)
}

/// Finds the tracer for calls.
pub(crate) fn find(py: Python<'_>) -> TracerLookup {
    let (is_enabled, given, api) = {
        let state = state();
        (state.settings.enabled, state.given.as_ref().map(|given| given.clone_ref(py)), state.api.clone())
    };
    if !is_enabled {
        return TracerLookup::Disabled;
    }
    let api = match api.map_or_else(|| Api::find(py, given.is_some()), |api| Ok(Some(api))) {
        Ok(Some(api)) => api,
        Ok(None) => return TracerLookup::Disabled,
        // The module is being imported at this moment.
        Err(_) => return TracerLookup::NotYet(None),
    };
    if let Some(given) = given {
        return tracer_of(py, &api, given).map_or(TracerLookup::NotYet(None), TracerLookup::Tracer);
    }
    let provider = api.global_provider(py);
    let tracer = provider.as_ref().and_then(|provider| tracer_of(py, &api, provider.clone_ref(py)));
    tracer.map_or_else(
        || TracerLookup::NotYet(provider.map(|seen| (api.globals.clone_ref(py), seen))),
        TracerLookup::Tracer,
    )
}

/// The current span, for a request to another program; none if calls are not traced.
pub(crate) fn current(py: Python<'_>) -> Option<TraceContext> {
    let tracer = call::active_tracer(py)?;
    tracer.api.current_span(py).unwrap_or_else(|error| {
        error.write_unraisable(py, None);
        None
    })
}

/// Makes a span of another program the parent of the spans that the running task opens; nothing if calls are not traced.
pub(crate) fn enter(py: Python<'_>, trace: &TraceContext) {
    if let Some(tracer) = call::active_tracer(py)
        && let Err(error) = tracer.api.enter(py, trace)
    {
        error.write_unraisable(py, None);
    }
}

/// The tracer of a provider, unless it is a no-op.
fn tracer_of(py: Python<'_>, api: &Arc<Api>, provider: Py<PyAny>) -> Option<Arc<Tracer>> {
    let settings = {
        let state = state();
        if let Some((_, tracer)) = state.provider.as_ref().filter(|(seen, _)| seen.is(&provider)) {
            return tracer.clone();
        }
        state.settings
    };
    let start_span = api.start_span(provider.bind(py)).unwrap_or_else(|error| {
        error.write_unraisable(py, Some(provider.bind(py)));
        None
    });
    let tracer = start_span.map(|start_span| Arc::new(Tracer { api: api.clone(), start_span, settings }));
    let old = state().provider.replace((provider, tracer.clone()));
    drop(old);
    tracer
}

impl Api {
    /// The API, imported if `import` is set; otherwise `None` unless the application has imported it.
    fn find(py: Python<'_>, import: bool) -> PyResult<Option<Arc<Self>>> {
        let name = intern!(py, "opentelemetry.trace");
        let module = if import {
            import_module(py, "opentelemetry.trace")?
        } else {
            let Some(module) = loaded_module(py, name)? else { return Ok(None) };
            module
        };
        // The first call loads the provider that the environment names.
        module.call_method0(intern!(py, "get_tracer_provider"))?;
        let context = import_module(py, "opentelemetry.context")?;
        let api = Arc::new(Self {
            globals: module.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?.unbind(),
            internal: module.getattr("SpanKind")?.getattr("INTERNAL")?.unbind(),
            error: module.getattr("StatusCode")?.getattr("ERROR")?.unbind(),
            status: module.getattr("Status")?.unbind(),
            in_context: module.getattr("set_span_in_context")?.unbind(),
            current: context.getattr("get_current")?.unbind(),
            attach: context.getattr("attach")?.unbind(),
            detach: context.getattr("detach")?.unbind(),
            propagator: GilOnce::new(),
        });
        let old = state().api.replace(api.clone());
        drop(old);
        Ok(Some(api))
    }

    /// The provider that the application has set. The variable is read, because the API's function would create a proxy.
    fn global_provider(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let globals = self.globals.bind(py);
        match globals.get_item(intern!(py, PROVIDER)) {
            Ok(Some(provider)) => Some(provider.unbind()),
            // A version of the API without the variable.
            _ => globals.get_item("get_tracer_provider").ok()??.call0().ok().map(Bound::unbind),
        }
    }

    /// The propagator of W3C Trace Context. The application's own one may write entries that MCP does not have.
    fn propagator<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        let propagator = self.propagator.get_or_try_init(py, || {
            let module = import_module(py, "opentelemetry.trace.propagation.tracecontext")?;
            module.getattr("TraceContextTextMapPropagator")?.call0().map(Bound::unbind)
        });
        propagator.map(|propagator| propagator.bind(py))
    }

    /// The current span; none if there is none, or it is invalid.
    fn current_span(&self, py: Python<'_>) -> PyResult<Option<TraceContext>> {
        let carrier = PyDict::new(py);
        self.propagator(py)?.call_method1(intern!(py, "inject"), (&carrier,))?;
        let text = |name: &str| carrier.get_item(name)?.map(|text| text.extract::<String>()).transpose();
        let Some(parent) = text(TraceContext::TRACEPARENT)? else { return Ok(None) };
        Ok(TraceContext::new(&parent, text(TraceContext::TRACESTATE)?.as_deref()))
    }

    /// Makes a span of another program the current one.
    fn enter(&self, py: Python<'_>, trace: &TraceContext) -> PyResult<()> {
        let carrier = PyDict::new(py);
        carrier.set_item(TraceContext::TRACEPARENT, trace.traceparent())?;
        if let Some(state) = trace.tracestate() {
            carrier.set_item(TraceContext::TRACESTATE, state)?;
        }
        let current = self.current.bind(py).call0()?;
        let context = self.propagator(py)?.call_method1(intern!(py, "extract"), (carrier, current))?;
        self.attach.bind(py).call1((context,))?;
        Ok(())
    }

    /// The function by which a provider starts spans; `None` if it is a no-op.
    fn start_span(&self, provider: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        if provider.is_none() || self.is_any_of(provider, ["ProxyTracerProvider", "NoOpTracerProvider"])? {
            return Ok(None);
        }
        let scope = ("toolcrib", env!("CARGO_PKG_VERSION"));
        let tracer = provider.call_method1(intern!(provider.py(), "get_tracer"), scope)?;
        if self.is_any_of(&tracer, ["NoOpTracer", "ProxyTracer"])? {
            return Ok(None);
        }
        Ok(Some(tracer.getattr(intern!(provider.py(), "start_span"))?.unbind()))
    }

    fn is_any_of(&self, object: &Bound<'_, PyAny>, classes: [&str; 2]) -> PyResult<bool> {
        for class in classes {
            if let Some(class) = self.globals.bind(object.py()).get_item(class)?
                && object.is_instance(&class)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Tracer {
    /// Starts the span of a call as a child of the current one. It does not become the current one.
    pub(crate) fn start<'py>(&self, py: Python<'py>, call: &ToolSpan<'_>) -> PyResult<Bound<'py, PyAny>> {
        let attributes = PyDict::new(py);
        for (name, value) in call.attributes() {
            attributes.set_item(PyString::intern(py, name), value)?;
        }
        self.start_span.bind(py).call1((call.name(), py.None(), &self.api.internal, attributes))
    }

    /// The current context with `span` in it.
    pub(crate) fn context<'py>(&self, span: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.api.in_context.bind(span.py()).call1((span,))
    }

    /// Makes a context the current one, and returns the token that resets it.
    pub(crate) fn attach<'py>(&self, context: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.api.attach.bind(context.py()).call1((context,))
    }

    /// Resets a context, and returns the one that was current until then: the tool may have entered spans of its own, which
    /// are still open when it is resumed.
    pub(crate) fn detach<'py>(&self, token: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let context = self.api.current.bind(token.py()).call0();
        self.api.detach.bind(token.py()).call1((token,))?;
        context
    }

    /// True if arguments are recorded.
    pub(crate) fn records_arguments(&self) -> bool {
        self.settings.arguments
    }

    /// Records the arguments that the model sent.
    pub(crate) fn record_arguments(&self, span: &Bound<'_, PyAny>, arguments: &Bound<'_, PyAny>) -> PyResult<()> {
        self.record(span, key::ARGUMENTS, arguments)
    }

    /// Records the last response, if results are recorded.
    pub(crate) fn record_result(&self, span: &Bound<'_, PyAny>, response: &Bound<'_, PyAny>) -> PyResult<()> {
        if !self.settings.results {
            return Ok(());
        }
        self.record(span, key::RESULT, &response.getattr(intern!(span.py(), "content"))?)
    }

    fn record(&self, span: &Bound<'_, PyAny>, key: &'static str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = span.py();
        let text = TRACED_TEXT.get(py)?.call1((value, self.settings.limit))?;
        set(span, key, text)
    }

    /// Records the outcome of the call.
    pub(crate) fn conclude(&self, span: &Bound<'_, PyAny>, outcome: &Outcome) -> PyResult<()> {
        let py = span.py();
        let Some(error) = outcome.error_type() else { return Ok(()) };
        set(span, key::ERROR_TYPE, error)?;
        if outcome.is_cancelled() {
            set(span, key::CANCELLED, true)?;
        }
        let status = self.api.status.bind(py).call1((&self.api.error, outcome.description()))?;
        span.call_method1(intern!(py, "set_status"), (status,))?;
        Ok(())
    }
}

fn set<'py>(span: &Bound<'py, PyAny>, key: &'static str, value: impl IntoPyObject<'py>) -> PyResult<()> {
    let py = span.py();
    span.call_method1(intern!(py, "set_attribute"), (PyString::intern(py, key), value))?;
    Ok(())
}
