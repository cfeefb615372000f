//! Callables: their signature, the kind of result that a call returns, the arguments that a partial has bound, and the
//! description that some carry themselves.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple, PyType};

use super::draft::no_presets;
use super::options::Confirmation;
use crate::bindings::agent::PyAgentTool;
use crate::bindings::call::python::interpreter::{FunctionParts, function_parts};
use crate::bindings::imported::{METHOD, PARTIAL, TOOL_CONTEXT, import_module};
use crate::bindings::json::entries_of;
use crate::bindings::native::PyNativeTool;
use crate::bindings::once::intern;
use crate::bindings::schema::names_class;
use crate::policy::ToolKind;
use crate::schema::{Entries, FunctionSchema};

/// The kind of result that calling a tool's function returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// The result, or an awaitable or a generator that is only known when it is returned.
    Function,
    /// A coroutine.
    Coroutine,
    /// An async generator.
    AsyncGenerator,
    /// A generator.
    Generator,
}

impl CallKind {
    /// True if a call returns something that only an event loop can run.
    pub(crate) fn is_async(self) -> bool {
        matches!(self, Self::Coroutine | Self::AsyncGenerator)
    }
}

/// A callable without the partials around it.
pub(crate) struct Callable<'py> {
    /// The function that is called.
    pub(crate) function: Bound<'py, PyAny>,
    pub(crate) name: String,
    pub(crate) kind: CallKind,
    pub(crate) signature: Signature,
    /// The arguments that partials have bound, by name; must not be modified.
    pub(crate) bound: Bound<'py, PyDict>,
}

impl<'py> Callable<'py> {
    /// Reads a callable. Partials are not modified.
    pub(crate) fn read(callable: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = callable.py();
        if !callable.is_callable() {
            let message = format!("a tool must be callable, not {}", callable.get_type().qualname()?);
            return Err(PyTypeError::new_err(message));
        }
        let mut bound = no_presets(py).clone();
        let mut function = callable.clone();
        let mut positional: Vec<Bound<'py, PyAny>> = Vec::new();
        // CPython flattens a partial of a partial, but not one of a subclass.
        while is_partial(&function)? {
            let earlier = function.getattr(intern!(py, "args"))?.cast_into::<PyTuple>()?;
            positional = earlier.iter().chain(positional).collect();
            let keywords = function.getattr(intern!(py, "keywords"))?.cast_into::<PyDict>()?;
            if bound.is(no_presets(py)) {
                bound = PyDict::new(py);
            }
            for (name, value) in entries_of(&keywords) {
                if !bound.contains(&name)? {
                    bound.set_item(name, value)?;
                }
            }
            function = function.getattr(intern!(py, "func"))?;
        }
        let name = name_of(&function)?;
        if let Ok(native) = function.cast::<PyNativeTool>()
            && positional.is_empty()
        {
            let (kind, signature) = (native.get().call_kind(), native.get().signature(py)?);
            return Ok(Self { function, name, kind, signature, bound });
        }
        if let Ok(agent) = function.cast::<PyAgentTool>()
            && positional.is_empty()
        {
            let (kind, signature) = (agent.get().call_kind(), agent.get().signature(py)?);
            return Ok(Self { function, name, kind, signature, bound });
        }
        let mut signature = Signature::read(py, &function)?;
        let kind = signature.flags.map_or_else(|| kind_of(&function), |flags| Ok(kind_by_flags(flags)))?;
        if signature.lacks_receiver && !positional.is_empty() {
            // The first of them is the receiver, with which the function becomes a bound method.
            function = function.call_method1(intern!(py, "__get__"), (positional.remove(0),))?;
            signature = Signature::read(py, &function)?;
        }
        if !positional.is_empty() {
            let takers: Vec<_> = signature
                .parameters
                .iter()
                .filter(|parameter| {
                    matches!(parameter.kind, ParameterKind::PositionalOnly | ParameterKind::PositionalOrKeyword)
                })
                .map(|parameter| parameter.name.clone_ref(py))
                .collect();
            if takers.len() >= positional.len() {
                for (taker, value) in takers.iter().zip(positional) {
                    bound.set_item(taker, value)?;
                }
            } else {
                // Some of them go to `*args` and have no names, so the partial itself is called.
                positional.insert(0, function);
                function = partial_class(py)?.call1(PyTuple::new(py, positional)?)?;
                signature = Signature::read(py, &function)?;
            }
        }
        Ok(Self { function, name, kind, signature, bound })
    }
}

