//! The registration of a tool: from a callable and its options to the tool.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyFunction, PyString};

use super::callable::{Callable, OwnSchema, SelfDescribing};
use super::meta::{META_TOOL, with_any_switch};
use super::options::{Behaviour, Tags, ToolOptions, ToolTraits, check_mistakes, warn_of_documented};
use crate::bindings::agent::PyAgentTool;
use crate::bindings::call::{Handling, Plan};
use crate::bindings::dialect::DialectCache;
use crate::bindings::json::{self, entries_of};
use crate::bindings::native::PyNativeTool;
use crate::bindings::once::{GilOnce, intern};
use crate::bindings::policy::PyPermissions;
use crate::bindings::schema::{DescribeOptions, converters_of, describe, description_of};
use crate::bindings::tool::{OtherNames, PyTool, ToolBody, effective_run_in};
use crate::bindings::toolkit::PyToolkit;
use crate::bindings::typed::Converters;
use crate::call::{ArgumentMode, ID_LETTERS, RunIn};
use crate::policy::AllowCache;
use crate::registry::{Memberships, NameConflict, check_name};
use crate::schema::{Document, Entries, FunctionSchema, Node};
use crate::{Error, Result};

/// A tool without its final name and its groups.
pub(crate) struct ToolDraft<'py> {
    callable: Callable<'py>,
    /// `name` is set only if it differs from the callable's own.
    options: ToolOptions<'py>,
    presets: Bound<'py, PyDict>,
    function: Entries,
    /// The schema of a native tool, if the registration changes nothing of it.
    written: Option<Arc<FunctionSchema>>,
    /// The schema that arguments are checked against, if it is not the one that the model is shown.
    accepted: Option<Node>,
    /// The converters of typed arguments.
    converters: Converters,
    is_supplied: bool,
    tags: Tags,
    traits: ToolTraits,
    /// The MCP server that provides it.
    server: Option<String>,
}

