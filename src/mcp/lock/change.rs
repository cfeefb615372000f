//! The changes of tools since they were reviewed, by what they mean for a reviewer.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value};

use super::effect::Effect;
use super::schema::{self, Meaning, SchemaChange, SchemaDifference, Use};
use super::{Lock, LockedTool, Source};
use crate::mcp::names::{Skeleton, skeletons};
use crate::schema::check::Checker;
use crate::schema::view::escaped;

string_enum! {
    /// The class of a change, the most serious first.
    #[derive(PartialOrd, Ord)]
    pub enum ChangeClass {
        /// A new tool has a name that looks like a reviewed one, or like that of a tool from another source.
        LookAlike = "look_alike",
        /// The tool comes from another source.
        Source = "source",
        /// Some arguments that were accepted are refused, and others that were refused are accepted; or the change is
        /// not understood.
        Breaking = "breaking",
        /// Some arguments that were accepted are refused.
        Narrowed = "narrowed",
        /// The results are incompatible in both ways, or their change is not understood.
        OutputBreaking = "output_breaking",
        /// The tool may return what it did not return before.
        OutputWidened = "output_widened",
        /// The annotations claim more effects than before: destructive instead of read-only, for example.
        Riskier = "riskier",
        /// The value of an omitted argument is another.
        Default = "default",
        /// All arguments that were accepted are accepted, and others too.
        Widened = "widened",
        /// The tool is new.
        Added = "added",
        /// Other annotations changed.
        Annotations = "annotations",
        /// All results would have been accepted before.
        OutputNarrowed = "output_narrowed",
        /// Only texts changed, which a model reads. A changed text can be an attack as well.
        Description = "description",
        /// The tool is gone.
        Removed = "removed",
    }
}

impl fmt::Display for ChangeClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A place at which the definition of a tool differs from the reviewed one.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The place, as a JSON pointer into the definition in the form of MCP.
    pub path: String,
    /// The class of this difference alone.
    pub class: ChangeClass,
    /// The reviewed value; none if there was none.
    pub before: Option<Value>,
    /// The present value; none if there is none.
    pub after: Option<Value>,
}

/// A tool that differs from the reviewed one.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The name of the tool.
    pub tool: String,
    /// The source of the tool, which is the reviewed one if the tool is gone.
    pub source: Source,
    /// The classes of all differences together, without repetition, the most serious first.
    pub classes: Vec<ChangeClass>,
    /// The differences.
    pub differences: Vec<Difference>,
}

impl Change {
    /// True if a class is among those of the change.
    #[must_use]
    pub fn is(&self, class: ChangeClass) -> bool {
        self.classes.contains(&class)
    }

    /// True if each of its classes is one of these.
    #[must_use]
    pub fn is_allowed(&self, allowed: &[ChangeClass]) -> bool {
        self.classes.iter().all(|class| allowed.contains(class))
    }
}

/// Compares the present tools with the reviewed ones. The changes are sorted by the names of the tools.
#[must_use]
pub fn compare(reviewed: &Lock, present: &Lock) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for before in reviewed.tools() {
        match present.get(before.name()) {
            Some(after) => changes.extend(changed(before, after)),
            None => changes.push(of_whole(before, vec![ChangeClass::Removed], Vec::new())),
        }
    }
    let added: Vec<&LockedTool> = present.tools().filter(|tool| reviewed.get(tool.name()).is_none()).collect();
    if !added.is_empty() {
        let names = NamesInUse::new(reviewed, present);
        changes.extend(added.into_iter().map(|tool| added_to(tool, &names)));
    }
    changes.sort_by(|one, other| one.tool.cmp(&other.tool));
    changes
}

fn of_whole(tool: &LockedTool, classes: Vec<ChangeClass>, differences: Vec<Difference>) -> Change {
    Change { tool: tool.name().to_owned(), source: tool.source.clone(), classes, differences }
}

/// The names that a new tool must not resemble, by their skeletons: the reviewed ones, and those of other sources.
struct NamesInUse<'a> {
    reviewed: HashMap<Skeleton, &'a str>,
    /// One tool of each source.
    present: HashMap<Skeleton, Vec<&'a LockedTool>>,
}

