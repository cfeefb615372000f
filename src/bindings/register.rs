//! From a callable and the developer's wishes to a tool: the first half of the one path.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyDict, PyString};

use super::call::{Handling, Plan};
use super::callable::Callable;
use super::described::Described;
use super::json as bridge;
use super::meta::open;
use super::native::PyNativeTool;
use super::policy::PyPermissions;
use super::schema::{Wanted, describe};
use super::tool::{PyTool, place};
use super::traits::{Said, Tags, Traits};
use crate::call::repair::RepairMode;
use crate::call::{ArgumentMode, ErrorMode, ID_LETTERS, RunIn};
use crate::policy::AllowCache;
use crate::registry::{Memberships, NameConflict, check_name};
use crate::schema::{Document, Entries, FunctionSchema, Node};
use crate::{Error, Result};

/// The switches of a toolkit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behaviour {
    pub(crate) arguments: ArgumentMode,
    pub(crate) repair: RepairMode,
    pub(crate) errors: ErrorMode,
    pub(crate) run_in: RunIn,
}

/// What the developer says about a tool.
#[allow(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
#[derive(Default)]
pub(crate) struct Wishes<'py> {
    pub(crate) presets: Option<Bound<'py, PyDict>>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) schema: Option<Bound<'py, PyAny>>,
    pub(crate) include_long_description: bool,
    pub(crate) include_var_positional: bool,
    pub(crate) include_var_keyword: bool,
    pub(crate) postprocess: Option<Py<PyAny>>,
    pub(crate) run_in: Option<RunIn>,
    pub(crate) timeout: Option<f64>,
    pub(crate) async_execution: bool,
    pub(crate) said: Said,
}

/// A tool that only lacks its place in the registry.
pub(crate) struct Draft<'py> {
    callable: Callable<'py>,
    /// With `name` only if that is another one than the callable's own.
    wishes: Wishes<'py>,
    presets: Bound<'py, PyDict>,
    function: Entries,
    is_supplied: bool,
    tags: Tags,
    traits: Traits,
    /// The MCP server it comes from.
    server: Option<String>,
}

impl<'py> Draft<'py> {
    /// Works out everything about a tool but its final name.
    pub(crate) fn new(tool: &Bound<'py, PyAny>, mut wishes: Wishes<'py>) -> PyResult<Self> {
        let py = tool.py();
        let supplied = match &wishes.schema {
            // An empty schema means: derive it.
            Some(schema) if schema.is_truthy()? => Some(function_of(schema)?),
            _ => None,
        };
        let mut callable = Callable::read(tool)?;
        let native = callable.function.cast::<PyNativeTool>().ok();
        if let Some(native) = native {
            native.get().complete(&mut wishes);
        }
        // A partial around a native tool says nothing of itself.
        let described = Described::read(native.map_or(tool, |native| native.as_any()))?;
        let (supplied, server) = match described {
            Some(Described { name, schema, server, permission }) => {
                callable.name = name;
                // The stricter of the two holds, and "auto" is also what it is where nothing was said.
                if permission.is_some() && wishes.said.permission.as_deref().is_none_or(|word| word == "auto") {
                    wishes.said.permission = permission;
                }
                (Some(supplied.map_or_else(|| function_of(&schema), Ok)?), server)
            }
            None => (supplied, None),
        };
        let presets = presets_of(&callable, wishes.presets.as_ref())?;
        if let Some(postprocess) = wishes.postprocess.as_ref().filter(|function| !function.bind(py).is_callable()) {
            let class = postprocess.bind(py).get_type().qualname()?;
            return Err(PyTypeError::new_err(format!("postprocess_func must be callable, not {class}")));
        }
        wishes.name = wishes.name.filter(|name| !name.is_empty());
        let name = wishes.name.as_deref().unwrap_or(&callable.name);
        check_name(name)?;
        let is_supplied = supplied.is_some();
        let mut function = match supplied {
            Some(mut function) => {
                hide(&mut function, name, &presets)?;
                function
            }
            None => derive(py, &callable, name, &wishes, &presets)?,
        };
        if let Some(description) = wishes.description.as_deref().filter(|text| !text.is_empty()) {
            function.insert("description", description.to_owned().into());
        }
        let (tags, traits) = std::mem::take(&mut wishes.said).read(name)?;
        traits.check(name, &callable.signature, function.get("parameters").unwrap_or(&Node::Null))?;
        Ok(Self { callable, wishes, presets, function, is_supplied, tags, traits, server })
    }

