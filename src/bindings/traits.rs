//! What a developer says about a tool beside how it is called: tags, kind, permission, secrets, other names.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::signature::{ParameterKind, Signature};
use crate::policy::{Permission, ToolKind};
use crate::schema::Node;

/// What a developer says about a tool, as it was said.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) tags: Vec<String>,
    pub(crate) kind: Option<String>,
    pub(crate) permission: Option<String>,
    pub(crate) secrets: Vec<String>,
    pub(crate) aliases: Option<HashMap<String, String>>,
}

/// The words that views and rules choose a tool by: each once, in the order they were given.
pub(crate) type Tags = Arc<[Box<str>]>;

/// The same without the tags, understood.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Traits {
    pub(crate) kind: ToolKind,
    pub(crate) permission: Permission,
    /// The parameters whose values nobody but the tool sees.
    pub(crate) secrets: Box<[Box<str>]>,
    /// Other names of parameters, each with the name it stands for, in the order of the alphabet.
    pub(crate) aliases: Box<[(Box<str>, Box<str>)]>,
}

impl Said {
    /// Reads the words; what does not fit is told with the tool's name.
    pub(crate) fn read(self, tool: &str) -> PyResult<(Tags, Traits)> {
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
                PyValueError::new_err(format!("tool `{tool}`: permission must be 'auto' or 'confirm', not '{word}'"))
            })?,
        };
        if self.tags.iter().any(String::is_empty) {
            return Err(PyValueError::new_err(format!("tool `{tool}`: a tag must not be empty")));
        }
        let mut aliases: Vec<(Box<str>, Box<str>)> =
            self.aliases.into_iter().flatten().map(|(other, name)| (other.into(), name.into())).collect();
        aliases.sort();
        let tags = if self.tags.is_empty() { Tags::default() } else { each_once(self.tags).into() };
        Ok((tags, Traits { kind, permission, secrets: each_once(self.secrets), aliases: aliases.into() }))
    }
}

impl Traits {
    /// To be shared. Nothing is said about most tools, and these have one and the same.
    pub(crate) fn shared(self) -> Arc<Self> {
        static NOTHING: LazyLock<Arc<Traits>> = LazyLock::new(Arc::default);
        if self == **NOTHING { NOTHING.clone() } else { Arc::new(self) }
    }

    /// Sees whether the names are those of parameters: a secret that is misspelt would be shown to everybody.
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
        // A secret may be named by the way to it: `login.password`.
        let first = |way: &str| way.split('.').next().unwrap_or_default().to_owned();
        let is_known = |way: &str| [way, &first(way)].iter().any(|name| is_shown(name) || is_declared(name));
        if let Some(name) = self.secrets.iter().find(|way| !is_open && !is_known(way)) {
            return Err(PyValueError::new_err(format!("tool `{tool}`: secrets names `{name}`, which is no parameter")));
        }
        for (other, name) in &self.aliases {
            if !is_shown(name) && !is_open {
                return Err(PyValueError::new_err(format!(
                    "tool `{tool}`: aliases has `{other}` stand for `{name}`, which is no parameter that a model sends"
                )));
            }
            if is_shown(other) || is_declared(other) {
                return Err(PyValueError::new_err(format!(
                    "tool `{tool}`: aliases has `{other}` stand for `{name}`, but `{other}` is a parameter itself"
                )));
            }
        }
        Ok(())
    }

    /// The other names of parameters, with the names they stand for.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(other, name)| (&**other, &**name))
    }
}

fn each_once(words: Vec<String>) -> Box<[Box<str>]> {
    let mut kept: Vec<Box<str>> = Vec::with_capacity(words.len());
    for word in words {
        if !kept.iter().any(|known| **known == *word) {
            kept.push(word.into());
        }
    }
    kept.into()
}