impl<'py> ToolDraft<'py> {
    /// Reads the callable, and derives or checks the schema.
    pub(crate) fn new(tool: &Bound<'py, PyAny>, mut options: ToolOptions<'py>) -> PyResult<Self> {
        let py = tool.py();
        let supplied = match &options.schema {
            // An empty schema is derived like a missing one.
            Some(schema) if schema.is_truthy()? => Some(function_part(schema, options.is_lenient)?),
            _ => None,
        };
        let mut callable = Callable::read(tool)?;
        let native = callable.function.cast::<PyNativeTool>().ok();
        if let Some(native) = native {
            native.get().complete(&mut options);
        }
        let agent = callable.function.cast::<PyAgentTool>().ok();
        if let Some(agent) = agent {
            agent.get().complete(&mut options);
        }
        // A partial around a native tool or an agent has no description of its own.
        let own = native.map(Bound::as_any).or(agent.map(Bound::as_any));
        let described = SelfDescribing::read(own.unwrap_or(tool))?;
        let is_described = described.is_some();
        let (mut accepted, mut written) = (None, None);
        let (supplied, server) = match described {
            Some(SelfDescribing {
                name,
                schema,
                server,
                permission,
                kind,
                confirmation,
                accepted: own,
                calls_agents,
            }) => {
                options.given.calls_agents = calls_agents;
                callable.name = name;
                options.given.confirmation = confirmation;
                accepted = own.filter(|own| !own.is_none()).map(|own| json::from_python(&own)).transpose()?;
                options.given.kind = options.given.kind.or(kind);
                // The stricter of the two applies; "auto" is also the default.
                if permission.is_some() && options.given.permission.as_deref().is_none_or(|word| word == "auto") {
                    options.given.permission = permission;
                }
                let own = || match &schema {
                    OwnSchema::Python(schema) => function_part(schema, true),
                    OwnSchema::Native(_, function) => Ok((**function).clone()),
                };
                if let (OwnSchema::Native(schema, _), None) = (&schema, &supplied) {
                    written = Some(schema.clone());
                }
                (Some(supplied.map_or_else(own, Ok)?), server)
            }
            None => (supplied, None),
        };
        let presets = presets_of(&callable, options.presets.as_ref())?;
        if let Some(postprocess) = options.postprocess.as_ref().filter(|function| !function.bind(py).is_callable()) {
            let class = postprocess.bind(py).get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("postprocess_func must be callable, not {class}")));
        }
        options.name = options.name.filter(|name| !name.is_empty());
        let name = options.name.as_deref().unwrap_or(&callable.name);
        check_name(name)?;
        if !options.is_lenient {
            // A callable that describes itself, as the tools of MCP servers do, has the name that others chose.
            check_mistakes(py, name, &callable, &options, !is_described)?;
        }
        let is_supplied = supplied.is_some();
        let (mut function, converters) = match supplied {
            Some(mut function) => {
                if hide_presets(&mut function, name, &presets)? {
                    written = None;
                }
                let is_bare = matches!(function.get("name"), Some(Node::Null));
                if is_bare
                    && let Some(description) = description_of(&callable.function, options.include_long_description)?
                {
                    function.push("description", description.into());
                }
                (function, converters_of(py, &callable.function, &callable.signature)?)
            }
            None => derive_function(py, &callable, name, &options, &presets)?,
        };
        if let Some(description) = options.description.as_deref().filter(|text| !text.is_empty()) {
            function.insert("description", description.to_owned().into());
            written = None;
        }
        let (tags, traits) = std::mem::take(&mut options.given).parse(name)?;
        traits.check(name, &callable.signature, function.get("parameters").unwrap_or(&Node::Null))?;
        Ok(Self {
            callable,
            options,
            presets,
            function,
            written,
            accepted,
            converters,
            is_supplied,
            tags,
            traits,
            server,
        })
    }

    /// The requested name.
    pub(crate) fn name(&self) -> &str {
        self.options.name.as_deref().unwrap_or(&self.callable.name)
    }

    /// Makes the tool of a toolkit with its final name and groups.
    pub(crate) fn finish_in(
        self,
        py: Python<'py>,
        toolkit: &PyToolkit,
        name: impl Into<Arc<str>>,
        seat: impl Into<Memberships>,
    ) -> PyResult<PyTool> {
        let is_meta = is_meta_tool_of(toolkit, &self.callable.function)?;
        let permissions = toolkit.permissions(py).clone().unbind();
        self.finish(py, name.into(), seat.into(), toolkit.behaviour(), permissions, is_meta)
    }

    /// Makes a tool with its final name and groups.
    pub(crate) fn finish(
        self,
        py: Python<'py>,
        name: Arc<str>,
        seat: Memberships,
        behaviour: Behaviour,
        permissions: Py<PyPermissions>,
        is_meta: bool,
    ) -> PyResult<PyTool> {
        let is_renamed = self.options.name.is_some() || *name != *self.callable.name;
        let Self {
            callable,
            options,
            presets,
            function,
            written,
            accepted,
            converters,
            is_supplied,
            tags,
            traits,
            server,
        } = self;
        let written = written.filter(|_| !is_renamed);
        let schema = written.unwrap_or_else(|| {
            let listed = function.get("name").and_then(Node::as_str).filter(|_| options.keeps_schema_name);
            Arc::new(FunctionSchema::new(&function, listed.unwrap_or(&name)))
        });
        let meta = is_meta.then(Box::default);
        let mut parameters = Cow::Borrowed(function.get("parameters").unwrap_or(&Node::Null));
        let mut document = Cow::Borrowed(schema.parameters());
        if is_meta {
            parameters = Cow::Owned(with_any_switch(&parameters));
        } else if let Some(accepted) = accepted {
            parameters = Cow::Owned(accepted);
        }
        if let Cow::Owned(parameters) = &parameters {
            document = Cow::Owned(Arc::new(Document::new(parameters)));
        }
        let plan = Plan::new(
            py,
            &name,
            &callable.signature,
            &presets,
            &parameters,
            &document,
            is_supplied,
            if behaviour.arguments == ArgumentMode::Coerce { converters } else { Converters::default() },
            Handling {
                arguments: behaviour.arguments,
                repair: behaviour.repair,
                aliases: shared_list(&traits.aliases),
                secrets: shared_list(&traits.secrets),
            },
        )?;
        let body = match &callable.function {
            function if function.is_instance_of::<PyNativeTool>() => ToolBody::Native,
            function if function.is_instance_of::<PyAgentTool>() => ToolBody::Agent,
            _ => ToolBody::Python,
        };
        // The built-in meta tool is quick and needs no thread; one that a subclass overrides may block.
        let is_quick = is_meta && options.timeout.is_none() && callable.function.is_instance_of::<PyCFunction>();
        // A meta tool changes its toolkit, which is in this process.
        let default = match behaviour.run_in {
            _ if is_quick => RunIn::Inline,
            RunIn::Process if is_meta || callable.kind.is_async() => RunIn::Thread,
            place => place,
        };
        let run_in = effective_run_in(&callable, options.run_in.unwrap_or(default), options.timeout)?;
        let allow_cache = AllowCache::new(seat.group().revision().clone());
        seat.set_tags(tags);
        Ok(PyTool {
            name,
            seat: Arc::new(seat),
            schema,
            traits: traits.shared(),
            permissions,
            allow_cache,
            schema_hash: OnceLock::new(),
            other_names: OtherNames::of(is_renamed.then_some(callable.name), server),
            function: callable.function.unbind(),
            presets: (!presets.is_empty()).then(|| presets.unbind()),
            is_delivery_handled: options.postprocess.is_some() || options.response_class.is_some(),
            postprocess: options.postprocess,
            response_class: options.response_class,
            result_budget: options.result_budget,
            kind: callable.kind,
            body,
            run_in,
            timeout: options.timeout,
            async_execution: options.async_execution,
            errors: behaviour.errors,
            chunks: options.chunks.unwrap_or(behaviour.chunks),
            plan,
            template: GilOnce::new(),
            dialects: DialectCache::default(),
            extension: None,
            meta,
        })
    }
}