fn partial_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    Ok(PARTIAL.get(py)?.cast::<PyType>()?)
}

fn is_partial(callable: &Bound<'_, PyAny>) -> PyResult<bool> {
    if callable.is_exact_instance_of::<PyFunction>() {
        return Ok(false);
    }
    callable.is_instance(partial_class(callable.py())?)
}

/// The name of a function, or of the class of an object that has none.
fn name_of(callable: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = callable.py();
    if let Some(name) = callable.getattr_opt(intern!(py, "__name__"))?
        && let Ok(name) = name.cast::<PyString>()
    {
        return Ok(name.to_string_lossy().into_owned());
    }
    Ok(callable.get_type().name()?.to_string())
}

const GENERATOR: u32 = 0x20;
const COROUTINE: u32 = 0x80;
const ITERABLE_COROUTINE: u32 = 0x100;
const ASYNC_GENERATOR: u32 = 0x200;

/// The kind of result of a callable.
pub(crate) fn kind_of(callable: &Bound<'_, PyAny>) -> PyResult<CallKind> {
    let py = callable.py();
    if callable.is_instance_of::<PyType>() {
        return Ok(CallKind::Function);
    }
    let mut function = callable.clone();
    if !function.is_instance_of::<PyFunction>() {
        // A method has a function, an object with `__code__` acts as one, any other object has `__call__`.
        function = match function.getattr_opt(intern!(py, "__func__"))? {
            Some(inner) => inner,
            None if function.hasattr(intern!(py, "__code__"))? => function,
            None => match function.get_type().getattr_opt(intern!(py, "__call__"))? {
                Some(call) => call,
                None => function,
            },
        };
    }
    // Set by `inspect.markcoroutinefunction`.
    let marker = intern!(py, "_is_coroutine_marker");
    let is_marked = match function.cast::<PyFunction>() {
        Ok(function) => has_any(&attributes_of(function)?, &[marker])?,
        Err(_) => function.getattr_opt(marker)?.is_some(),
    };
    if is_marked {
        return Ok(CallKind::Coroutine);
    }
    let flags: u32 = match function.getattr_opt(intern!(py, "__code__"))? {
        Some(code) => code.getattr(intern!(py, "co_flags"))?.extract().unwrap_or_default(),
        None => 0,
    };
    Ok(kind_by_flags(flags))
}

/// The kind of result of code with these flags.
fn kind_by_flags(flags: u32) -> CallKind {
    if flags & (COROUTINE | ITERABLE_COROUTINE) != 0 {
        CallKind::Coroutine
    } else if flags & ASYNC_GENERATOR != 0 {
        CallKind::AsyncGenerator
    } else if flags & GENERATOR != 0 {
        CallKind::Generator
    } else {
        CallKind::Function
    }
}

/// The way in which an argument is passed to a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterKind {
    PositionalOnly,
    PositionalOrKeyword,
    VarPositional,
    KeywordOnly,
    VarKeyword,
}

/// One parameter of a signature.
pub(crate) struct Parameter {
    pub(crate) name: Py<PyString>,
    pub(crate) kind: ParameterKind,
    pub(crate) default: Option<Py<PyAny>>,
    pub(crate) annotation: Option<Py<PyAny>>,
    /// True if it is filled with the context of the call.
    pub(crate) is_context: bool,
}

/// The parameters of a callable in order, without the receiver of a method.
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Parameter>,
    /// True if arguments are passed by name wherever possible: the callable declares a signature, which can differ from that
    /// of its code, or the receiver of a method is missing.
    pub(crate) by_name: bool,
    /// True for an unbound method, whose receiver is not among the parameters.
    pub(crate) lacks_receiver: bool,
    /// The flags of the code, if the function has no attributes that override them.
    pub(crate) flags: Option<u32>,
}

