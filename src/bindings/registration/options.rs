//! The options of a registration: as given, as parsed, and checked against the callable; and the switches of a toolkit.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::callable::{Callable, ParameterKind, Signature};
use crate::bindings::budget::PyResultBudget;
use crate::bindings::foreign_response::ResponseClass;
use crate::bindings::json::entries_of;
use crate::bindings::once::intern;
use crate::bindings::warn;
use crate::call::repair::RepairMode;
use crate::call::{ArgumentMode, ChunkRule, ErrorMode, RunIn};
use crate::near::did_you_mean;
use crate::policy::{Permission, ToolKind};
use crate::schema::Node;

/// The switches of a toolkit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behaviour {
    pub(crate) arguments: ArgumentMode,
    pub(crate) repair: RepairMode,
    pub(crate) errors: ErrorMode,
    pub(crate) run_in: RunIn,
    pub(crate) chunks: ChunkRule,
}

/// The options with which a tool is registered.
#[allow(clippy::struct_excessive_bools, reason = "each is a parameter of its own")]
#[derive(Default)]
pub(crate) struct ToolOptions<'py> {
    pub(crate) presets: Option<Bound<'py, PyDict>>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) schema: Option<Bound<'py, PyAny>>,
    /// True if the schema is listed under its own name, even if calls use another one.
    pub(crate) keeps_schema_name: bool,
    pub(crate) include_long_description: bool,
    pub(crate) include_var_positional: bool,
    pub(crate) include_var_keyword: bool,
    pub(crate) postprocess: Option<Py<PyAny>>,
    pub(crate) run_in: Option<RunIn>,
    pub(crate) timeout: Option<f64>,
    pub(crate) async_execution: bool,
    pub(crate) chunks: Option<ChunkRule>,
    pub(crate) result_budget: Option<Py<PyResultBudget>>,
    /// The class of its responses, if it is that of another library.
    pub(crate) response_class: Option<ResponseClass>,
    pub(crate) given: GivenOptions,
    /// True if probable mistakes are neither refused nor warned of, and docstrings are read exactly, as in AgentScope.
    pub(crate) is_lenient: bool,
}

/// The options that are words or names, before they are parsed for a tool.
#[derive(Default)]
pub(crate) struct GivenOptions {
    pub(crate) tags: Vec<String>,
    pub(crate) kind: Option<String>,
    pub(crate) permission: Option<String>,
    pub(crate) confirmation: Confirmation,
    pub(crate) calls_agents: bool,
    pub(crate) secrets: Vec<String>,
    pub(crate) aliases: Option<HashMap<String, String>>,
}

/// The part that a tool itself has in the approval of its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Confirmation {
    /// None.
    #[default]
    Silent,
    /// It describes a call to the approver.
    Describes,
    /// It also decides whether a call that no rule allows needs approval.
    Decides,
}

/// The words by which views and rules select a tool, without repetition.
pub(crate) type Tags = Arc<[Box<str>]>;

/// The properties of a tool that decide how its calls are handled.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct ToolTraits {
    pub(crate) kind: ToolKind,
    pub(crate) permission: Permission,
    pub(crate) confirmation: Confirmation,
    /// True for a tool that calls agents, which agents get only by its name.
    pub(crate) calls_agents: bool,
    /// The parameters whose values are redacted.
    pub(crate) secrets: Box<[Box<str>]>,
    /// Alternative names of parameters, each with the parameter, in alphabetical order.
    pub(crate) aliases: Box<[(Box<str>, Box<str>)]>,
}