/// True if `function` is the meta tool of this very toolkit.
fn is_meta_tool_of(toolkit: &PyToolkit, function: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = function.py();
    if function.is_exact_instance_of::<PyFunction>() {
        return Ok(false);
    }
    let Some(name) = function.getattr_opt(intern!(py, "__name__"))? else { return Ok(false) };
    if !name.cast::<PyString>().is_ok_and(|name| *name == META_TOOL) {
        return Ok(false);
    }
    let owner = function.getattr_opt(intern!(py, "__self__"))?;
    Ok(owner.is_some_and(|owner| owner.cast::<PyToolkit>().is_ok_and(|owner| std::ptr::eq(owner.get(), toolkit))))
}

/// A shared copy of a list. The empty one allocates nothing.
fn shared_list<T: Clone>(list: &[T]) -> Arc<[T]> {
    if list.is_empty() { Arc::default() } else { list.into() }
}

/// The arguments that partials have bound, overridden by the presets of the registration.
fn presets_of<'py>(callable: &Callable<'py>, given: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Ok(callable.bound.clone()) };
    let presets = callable.bound.copy()?;
    for (name, value) in entries_of(given) {
        presets.set_item(preset_name(&name)?, value)?;
    }
    Ok(presets)
}

/// The presets of a tool that has none: one dict, which must not be modified.
pub(crate) fn no_presets(py: Python<'_>) -> &Bound<'_, PyDict> {
    static NONE: GilOnce<Py<PyDict>> = GilOnce::new();
    NONE.get_or_init(py, || PyDict::new(py).unbind()).bind(py)
}

/// The name of a preset as a plain `str`, so that comparing it with the names that a model sends runs no user code.
fn preset_name<'py>(name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    let Ok(text) = name.cast::<PyString>() else {
        let class = name.get_type().qualname()?;
        return Err(PyTypeError::new_err(format!("the names in preset_kwargs must be text, not {class}")));
    };
    if text.is_exact_instance_of::<PyString>() {
        Ok(text.clone())
    } else {
        Ok(PyString::new(name.py(), text.to_str()?))
    }
}

/// Refuses a function that says that its signature is not its schema: deriving one would lose every parameter.
fn refuse_underivable(callable: &Callable<'_>, tool: &str) -> PyResult<()> {
    let name = intern!(callable.function.py(), "__requires_json_schema__");
    // A function without attributes has flags.
    if callable.signature.flags.is_some() || callable.function.getattr_opt(name)?.is_none() {
        return Ok(());
    }
    Err(Error::UnderivableSchema { tool: tool.to_owned() }.into())
}

