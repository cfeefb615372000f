//! The options of a registration, as given and as parsed, and the switches of a toolkit.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::callable::{ParameterKind, Signature};
use crate::bindings::budget::PyResultBudget;
use crate::bindings::foreign_response::ResponseClass;
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