const VAR_POSITIONAL: u32 = 0x04;
const VAR_KEYWORD: u32 = 0x08;

impl Signature {
    /// Reads the signature of `callable`.
    ///
    /// Plain functions and methods are read from their code object; everything else is left to `inspect`.
    pub(crate) fn read(py: Python<'_>, callable: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut signature = Self::read_parameters(py, callable)?;
        // Without the module no annotation can name its class.
        if let Some(context) = TOOL_CONTEXT.if_imported(py) {
            for parameter in &mut signature.parameters {
                if let Some(annotation) = &parameter.annotation {
                    parameter.is_context = names_class(callable, annotation.bind(py), context);
                }
            }
        }
        Ok(signature)
    }

    fn read_parameters(py: Python<'_>, callable: &Bound<'_, PyAny>) -> PyResult<Self> {
        let method = if callable.is_exact_instance_of::<PyFunction>() || !callable.get_type().is(method_type(py)?) {
            None
        } else {
            Some(callable.getattr(intern!(py, "__func__"))?)
        };
        let Ok(function) = method.as_ref().unwrap_or(callable).cast_exact::<PyFunction>() else {
            return inspect(py, callable);
        };
        let parts = function_parts(function)?;
        let attributes = parts.attributes.as_ref().map(|attributes| attributes.cast::<PyDict>()).transpose()?;
        let claims = [intern!(py, "__wrapped__"), intern!(py, "__signature__")];
        if let Some(attributes) = attributes
            && has_any(attributes, &claims)?
        {
            return inspect(py, callable);
        }
        let (mut signature, flags) = read_code(&parts, method.is_some())?;
        signature.flags = attributes.is_none_or(PyDictMethods::is_empty).then_some(flags);
        Ok(signature)
    }
}

fn method_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    Ok(METHOD.get(py)?.cast::<PyType>()?)
}

/// The attributes that were set on a function. It is nearly always empty, and looking up a missing attribute is slow, because
/// that creates an exception.
fn attributes_of<'py>(function: &Bound<'py, PyFunction>) -> PyResult<Bound<'py, PyDict>> {
    Ok(function.getattr(intern!(function.py(), "__dict__"))?.cast_into::<PyDict>()?)
}