impl<'a> NamesInUse<'a> {
    fn new(reviewed: &'a Lock, present: &'a Lock) -> Self {
        let mut names = Self { reviewed: HashMap::new(), present: HashMap::new() };
        for tool in reviewed.tools() {
            for skeleton in skeletons(tool.name()) {
                names.reviewed.entry(skeleton).or_insert(tool.name());
            }
        }
        for tool in present.tools() {
            for skeleton in skeletons(tool.name()) {
                let alike = names.present.entry(skeleton).or_default();
                if alike.iter().all(|other| other.source != tool.source) {
                    alike.push(tool);
                }
            }
        }
        names
    }

    /// A name that looks like that of a tool.
    fn like(&self, tool: &LockedTool) -> Option<&'a str> {
        let skeletons = skeletons(tool.name());
        let reviewed = skeletons.iter().find_map(|skeleton| self.reviewed.get(skeleton).copied());
        let mut present = skeletons.iter().filter_map(|skeleton| self.present.get(skeleton)).flatten();
        reviewed.or_else(|| present.find(|other| other.source != tool.source).map(|other| other.name()))
    }
}

/// The change for a tool that is not reviewed.
fn added_to(tool: &LockedTool, names: &NamesInUse<'_>) -> Change {
    let Some(alike) = names.like(tool) else { return of_whole(tool, vec![ChangeClass::Added], Vec::new()) };
    let difference = Difference {
        path: "/name".to_owned(),
        class: ChangeClass::LookAlike,
        before: Some(Value::from(alike)),
        after: Some(Value::from(tool.name())),
    };
    of_whole(tool, vec![ChangeClass::LookAlike, ChangeClass::Added], vec![difference])
}

/// The change of a reviewed tool, if it has changed.
fn changed(before: &LockedTool, after: &LockedTool) -> Option<Change> {
    let (old, new) = (&before.definition, &after.definition);
    if before.source == after.source && old.digest() == new.digest() {
        return None;
    }
    let mut found = Found::default();
    if before.source != after.source {
        let text = |source: &Source| Some(Value::from(source.to_string()));
        found.add("/source", ChangeClass::Source, text(&before.source), text(&after.source));
    }
    for (path, old, new) in [("/title", &old.title, &new.title), ("/description", &old.description, &new.description)] {
        if old != new {
            found.add(path, ChangeClass::Description, old.clone().map(Value::from), new.clone().map(Value::from));
        }
    }
    found.annotations(old.annotations.as_ref(), new.annotations.as_ref());
    found.input(&old.input_schema, &new.input_schema);
    found.output(old.output_schema.as_ref(), new.output_schema.as_ref());
    found.classes.sort_unstable();
    found.classes.dedup();
    Some(of_whole(after, found.classes, found.differences))
}

/// The differences of one tool so far.
#[derive(Default)]
struct Found {
    classes: Vec<ChangeClass>,
    differences: Vec<Difference>,
}

impl Found {
    fn add(&mut self, path: &str, class: ChangeClass, before: Option<Value>, after: Option<Value>) {
        self.classes.push(class);
        self.differences.push(Difference { path: path.to_owned(), class, before, after });
    }