    /// The name it would like to have.
    pub(crate) fn name(&self) -> &str {
        self.wishes.name.as_deref().unwrap_or(&self.callable.name)
    }

    /// What would be called.
    pub(crate) fn function(&self) -> &Bound<'py, PyAny> {
        &self.callable.function
    }

    /// Makes the tool under the name it was given.
    pub(crate) fn finish(
        self,
        py: Python<'py>,
        name: impl Into<Arc<str>>,
        seat: impl Into<Memberships>,
        behaviour: Behaviour,
        permissions: Py<PyPermissions>,
        is_meta: bool,
    ) -> PyResult<PyTool> {
        let (name, seat): (Arc<str>, Memberships) = (name.into(), seat.into());
        let is_renamed = self.wishes.name.is_some() || *name != *self.callable.name;
        let Self { callable, wishes, presets, function, is_supplied, tags, traits, server } = self;
        let schema = Arc::new(FunctionSchema::new(&function, &name));
        let meta = is_meta.then(Box::default);
        let mut parameters = Cow::Borrowed(function.get("parameters").unwrap_or(&Node::Null));
        let mut document = Cow::Borrowed(schema.parameters());
        if is_meta {
            parameters = Cow::Owned(open(&parameters));
            document = Cow::Owned(Arc::new(Document::new(&parameters)));
        }
        let plan = Plan::new(
            py,
            &name,
            &callable.signature,
            &presets,
            &parameters,
            &document,
            is_supplied,
            Handling {
                arguments: behaviour.arguments,
                repair: behaviour.repair,
                aliases: shared(&traits.aliases),
                secrets: shared(&traits.secrets),
            },
        )?;
        // The meta tool is quick and has no business in a thread, unless somebody wrote it anew.
        let is_quick = is_meta && wishes.timeout.is_none() && callable.function.is_instance_of::<PyCFunction>();
        let usual = if is_quick { RunIn::Inline } else { behaviour.run_in };
        let run_in = place(&callable, wishes.run_in.unwrap_or(usual), wishes.timeout)?;
        let allow_cache = AllowCache::new(seat.group().revision().clone());
        Ok(PyTool {
            name,
            seat: Arc::new(seat),
            tags,
            schema,
            traits: traits.shared(),
            permissions,
            allow_cache,
            schema_hash: OnceLock::new(),
            original_name: is_renamed.then(|| callable.name.into()),
            server: server.map(Into::into),
            function: callable.function.unbind(),
            presets: (!presets.is_empty()).then(|| presets.unbind()),
            postprocess: wishes.postprocess,
            kind: callable.kind,
            run_in,
            timeout: wishes.timeout,
            async_execution: wishes.async_execution,
            errors: behaviour.errors,
            plan,
            listed: PyOnceLock::new(),
            told: super::dialect::Told::default(),
            extension: None,
            meta,
        })
    }
}

/// A list that the plan of a tool shares; the empty one is no memory of its own.
fn shared<T: Clone>(list: &[T]) -> Arc<[T]> {
    if list.is_empty() { Arc::default() } else { list.into() }
}

/// What a partial has bound, and over it what the developer presets.
fn presets_of<'py>(callable: &Callable<'py>, given: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Ok(callable.bound.clone()) };
    let presets = callable.bound.copy()?;
    for (name, value) in bridge::entries_of(given) {
        presets.set_item(preset_name(&name)?, value)?;
    }
    Ok(presets)
}

