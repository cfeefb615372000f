//! OpenTelemetry as the application has it: finds out whether anybody traces, and speaks the API's language.
//!
//! Only the Python API is used, so that the application's own sampler, processors and exporters apply. A tracer that
//! misbehaves is reported as unraisable and never comes in the way of a call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::call;
use super::imported::loaded_module;
use super::imported::{TRACED_TEXT, import_module};
use crate::trace::{Outcome, ToolSpan, key};

/// Who is there to hear of a call.
pub(crate) enum Found {
    /// Nobody, as long as no module is imported.
    Nobody,
    /// Nobody yet: the API is there, and a provider may be set at any time. With it, the variables of
    /// `opentelemetry.trace` and what [`PROVIDER`] is among them, if that is where to look.
    NotYet(Option<(Py<PyDict>, Py<PyAny>)>),
    /// Somebody.
    Tracer(Arc<Tracer>),
}

/// The variable that holds the provider of the whole process.
pub(crate) const PROVIDER: &str = "_TRACER_PROVIDER";

/// What a call needs in order to be traced.
pub(crate) struct Tracer {
    api: Arc<Api>,
    start_span: Py<PyAny>,
    settings: Settings,
}

/// What `toolcrib.tracing.configure` sets.
#[derive(Clone, Copy)]
struct Settings {
    enabled: bool,
    arguments: bool,
    results: bool,
    limit: usize,
}

/// How much of arguments and results is recorded, in characters, unless told otherwise.
const LIMIT: usize = 4096;

/// The functions of the API that calls use, and the global variables of `opentelemetry.trace`.
struct Api {
    globals: Py<PyDict>,
    internal: Py<PyAny>,
    error: Py<PyAny>,
    status: Py<PyAny>,
    in_context: Py<PyAny>,
    current: Py<PyAny>,
    attach: Py<PyAny>,
    detach: Py<PyAny>,
}

struct Known {
    settings: Settings,
    /// The provider that `configure` was given.
    given: Option<Py<PyAny>>,
    api: Option<Arc<Api>>,
    /// The provider that was seen last, with its tracer if it is a real one.
    provider: Option<(Py<PyAny>, Option<Arc<Tracer>>)>,
}

static KNOWN: Mutex<Known> = Mutex::new(Known {
    settings: Settings { enabled: true, arguments: false, results: false, limit: LIMIT },
    given: None,
    api: None,
    provider: None,
});

/// Nothing is left half changed under the lock, and no Python code runs there.
fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets how calls are traced from now on.
#[pyfunction]
#[pyo3(name = "_configure_tracing")]
fn configure(
    enabled: bool,
    tracer_provider: Option<Py<PyAny>>,
    record_arguments: bool,
    record_results: bool,
    limit: usize,
) {
    let settings = Settings { enabled, arguments: record_arguments, results: record_results, limit };
    let old = {
        let mut known = known();
        known.settings = settings;
        (std::mem::replace(&mut known.given, tracer_provider), known.provider.take())
    };
    drop(old);
    call::ask_who_traces();
}

/// Adds what `toolcrib.tracing` is made of.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // Not `add`, which would list it among what the module offers.
    module.setattr("_configure_tracing", wrap_pyfunction!(configure, module)?)
}

/// Finds out who is there to hear of a call.
pub(crate) fn find(py: Python<'_>) -> Found {
    let (is_enabled, given, api) = {
        let known = known();
        (known.settings.enabled, known.given.as_ref().map(|given| given.clone_ref(py)), known.api.clone())
    };
    if !is_enabled {
        return Found::Nobody;
    }
    let api = match api.map_or_else(|| Api::find(py, given.is_some()), |api| Ok(Some(api))) {
        Ok(Some(api)) => api,
        Ok(None) => return Found::Nobody,
        // The module is being imported at this moment.
        Err(_) => return Found::NotYet(None),
    };
    if let Some(given) = given {
        return tracer_of(py, &api, given).map_or(Found::NotYet(None), Found::Tracer);
    }
    let provider = api.global_provider(py);
    let tracer = provider.as_ref().and_then(|provider| tracer_of(py, &api, provider.clone_ref(py)));
    tracer.map_or_else(|| Found::NotYet(provider.map(|seen| (api.globals.clone_ref(py), seen))), Found::Tracer)
}

/// The tracer of a provider, unless it is one that does nothing.
fn tracer_of(py: Python<'_>, api: &Arc<Api>, provider: Py<PyAny>) -> Option<Arc<Tracer>> {
    let settings = {
        let known = known();
        if let Some((_, tracer)) = known.provider.as_ref().filter(|(seen, _)| seen.is(&provider)) {
            return tracer.clone();
        }
        known.settings
    };
    let start_span = api.start_span(provider.bind(py)).unwrap_or_else(|error| {
        error.write_unraisable(py, Some(provider.bind(py)));
        None
    });
    let tracer = start_span.map(|start_span| Arc::new(Tracer { api: api.clone(), start_span, settings }));
    let old = known().provider.replace((provider, tracer.clone()));
    drop(old);
    tracer
}

impl Api {
    /// The API, if the application has imported it or is known to have it.
    fn find(py: Python<'_>, import: bool) -> PyResult<Option<Arc<Self>>> {
        let name = intern!(py, "opentelemetry.trace");
        let module = if import {
            import_module(py, "opentelemetry.trace")?
        } else {
            let Some(module) = loaded_module(py, name)? else { return Ok(None) };
            module
        };
        // Loads the provider that the environment names, as it does for whoever asks first.
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
        });
        let old = known().api.replace(api.clone());
        drop(old);
        Ok(Some(api))
    }

    /// The provider that the application has set. The variable is read, because asking the API makes a stand-in.
    fn global_provider(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let globals = self.globals.bind(py);
        match globals.get_item(intern!(py, PROVIDER)) {
            Ok(Some(provider)) => Some(provider.unbind()),
            // A version of the API that keeps it elsewhere.
            _ => globals.get_item("get_tracer_provider").ok()??.call0().ok().map(Bound::unbind),
        }
    }

    /// How a provider starts spans; none if it does nothing with them.
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
    /// Starts the span of a call below the current one; it is not made the current one.
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

    /// Makes a context the current one, and gives the token that takes it back.
    pub(crate) fn attach<'py>(&self, context: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.api.attach.bind(context.py()).call1((context,))
    }

    /// Takes a context back, and gives the one that was current until then: the tool may have entered spans of its own, which
    /// are still open when it goes on.
    pub(crate) fn detach<'py>(&self, token: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let context = self.api.current.bind(token.py()).call0();
        self.api.detach.bind(token.py()).call1((token,))?;
        context
    }

    /// Whether arguments are wanted.
    pub(crate) fn records_arguments(&self) -> bool {
        self.settings.arguments
    }

    /// Records what the model sent.
    pub(crate) fn record_arguments(&self, span: &Bound<'_, PyAny>, arguments: &Bound<'_, PyAny>) -> PyResult<()> {
        self.record(span, key::ARGUMENTS, arguments)
    }

    /// Records what the tool gave last, if that is wanted.
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

    /// Writes down how the call ended.
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
