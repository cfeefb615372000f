//! Rules: the calls that a rule matches, and the decision for them.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::approval::AnsweredQuestions;
use super::argument::{Condition, Width};
use super::file::{Fault, invalid, parse_rule};
use super::pattern::{self, ArgumentTexts, ArgumentsPattern, Glob, Parsed};
use super::{CallFacts, Cause, Decision};
use crate::Result;

/// The highest priority in a tier.
pub const MAX_PRIORITY: u16 = 999;

/// A rule of a policy. It is made by [`Rule::from_value`] and never changes.
#[derive(Debug, Clone)]
pub struct Rule {
    pub(super) id: Arc<str>,
    pub(super) tier: Tier,
    pub(super) priority: u16,
    pub(super) decision: Decision,
    pub(super) reason: Option<Box<str>>,
    pub(super) is_shadow: bool,
    pub(super) answers: Option<AnsweredQuestions>,
    pub(super) facts: FactConditions,
    pub(super) arguments: Box<[Condition]>,
    pub(super) pattern: Option<ArgumentsPattern>,
    pub(super) origin: Option<Origin>,
    /// The fields that it was parsed from.
    pub(super) fields: Map<String, Value>,
}

/// The place that a rule was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file.
    pub file: Arc<str>,
    /// The first line of the rule, from 1; zero if it was written there and not read yet.
    pub line: usize,
    /// The number of the rule in the file, from 1; zero likewise, and for a rule that stands for a whole file.
    pub index: usize,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => formatter.write_str(&self.file),
            line => write!(formatter, "{}:{line}", self.file),
        }
    }
}

impl Rule {
    /// Parses a rule from its fields, as in a policy file; `tier` may be among them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRule`](crate::Error::InvalidRule) with everything that is wrong with it.
    pub fn from_value(value: &Value) -> Result<Self> {
        let Value::Object(fields) = value else {
            return Err(invalid("", &[Fault::whole("expected a table of fields")]));
        };
        let parsed = parse_rule(fields, true);
        parsed.rule.map_err(|faults| invalid(&parsed.partial.id.unwrap_or_default(), &faults))
    }

    /// The fields that it was parsed from, with its id and tier.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        if !self.id.is_empty() {
            fields.insert("id".to_owned(), (*self.id).into());
        }
        fields.insert("tier".to_owned(), self.tier.as_str().into());
        for (key, value) in &self.fields {
            fields.entry(key).or_insert_with(|| value.clone());
        }
        Value::Object(fields)
    }

    /// The id, unique in its policy; empty as long as the rule has none and is in no policy.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The tier: rules of stronger tiers are tried first.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// The priority in the tier: rules of higher priority are tried first.
    #[must_use]
    pub fn priority(&self) -> u16 {
        self.priority
    }

    /// The decision for the calls that it matches.
    #[must_use]
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// The reason, for the model and for approvers.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// True in shadow mode: the rule only reports the decision it would take.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// True if the rule is a lasting approval: it counts only where an approver would be asked, and never against a rule that
    /// denies.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.answers.is_some()
    }

    /// True if the rule answers the question of a cause. A rule of a weaker tier never does.
    pub(super) fn answers(&self, cause: &Cause) -> bool {
        cause.rule().is_none_or(|rule| rule.tier <= self.tier) && self.answers.is_some_and(|it| it.include(cause))
    }

    /// The file and line that it comes from, if it was in a file.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// True if it has conditions on arguments.
    #[must_use]
    pub fn needs_arguments(&self) -> bool {
        !self.arguments.is_empty() || self.pattern.is_some()
    }

    /// True if it matches a call.
    #[must_use]
    pub fn matches(&self, facts: &CallFacts<'_>, arguments: &Value) -> bool {
        self.facts.mismatch(facts).is_none()
            && self.argument_mismatch(arguments, &mut ArgumentTexts::default()).is_none()
    }

    /// The first condition that the arguments do not fulfil.
    pub(super) fn argument_mismatch(&self, arguments: &Value, texts: &mut ArgumentTexts) -> Option<ArgumentField> {
        // Rules that allow match narrowly, rules that ask or deny match widely.
        let width = match self.decision {
            Decision::Allow => Width::Narrow,
            Decision::Ask | Decision::Deny => Width::Wide,
        };
        if let Some(at) = self.arguments.iter().position(|condition| !condition.holds(arguments, width)) {
            return Some(ArgumentField::Condition(at));
        }
        match &self.pattern {
            Some(pattern) if !pattern.is_match(arguments, texts) => Some(ArgumentField::Pattern),
            _ => None,
        }
    }
}