    fn annotations(&mut self, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) {
        let (before, after) = (claims(old), claims(new));
        let is_riskier = |key: &str| before.iter().zip(after).any(|(was, is)| is.0 == key && is.1 && !was.1);
        let entry = |annotations: Option<&Map<String, Value>>, key: &str| annotations?.get(key).cloned();
        let mut keys: Vec<&String> = old.into_iter().chain(new).flat_map(Map::keys).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let (old, new) = (entry(old, key), entry(new, key));
            if old == new {
                continue;
            }
            let class = match key.as_str() {
                "title" => ChangeClass::Description,
                hint if is_riskier(hint) => ChangeClass::Riskier,
                _ => ChangeClass::Annotations,
            };
            self.add(&format!("/annotations/{}", escaped(key)), class, old, new);
        }
        if old.is_some() != new.is_some() && old.or(new).is_some_and(Map::is_empty) {
            let value = |it: Option<&Map<String, Value>>| it.cloned().map(Value::Object);
            self.add("/annotations", ChangeClass::Annotations, value(old), value(new));
        }
    }

    fn input(&mut self, old: &Map<String, Value>, new: &Map<String, Value>) {
        if old == new {
            return;
        }
        let (old, new) = (Value::Object(old.clone()), Value::Object(new.clone()));
        let SchemaChange { mut effect, changes_default, differences } =
            schema::compare(&old, &new, Use::Arguments, "/inputSchema");
        self.classes.extend(changes_default.then_some(ChangeClass::Default));
        self.add_all(differences, ChangeClass::Default, |effect| match (effect.accepts_more, effect.accepts_less) {
            (false, false) => None,
            (true, false) => Some(ChangeClass::Widened),
            (false, true) => Some(ChangeClass::Narrowed),
            (true, true) => Some(ChangeClass::Breaking),
        });
        // A schema that cannot be compiled accepts nothing.
        if !effect.accepts_less && Checker::compile(&new).is_err() {
            effect = Effect::BOTH;
            self.add("/inputSchema", ChangeClass::Breaking, Some(old), Some(new));
        }
        self.settle(effect, [ChangeClass::Widened, ChangeClass::Narrowed, ChangeClass::Breaking]);
    }

    fn output(&mut self, old: Option<&Map<String, Value>>, new: Option<&Map<String, Value>>) {
        if old == new {
            return;
        }
        // Without a schema, any result is possible.
        let value = |it: Option<&Map<String, Value>>| it.cloned().map_or(Value::Bool(true), Value::Object);
        let SchemaChange { effect, differences, .. } =
            schema::compare(&value(old), &value(new), Use::Results, "/outputSchema");
        self.add_all(differences, ChangeClass::Description, |effect| {
            match (effect.accepts_more, effect.accepts_less) {
                (false, false) => None,
                (true, false) => Some(ChangeClass::OutputWidened),
                (false, true) => Some(ChangeClass::OutputNarrowed),
                (true, true) => Some(ChangeClass::OutputBreaking),
            }
        });
        self.settle(effect, [ChangeClass::OutputWidened, ChangeClass::OutputNarrowed, ChangeClass::OutputBreaking]);
    }

    fn add_all(
        &mut self,
        differences: Vec<SchemaDifference>,
        default: ChangeClass,
        class_of: impl Fn(Effect) -> Option<ChangeClass>,
    ) {
        for SchemaDifference { path, meaning, before, after } in differences {
            let class = match meaning {
                Meaning::Text => None,
                Meaning::Default => Some(default),
                Meaning::Values(effect) => class_of(effect),
            };
            self.add(&path, class.unwrap_or(ChangeClass::Description), before, after);
        }
    }

    /// Replaces the classes of single differences by that of all of them together: one that accepts more and one that
    /// accepts less are incompatible.
    fn settle(&mut self, effect: Effect, [wider, narrower, incompatible]: [ChangeClass; 3]) {
        self.classes.retain(|class| ![wider, narrower, incompatible].contains(class));
        self.classes.extend(match (effect.accepts_more, effect.accepts_less) {
            (false, false) => None,
            (true, false) => Some(wider),
            (false, true) => Some(narrower),
            (true, true) => Some(incompatible),
        });
        if self.classes.is_empty() {
            // The digest differs, so that something is written in another way.
            self.classes.push(ChangeClass::Description);
        }
    }
}

/// The effects that annotations claim, by the hints for them, with the defaults of the protocol.
fn claims(annotations: Option<&Map<String, Value>>) -> [(&'static str, bool); 4] {
    let hint = |key: &str, default: bool| {
        annotations.and_then(|annotations| annotations.get(key)).and_then(Value::as_bool).unwrap_or(default)
    };
    let may_change = !hint("readOnlyHint", false);
    [
        ("readOnlyHint", may_change),
        ("destructiveHint", may_change && hint("destructiveHint", true)),
        ("idempotentHint", may_change && !hint("idempotentHint", false)),
        ("openWorldHint", hint("openWorldHint", true)),
    ]
}