/// The dict of a tool without presets: the same for all of them, and never written to.
pub(crate) fn no_presets(py: Python<'_>) -> &Bound<'_, PyDict> {
    static NONE: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    NONE.get_or_init(py, || PyDict::new(py).unbind()).bind(py)
}

/// The name of a preset as plain text, so that comparing it with what a model sends runs nobody's code.
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

fn derive(
    py: Python<'_>,
    callable: &Callable<'_>,
    name: &str,
    wishes: &Wishes<'_>,
    presets: &Bound<'_, PyDict>,
) -> PyResult<Entries> {
    let hidden = |parameter: &str| !presets.is_empty() && presets.contains(parameter).unwrap_or(false);
    let described = describe(
        py,
        &callable.function,
        &callable.signature,
        &Wanted {
            tool: name,
            include_long_description: wishes.include_long_description,
            include_var_positional: wishes.include_var_positional,
            include_var_keyword: wishes.include_var_keyword,
            hidden: &hidden,
        },
    )?;
    let mut function = Entries::with_capacity(3);
    // Only its place: the tool may get another name.
    function.push("name", Node::Null);
    function.push("parameters", described.parameters);
    if let Some(description) = described.description {
        function.push("description", description.into());
    }
    Ok(function)
}

/// The `function` part of a schema that the developer supplied, as a copy.
fn function_of(schema: &Bound<'_, PyAny>) -> PyResult<Entries> {
    let invalid = |reason: &str| Error::InvalidSchema { reason: reason.to_owned() };
    if !schema.is_instance_of::<PyDict>() {
        return Err(invalid("").into());
    }
    let value = bridge::from_python(schema).map_err(|error| {
        if error.is_instance_of::<PyRecursionError>(schema.py()) { error } else { invalid(&error.to_string()).into() }
    })?;
    let Node::Object(mut schema) = value else { return Err(invalid("").into()) };
    let is_function = schema.get("type").and_then(Node::as_str) == Some("function");
    match schema.remove("function") {
        Some(Node::Object(function)) if is_function => Ok(function),
        _ => Err(invalid("").into()),
    }
}

/// Takes presets out of a supplied schema, so that the model does not see them.
fn hide(function: &mut Entries, tool: &str, presets: &Bound<'_, PyDict>) -> Result<()> {
    let missing = |key: &str| Error::IncompleteSchema { tool: tool.to_owned(), key: key.to_owned() };
    let Some(Node::Object(parameters)) = function.get_mut("parameters") else {
        return Err(missing("parameters"));
    };
    let is_preset = |name: &str| presets.contains(PyString::new(presets.py(), name)).unwrap_or(false);
    match parameters.get_mut("properties") {
        Some(Node::Object(properties)) => properties.retain(|name, _| !is_preset(name)),
        _ if presets.is_empty() => {}
        _ => return Err(missing("properties")),
    }
    if let Some(Node::Array(required)) = parameters.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(is_preset));
        if required.is_empty() {
            parameters.remove("required");
        }
    }
    Ok(())
}

/// Reads the word for a namesake strategy, when it is needed.
pub(crate) fn namesake(word: &str) -> PyResult<NameConflict> {
    NameConflict::parse(word).ok_or_else(|| {
        PyValueError::new_err(format!(
            "Invalid namesake_strategy: {word}. It must be 'raise', 'skip', 'override' or 'rename'."
        ))
    })
}

/// The random part of a new name: five letters and digits.
pub(crate) fn suffix() -> String {
    use std::hash::{BuildHasher, RandomState};
    let mut bits = RandomState::new().hash_one(std::time::SystemTime::now());
    let mut letter = || {
        let index = usize::try_from(bits % ID_LETTERS.len() as u64).unwrap_or_default();
        bits /= ID_LETTERS.len() as u64;
        char::from(ID_LETTERS[index])
    };
    (0..5).map(|_| letter()).collect()
}