/// The conditions of a rule on the facts about a call; `None` holds for every call.
#[derive(Debug, Clone, Default)]
pub(super) struct FactConditions {
    pub(super) tool: Option<NamePatterns>,
    pub(super) server: Option<NamePatterns>,
    pub(super) group: Option<NamePatterns>,
    pub(super) tag: Option<NamePatterns>,
    pub(super) caller: Option<NamePatterns>,
    pub(super) kind: Option<Box<[ToolKind]>>,
}

/// The conditions on facts, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactField {
    Tool,
    Server,
    Group,
    Tag,
    Kind,
    Caller,
}

/// The conditions on arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArgumentField {
    Condition(usize),
    Pattern,
}

impl FactConditions {
    /// The first condition that a call does not fulfil.
    pub(super) fn mismatch(&self, facts: &CallFacts<'_>) -> Option<FactField> {
        let is_of_other = || self.caller.as_ref().is_some_and(|names| !names.match_caller(facts.caller));
        self.mismatch_apart_from_caller(facts).or_else(|| is_of_other().then_some(FactField::Caller))
    }

    /// The same without regard to the caller.
    pub(super) fn mismatch_apart_from_caller(&self, facts: &CallFacts<'_>) -> Option<FactField> {
        let fails = |patterns: &Option<NamePatterns>, name: Option<&str>| {
            patterns.as_ref().is_some_and(|patterns| !name.is_some_and(|name| patterns.match_name(name)))
        };
        let fails_all = |patterns: &Option<NamePatterns>, names: &[&str]| {
            patterns.as_ref().is_some_and(|patterns| !names.iter().any(|name| patterns.match_name(name)))
        };
        match () {
            () if fails(&self.tool, Some(facts.tool)) => Some(FactField::Tool),
            () if fails(&self.server, facts.server) => Some(FactField::Server),
            () if fails_all(&self.group, facts.groups) => Some(FactField::Group),
            () if fails_all(&self.tag, facts.tags) => Some(FactField::Tag),
            () if self.kind.as_ref().is_some_and(|kinds| !kinds.contains(&facts.kind)) => Some(FactField::Kind),
            () => None,
        }
    }

    /// The fields that have a condition.
    pub(super) fn present(&self) -> impl Iterator<Item = &'static str> {
        let fields = [
            ("tool", self.tool.is_some()),
            ("server", self.server.is_some()),
            ("group", self.group.is_some()),
            ("tag", self.tag.is_some()),
            ("caller", self.caller.is_some()),
            ("kind", self.kind.is_some()),
        ];
        fields.into_iter().filter(|(_, is_present)| *is_present).map(|(field, _)| field)
    }
}

/// Names and globs, one of which has to match.
///
/// Names are compared byte by byte: characters that look alike are different.
#[derive(Debug, Clone)]
pub(super) struct NamePatterns {
    /// Sorted.
    exact: Box<[Box<str>]>,
    globs: Box<[Glob]>,
}

