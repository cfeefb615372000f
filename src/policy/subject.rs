//! The facts about a call that rules can look at.

use std::cell::LazyCell;

use serde_json::Value;

use super::{Kind, Permission};

/// The facts about a call, without its arguments, that rules can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallFacts<'a> {
    /// The name of the tool.
    pub tool: &'a str,
    /// The MCP server that it belongs to, by the name that this program has for it and never by what the server says.
    pub server: Option<&'a str>,
    /// The groups that hold it.
    pub groups: &'a [&'a str],
    /// Its tags.
    pub tags: &'a [&'a str],
    /// What it does to the world.
    pub kind: Kind,
    /// True if the tool itself asks for confirmation.
    pub permission: Permission,
    /// The caller, if one is named.
    pub caller: Option<&'a str>,
}

impl<'a> CallFacts<'a> {
    /// A call of a tool of which nothing more is known.
    #[must_use]
    pub const fn of(tool: &'a str) -> Self {
        Self {
            tool,
            server: None,
            groups: &[],
            tags: &[],
            kind: Kind::Other,
            permission: Permission::Auto,
            caller: None,
        }
    }
}

/// The arguments of a call, which are asked for only when a rule looks at them.
///
/// They are what the tool will be run with. Arguments that cannot be told as JSON must be refused before: a rule that
/// denies could not see what it is there to deny. A call without any has `null`.
pub trait Arguments {
    /// The arguments; an object, or `null`.
    fn value(&self) -> &Value;
}

impl Arguments for Value {
    fn value(&self) -> &Value {
        self
    }
}

impl<F: FnOnce() -> Value> Arguments for LazyCell<Value, F> {
    fn value(&self) -> &Value {
        self
    }
}

/// What is remembered of a subject, to know it again.
#[derive(Debug)]
pub(super) struct Known {
    tool: Box<str>,
    server: Option<Box<str>>,
    groups: Box<[Box<str>]>,
    tags: Box<[Box<str>]>,
    kind: Kind,
    permission: Permission,
    caller: Option<Box<str>>,
}

impl Known {
    pub(super) fn new(subject: &CallFacts<'_>) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| Box::from(*name)).collect();
        Self {
            tool: subject.tool.into(),
            server: subject.server.map(Box::from),
            groups: owned(subject.groups),
            tags: owned(subject.tags),
            kind: subject.kind,
            permission: subject.permission,
            caller: subject.caller.map(Box::from),
        }
    }

    pub(super) fn is(&self, subject: &CallFacts<'_>) -> bool {
        let same = |ours: &[Box<str>], theirs: &[&str]| ours.iter().map(AsRef::as_ref).eq(theirs.iter().copied());
        *self.tool == *subject.tool
            && self.server.as_deref() == subject.server
            && self.caller.as_deref() == subject.caller
            && (self.kind, self.permission) == (subject.kind, subject.permission)
            && same(&self.groups, subject.groups)
            && same(&self.tags, subject.tags)
    }
}