impl GivenOptions {
    /// Parses the options of the tool `tool`.
    pub(crate) fn parse(self, tool: &str) -> PyResult<(Tags, ToolTraits)> {
        let kind = match self.kind {
            None => ToolKind::default(),
            Some(word) => ToolKind::parse(&word).ok_or_else(|| {
                let words: Vec<_> = ToolKind::ALL.iter().map(|kind| format!("'{}'", kind.as_str())).collect();
                PyValueError::new_err(format!("tool `{tool}`: kind must be one of {}, not '{word}'", words.join(", ")))
            })?,
        };
        let permission = match self.permission {
            None => Permission::default(),
            Some(word) => Permission::parse(&word).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "tool `{tool}`: permission must be 'auto', 'confirm' or 'kind', not '{word}'"
                ))
            })?,
        };
        if self.tags.iter().any(String::is_empty) {
            return Err(PyValueError::new_err(format!("tool `{tool}`: a tag must not be empty")));
        }
        let mut aliases: Vec<(Box<str>, Box<str>)> =
            self.aliases.into_iter().flatten().map(|(other, name)| (other.into(), name.into())).collect();
        aliases.sort();
        let tags = if self.tags.is_empty() { Tags::default() } else { deduplicated(self.tags).into() };
        let Self { confirmation, calls_agents, .. } = self;
        let secrets = deduplicated(self.secrets);
        Ok((tags, ToolTraits { kind, permission, confirmation, calls_agents, secrets, aliases: aliases.into() }))
    }
}

impl ToolTraits {
    /// Returns a shared copy. Most tools have the defaults, for which there is one object.
    pub(crate) fn shared(self) -> Arc<Self> {
        static DEFAULTS: LazyLock<Arc<ToolTraits>> = LazyLock::new(Arc::default);
        if self == **DEFAULTS { DEFAULTS.clone() } else { Arc::new(self) }
    }

    /// Checks that the names are those of parameters: a misspelt secret would not be redacted.
    pub(crate) fn check(&self, tool: &str, signature: &Signature, parameters: &Node) -> PyResult<()> {
        if self.secrets.is_empty() && self.aliases.is_empty() {
            return Ok(());
        }
        let properties = parameters.get("properties").and_then(Node::as_object);
        let is_shown = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        let is_declared =
            |name: &str| signature.parameters.iter().any(|parameter| *parameter.name.to_string() == *name);
        let is_open = properties.is_none()
            || parameters.get("additionalProperties").is_some_and(|rest| *rest != Node::Bool(false))
            || signature.parameters.iter().any(|parameter| parameter.kind == ParameterKind::VarKeyword);
        // A secret may be a path, such as `login.password`.
        let first = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
        let is_known = |path: &str| [path, &first(path)].iter().any(|name| is_shown(name) || is_declared(name));
        if let Some(name) = self.secrets.iter().find(|path| !is_open && !is_known(path)) {
            let known: Vec<String> = signature.parameters.iter().map(|parameter| parameter.name.to_string()).collect();
            let hint = did_you_mean(name, known.iter().map(String::as_str));
            return Err(PyValueError::new_err(format!("tool `{tool}`: unknown parameter `{name}` in secrets{hint}")));
        }
        for (other, name) in &self.aliases {
            if !is_shown(name) && !is_open {
                let known = signature.parameters.iter().map(|parameter| parameter.name.to_string());
                let known: Vec<String> = known.filter(|known| is_shown(known)).collect();
                let hint = did_you_mean(name, known.iter().map(String::as_str));
                return Err(PyValueError::new_err(format!(
                    "tool `{tool}`: invalid alias `{other}`: unknown parameter `{name}`, or one that a model does not send{hint}"
                )));
            }
            if is_shown(other) || is_declared(other) {
                return Err(PyValueError::new_err(format!(
                    "tool `{tool}`: invalid alias `{other}` of `{name}`: `{other}` is a parameter itself"
                )));
            }
        }
        Ok(())
    }

    /// The alternative names of parameters, each with the parameter.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(other, name)| (&**other, &**name))
    }
}

/// The words without repetition, in their order.
fn deduplicated(words: Vec<String>) -> Box<[Box<str>]> {
    let mut kept: Vec<Box<str>> = Vec::with_capacity(words.len());
    for word in words {
        if !kept.iter().any(|known| **known == *word) {
            kept.push(word.into());
        }
    }
    kept.into()
}

/// The longest name that every provider accepts.
const LONGEST_NAME: usize = 64;

/// Refuses registrations that cannot work, and warns of those that are probably not meant: names that no parameter has, methods
/// without their object, names that providers refuse.
pub(super) fn check_mistakes(
    py: Python<'_>,
    tool: &str,
    callable: &Callable<'_>,
    options: &ToolOptions<'_>,
    is_named_here: bool,
) -> PyResult<()> {
    let names = Names { py, callable };
    check_presets(tool, &names, options)?;
    check_receiver(tool, callable, options)?;
    if is_named_here && !is_portable(tool) {
        warn(
            py,
            &format!(
                "model providers refuse the tool name `{tool}`: expected 1 to {LONGEST_NAME} letters, digits, `_` and `-`; \
                 pass another one as `name=`"
            ),
        )?;
    }
    Ok(())
}