/// True if one of `names` is among the attributes.
fn has_any(attributes: &Bound<'_, PyDict>, names: &[&Bound<'_, PyString>]) -> PyResult<bool> {
    if attributes.is_empty() {
        return Ok(false);
    }
    for name in names {
        if attributes.contains(name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The signature and the flags of the code of a function.
fn read_code(function: &FunctionParts<'_>, is_bound: bool) -> PyResult<(Signature, u32)> {
    let code = &function.code;
    let py = code.py();
    let names = code.getattr(intern!(py, "co_varnames"))?.cast_into::<PyTuple>()?;
    let positional: usize = code.getattr(intern!(py, "co_argcount"))?.extract()?;
    let positional_only: usize = code.getattr(intern!(py, "co_posonlyargcount"))?.extract()?;
    let keyword_only: usize = code.getattr(intern!(py, "co_kwonlyargcount"))?.extract()?;
    let flags: u32 = code.getattr(intern!(py, "co_flags"))?.extract()?;
    let defaults = function.defaults.as_ref().and_then(|defaults| defaults.cast::<PyTuple>().ok());
    let keyword_defaults = function.keyword_defaults.as_ref().and_then(|defaults| defaults.cast::<PyDict>().ok());

    let parameter = |at: usize, kind: ParameterKind, default: Option<Py<PyAny>>| -> PyResult<Parameter> {
        let name = names.get_item(at)?.cast_into::<PyString>()?;
        let annotation = match &function.annotations {
            Some(annotations) => annotation_of(annotations, &name)?.map(pyo3::Bound::unbind),
            None => None,
        };
        Ok(Parameter { name: name.unbind(), kind, default, annotation, is_context: false })
    };

    let with_default = defaults.map_or(0, PyTupleMethods::len);
    let mut parameters = Vec::with_capacity(positional + keyword_only + 2);
    let mut by_name = false;
    for at in 0..positional {
        if at == 0 && (is_bound || is_receiver(&names.get_item(0)?)) {
            by_name = !is_bound;
            continue;
        }
        let kind =
            if at < positional_only { ParameterKind::PositionalOnly } else { ParameterKind::PositionalOrKeyword };
        let default = match &defaults {
            Some(defaults) if at + with_default >= positional => {
                Some(defaults.get_item(at + with_default - positional)?.unbind())
            }
            _ => None,
        };
        parameters.push(parameter(at, kind, default)?);
    }
    let mut rest = positional + keyword_only;
    if flags & VAR_POSITIONAL != 0 {
        parameters.push(parameter(rest, ParameterKind::VarPositional, None)?);
        rest += 1;
    }
    for at in positional..positional + keyword_only {
        let default = match &keyword_defaults {
            Some(defaults) => defaults.get_item(names.get_item(at)?)?.map(pyo3::Bound::unbind),
            None => None,
        };
        parameters.push(parameter(at, ParameterKind::KeywordOnly, default)?);
    }
    if flags & VAR_KEYWORD != 0 {
        parameters.push(parameter(rest, ParameterKind::VarKeyword, None)?);
    }
    Ok((Signature { parameters, by_name, lacks_receiver: by_name, flags: None }, flags))
}

/// The annotation of a name; see [`FunctionParts`].
fn annotation_of<'py>(
    annotations: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Ok(annotations) = annotations.cast::<PyDict>() {
        return annotations.get_item(name);
    }
    let Ok(pairs) = annotations.cast::<PyTuple>() else { return Ok(None) };
    let text = name.to_str()?;
    let is_named = |known: &Bound<'py, PyAny>| {
        known.is(name) || known.cast::<PyString>().is_ok_and(|known| known.to_str().is_ok_and(|known| known == text))
    };
    let position = (0..pairs.len() / 2).find(|at| pairs.get_item(2 * at).is_ok_and(|known| is_named(&known)));
    position.map(|at| pairs.get_item(2 * at + 1)).transpose()
}

/// True if a first parameter of this name is the receiver of a method.
fn is_receiver(name: &Bound<'_, PyAny>) -> bool {
    name.cast::<PyString>().is_ok_and(|name| name.to_str().is_ok_and(|name| matches!(name, "self" | "cls")))
}

/// The signature by `inspect.signature`.
fn inspect(py: Python<'_>, callable: &Bound<'_, PyAny>) -> PyResult<Signature> {
    let inspect = import_module(py, "inspect")?;
    let empty = inspect.getattr(intern!(py, "_empty"))?;
    let given = |object: Bound<'_, PyAny>| {
        if object.is(&empty) { None } else { Some(object.unbind()) }
    };
    // Only a plain function includes its receiver.
    let unbound = callable.is_exact_instance_of::<PyFunction>();

    let signature = inspect.call_method1(intern!(py, "signature"), (callable,))?;
    let shown = signature.getattr(intern!(py, "parameters"))?.call_method0(intern!(py, "values"))?;
    let (mut parameters, mut lacks_receiver) = (Vec::new(), false);
    for (at, shown) in shown.try_iter()?.enumerate() {
        let shown = shown?;
        let name = shown.getattr(intern!(py, "name"))?.cast_into::<PyString>()?;
        let kind = match shown.getattr(intern!(py, "kind"))?.extract::<u8>()? {
            0 => ParameterKind::PositionalOnly,
            1 => ParameterKind::PositionalOrKeyword,
            2 => ParameterKind::VarPositional,
            3 => ParameterKind::KeywordOnly,
            _ => ParameterKind::VarKeyword,
        };
        let positional = matches!(kind, ParameterKind::PositionalOnly | ParameterKind::PositionalOrKeyword);
        if at == 0 && unbound && positional && is_receiver(&name) {
            lacks_receiver = true;
            continue;
        }
        parameters.push(Parameter {
            name: PyString::intern(py, name.to_str()?).unbind(),
            kind,
            default: given(shown.getattr(intern!(py, "default"))?),
            annotation: given(shown.getattr(intern!(py, "annotation"))?),
            is_context: false,
        });
    }
    Ok(Signature { parameters, by_name: true, lacks_receiver, flags: None })
}