impl NamePatterns {
    /// Parses names and globs; the error is a clause on what is wrong with one of them.
    pub(super) fn parse<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (mut exact, mut globs) = (Vec::new(), Vec::new());
        for pattern in patterns {
            match pattern::parse(pattern).map_err(|reason| format!("invalid name or glob `{pattern}`: {reason}"))? {
                Parsed::Exact(name) => exact.push(name),
                Parsed::Glob(glob) => globs.push(glob),
            }
        }
        exact.sort_unstable();
        exact.dedup();
        Ok(Self { exact: exact.into(), globs: globs.into() })
    }

    /// Parses names and globs of callers, among which `""` stands for a call without a caller.
    pub(super) fn parse_callers<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let (empty, names): (Vec<_>, Vec<_>) = patterns.into_iter().partition(|pattern| pattern.is_empty());
        let mut parsed = Self::parse(names)?;
        if !empty.is_empty() {
            // The empty name goes before all others.
            parsed.exact = std::iter::once(Box::from("")).chain(parsed.exact).collect();
        }
        Ok(parsed)
    }

    /// True if one of them matches a caller; a glob never matches a call without a caller.
    fn match_caller(&self, caller: Option<&str>) -> bool {
        match caller {
            Some(caller) => self.match_name(caller),
            None => self.exact.first().is_some_and(|first| first.is_empty()),
        }
    }

    /// True if one of them matches a name.
    pub(super) fn match_name(&self, name: &str) -> bool {
        let is_exact = match &*self.exact {
            [only] => **only == *name,
            exact => exact.binary_search_by(|known| (**known).cmp(name)).is_ok(),
        };
        is_exact || self.globs.iter().any(|glob| glob.is_match(name))
    }

    pub(super) fn exact(&self) -> &[Box<str>] {
        &self.exact
    }

    pub(super) fn globs(&self) -> &[Glob] {
        &self.globs
    }

    /// The only name, if there is one name and no glob.
    pub(super) fn single(&self) -> Option<&str> {
        match (&*self.exact, &*self.globs) {
            ([name], []) => Some(name),
            _ => None,
        }
    }

    /// True if every glob has a prefix or suffix to look it up by.
    pub(super) fn is_indexable(&self) -> bool {
        self.globs.iter().all(|glob| !glob.prefix().is_empty() || !glob.suffix().is_empty())
    }
}

string_enum! {
    /// The author of a rule; the rules of a later tier are tried before all rules of an earlier one.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Tier {
        /// The program itself.
        #[default]
        Default = "default",
        /// The project that is worked on.
        Project = "project",
        /// The user of the program.
        User = "user",
        /// The administrator of the machine.
        Admin = "admin",
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

string_enum! {
    /// The kind of effect that a tool has, as its developer declares it.
    #[derive(Default)]
    pub enum ToolKind {
        /// Reads something.
        Read = "read",
        /// Changes or creates something.
        Edit = "edit" | "write",
        /// Removes something.
        Delete = "delete",
        /// Moves or renames something.
        Move = "move",
        /// Searches for something.
        Search = "search",
        /// Runs code or a command.
        Execute = "execute",
        /// Affects nothing but the model's reasoning.
        Think = "think",
        /// Gets something from elsewhere.
        Fetch = "fetch",
        /// Not declared.
        #[default]
        Other = "other",
    }
}

impl ToolKind {
    /// True if a tool that leaves its permission to its kind needs approval.
    #[must_use]
    pub const fn needs_approval(self) -> bool {
        matches!(self, Self::Edit | Self::Delete | Self::Move | Self::Execute)
    }

    /// True if the tool has no side effects.
    #[must_use]
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::Read | Self::Search | Self::Think | Self::Fetch)
    }
}

string_enum! {
    /// The permission that a tool itself declares: whether it needs approval where no rule says otherwise.
    #[derive(Default)]
    pub enum Permission {
        /// Runs without approval.
        #[default]
        Auto = "auto",
        /// Needs approval.
        Confirm = "confirm",
        /// Needs approval if there is a policy and its kind is edit, delete, move or execute.
        ByKind = "kind",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_from_its_own_word() {
        for kind in ToolKind::ALL {
            assert_eq!(ToolKind::parse(kind.as_str()), Some(kind));
        }
    }

    #[test]
    fn a_word_in_other_letters_is_no_kind() {
        assert_eq!(ToolKind::parse("Read"), None);
        assert_eq!(ToolKind::parse("write"), Some(ToolKind::Edit));
    }

    #[test]
    fn every_permission_is_read_from_its_own_word() {
        for permission in Permission::ALL {
            assert_eq!(Permission::parse(permission.as_str()), Some(permission));
        }
        assert_eq!(Permission::parse("CONFIRM"), None);
    }
}