/// The `function` part of a schema, derived from the signature and the docstring.
fn derive_function(
    py: Python<'_>,
    callable: &Callable<'_>,
    name: &str,
    options: &ToolOptions<'_>,
    presets: &Bound<'_, PyDict>,
) -> PyResult<(Entries, Converters)> {
    refuse_underivable(callable, name)?;
    let hidden = |parameter: &str| !presets.is_empty() && presets.contains(parameter).unwrap_or(false);
    let described = describe(
        py,
        &callable.function,
        &callable.signature,
        &DescribeOptions {
            tool: name,
            include_long_description: options.include_long_description,
            include_var_positional: options.include_var_positional,
            include_var_keyword: options.include_var_keyword,
            exact_docstring: options.is_lenient,
            hidden: &hidden,
        },
    )?;
    if !options.is_lenient {
        warn_of_documented(py, name, callable, &described.unshown)?;
    }
    let mut function = Entries::with_capacity(3);
    // A placeholder: the tool may get another name.
    function.push("name", Node::Null);
    function.push("parameters", described.parameters);
    if let Some(description) = described.description {
        function.push("description", description.into());
    }
    Ok((function, described.converters))
}

/// A copy of the `function` part of a supplied schema.
fn function_part(schema: &Bound<'_, PyAny>, is_lenient: bool) -> PyResult<Entries> {
    let invalid = |reason: &str| Error::InvalidSchema { reason: reason.to_owned() };
    if !schema.is_instance_of::<PyDict>() {
        return Err(invalid("").into());
    }
    let value = json::from_python(schema).map_err(|error| {
        if error.is_instance_of::<PyRecursionError>(schema.py()) { error } else { invalid(&error.to_string()).into() }
    })?;
    function_of(value, is_lenient)
}

/// The `function` part of a schema, which may be the schema of the parameters alone unless it has to be one that AgentScope
/// accepts.
fn function_of(schema: Node, is_lenient: bool) -> PyResult<Entries> {
    let invalid = |reason: &str| Error::InvalidSchema { reason: reason.to_owned() };
    let Node::Object(mut schema) = schema else { return Err(invalid("").into()) };
    let kind = schema.get("type").and_then(Node::as_str);
    let is_function = kind == Some("function");
    if !is_lenient && kind == Some("object") && !schema.contains_key("function") {
        let mut function = Entries::with_capacity(3);
        function.push("name", Node::Null);
        function.push("parameters", Node::Object(schema));
        return Ok(function);
    }
    match schema.remove("function") {
        Some(Node::Object(function)) if is_function => Ok(function),
        _ if is_lenient => Err(invalid("").into()),
        _ => Err(invalid(
            "Expected {\"type\": \"function\", \"function\": {...}}, or the schema of the parameters, {\"type\": \"object\", ...}",
        )
        .into()),
    }
}

/// Removes presets from a supplied schema, so that the model does not see them. True if the schema may have changed.
fn hide_presets(function: &mut Entries, tool: &str, presets: &Bound<'_, PyDict>) -> Result<bool> {
    let missing = |key: &str| Error::IncompleteSchema { tool: tool.to_owned(), key: key.to_owned() };
    let Some(Node::Object(parameters)) = function.get_mut("parameters") else {
        return Err(missing("parameters"));
    };
    let has_presets = !presets.is_empty();
    let is_preset = |name: &str| has_presets && presets.contains(PyString::new(presets.py(), name)).unwrap_or(false);
    match parameters.get_mut("properties") {
        Some(Node::Object(properties)) => properties.retain(|name, _| !is_preset(name)),
        _ if !has_presets => {}
        _ => return Err(missing("properties")),
    }
    let mut is_changed = has_presets;
    if let Some(Node::Array(required)) = parameters.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(is_preset));
        if required.is_empty() {
            parameters.remove("required");
            is_changed = true;
        }
    }
    Ok(is_changed)
}

/// Parses the name of a namesake strategy.
pub(crate) fn parse_namesake(word: &str) -> PyResult<NameConflict> {
    NameConflict::parse(word).ok_or_else(|| {
        PyValueError::new_err(format!(
            "Invalid namesake_strategy: {word}. Supported strategies are 'raise', 'override', 'skip', and 'rename'."
        ))
    })
}

/// The random suffix of a new name: five letters and digits.
pub(crate) fn random_suffix() -> String {
    use std::hash::{BuildHasher, RandomState};
    let mut bits = RandomState::new().hash_one(std::time::SystemTime::now());
    let mut letter = || {
        let index = usize::try_from(bits % ID_LETTERS.len() as u64).unwrap_or_default();
        bits /= ID_LETTERS.len() as u64;
        char::from(ID_LETTERS[index])
    };
    (0..5).map(|_| letter()).collect()
}