/// The schema of a callable that describes itself.
pub(crate) enum OwnSchema<'py> {
    Python(Bound<'py, PyAny>),
    /// The schema, and its `function` part.
    Native(Arc<FunctionSchema>, Arc<Entries>),
}

/// A callable that describes itself: a tool of an MCP server as AgentScope's clients hand it out, or an object with a name and a
/// schema. The schema belongs to the callable and must not be modified.
pub(crate) struct SelfDescribing<'py> {
    pub(crate) name: String,
    pub(crate) schema: OwnSchema<'py>,
    /// The name of the MCP client.
    pub(crate) server: Option<String>,
    /// The word for its permission.
    pub(crate) permission: Option<String>,
    /// The word for its kind.
    pub(crate) kind: Option<String>,
    pub(crate) confirmation: Confirmation,
    /// The schema that arguments are checked against, if it is not the one that the model is shown.
    pub(crate) accepted: Option<Bound<'py, PyAny>>,
    /// True if it calls agents.
    pub(crate) calls_agents: bool,
}

impl<'py> SelfDescribing<'py> {
    /// Reads the description of a callable, if it has one.
    pub(crate) fn read(callable: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let py = callable.py();
        if callable.is_exact_instance_of::<PyFunction>() {
            return Ok(None);
        }
        if let Ok(native) = callable.cast::<PyNativeTool>() {
            return Ok(Some(native.get().described()));
        }
        let (Some(name), Some(schema)) =
            (callable.getattr_opt(intern!(py, "name"))?, callable.getattr_opt(intern!(py, "json_schema"))?)
        else {
            return Ok(None);
        };
        let Ok(name) = name.cast::<PyString>() else { return Ok(None) };
        let server = match callable.getattr_opt(intern!(py, "mcp_name"))?.filter(|server| !server.is_none()) {
            Some(server) => match server.cast::<PyString>() {
                Ok(server) => Some(server.extract()?),
                Err(_) => return Ok(None),
            },
            None if schema.is_instance_of::<PyDict>() => None,
            // Another attribute of that name, such as a method of a pydantic model.
            None => return Ok(None),
        };
        let (mut confirmation, mut accepted, mut calls_agents) = (Confirmation::Silent, None, false);
        if let Some(declared) = callable.getattr_opt(intern!(py, "__tool_declaration__"))? {
            let decides = declared.getattr(intern!(py, "confirms"))?.is_truthy()?;
            confirmation = if decides { Confirmation::Decides } else { Confirmation::Describes };
            accepted = Some(declared.getattr(intern!(py, "accepts"))?);
            calls_agents = declared.getattr(intern!(py, "calls_agents"))?.is_truthy()?;
        }
        let permission = word_of(callable, intern!(py, "permission"))?;
        // An attribute of this name may mean something else.
        let kind = word_of(callable, intern!(py, "kind"))?.filter(|word| ToolKind::parse(word).is_some());
        let (name, schema) = (name.extract()?, OwnSchema::Python(schema));
        Ok(Some(Self { name, schema, server, permission, kind, confirmation, accepted, calls_agents }))
    }
}

/// A word: the attribute itself, or its value if it is a member of an enumeration.
fn word_of(callable: &Bound<'_, PyAny>, attribute: &Bound<'_, PyString>) -> PyResult<Option<String>> {
    let Some(word) = callable.getattr_opt(attribute)? else { return Ok(None) };
    let word = word.getattr_opt(intern!(callable.py(), "value"))?.unwrap_or(word);
    Ok(word.cast::<PyString>().ok().map(|word| word.to_string_lossy().into_owned()))
}