/// Warns of parameters that the docstring of a function describes, and that the function does not have.
pub(super) fn warn_of_documented(
    py: Python<'_>,
    tool: &str,
    callable: &Callable<'_>,
    documented: &[String],
) -> PyResult<()> {
    let names = Names { py, callable };
    let is_name = |name: &str| name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let mut unknown =
        documented.iter().map(|name| name.trim_start_matches('*')).filter(|name| !names.has(name)).peekable();
    if unknown.peek().is_none() || names.is_open() {
        return Ok(());
    }
    // The docstring of a class describes its attributes too.
    let function = &callable.function;
    if !function.hasattr(intern!(py, "__code__"))? && !function.hasattr(intern!(py, "__func__"))? {
        return Ok(());
    }
    for name in unknown {
        if is_name(name) {
            let hint = did_you_mean(name, names.all());
            warn(py, &format!("tool `{tool}`: the docstring describes `{name}`, which is not a parameter{hint}"))?;
        }
    }
    Ok(())
}

/// The names of the parameters of a callable.
struct Names<'a, 'py> {
    py: Python<'py>,
    callable: &'a Callable<'py>,
}

impl Names<'_, '_> {
    /// True if it accepts any keyword.
    fn is_open(&self) -> bool {
        self.callable.signature.parameters.iter().any(|parameter| parameter.kind == ParameterKind::VarKeyword)
    }

    /// True for a parameter, and for the receiver of a method that was registered without its object.
    fn has(&self, name: &str) -> bool {
        self.all().any(|known| known == name) || (self.callable.signature.lacks_receiver && is_receiver(name))
    }

    fn all(&self) -> impl Iterator<Item = &str> {
        self.callable.signature.parameters.iter().filter_map(|parameter| parameter.name.bind(self.py).to_str().ok())
    }
}

fn is_receiver(name: &str) -> bool {
    matches!(name, "self" | "cls")
}

/// Refuses a preset that no parameter takes: the parameter that was meant would be left to the model.
fn check_presets(tool: &str, names: &Names<'_, '_>, options: &ToolOptions<'_>) -> PyResult<()> {
    let Some(presets) = options.presets.as_ref().filter(|presets| !presets.is_empty() && !names.is_open()) else {
        return Ok(());
    };
    for (name, _) in entries_of(presets) {
        let Ok(name) = name.cast::<PyString>().map(|name| name.to_string_lossy().into_owned()) else { continue };
        if !names.has(&name) {
            let hint = did_you_mean(&name, names.all());
            let message = format!("tool `{tool}`: unknown parameter `{name}` in preset_kwargs{hint}");
            return Err(PyValueError::new_err(message));
        }
    }
    Ok(())
}

/// Refuses a method without its object, which no call could pass.
fn check_receiver(tool: &str, callable: &Callable<'_>, options: &ToolOptions<'_>) -> PyResult<()> {
    if !callable.signature.lacks_receiver {
        return Ok(());
    }
    let is_receiver_preset = |(name, _): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        name.cast::<PyString>().is_ok_and(|name| is_receiver(&name.to_string_lossy()))
    };
    let presets = options.presets.iter().flat_map(entries_of).chain(entries_of(&callable.bound));
    if presets.into_iter().any(|preset| is_receiver_preset(&preset)) {
        return Ok(());
    }
    let function = &callable.function;
    let path = function.getattr("__qualname__").map_or_else(|_| tool.to_owned(), |name| name.to_string());
    Err(PyTypeError::new_err(format!(
        "tool `{tool}`: `{path}` is a method without its object: register the method of an object, \
         or pass the object in preset_kwargs"
    )))
}

/// True for a name that every provider accepts.
fn is_portable(name: &str) -> bool {
    let is_accepted = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    name.len() <= LONGEST_NAME && name.bytes().all(is_accepted)
}
