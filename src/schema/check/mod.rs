//! Holds the arguments of a call to the schema that the model was shown.
//!
//! Three steps, each slower and rarer than the one before: [`Quick`] accepts, [`coerce`](mod@coerce) brings a value to its declared type, and
//! the [`Judge`] has the last word, after which every [`Problem`] is named.

mod bounds;
pub mod coerce;
mod compile;
mod convert;
mod expansion;
mod explain;
mod facts;
mod judge;
mod kinds;
mod names;
mod phrase;
mod problem;
mod quick;
mod subject;
mod work;

use std::sync::{Arc, OnceLock};

use jsonschema::{Validator, json::Json};
use serde_json::{Value, json};

pub use coerce::Rebuild;
pub use judge::Judge;
pub use kinds::Kinds;
pub use problem::{Expected, Found, HIDDEN, PathStep, Problem, ValuePath, render};
pub use quick::{Field, Fields, Items, Limits, Quick, Scalar, Size};
pub use subject::{Integer, Kind, Subject};

pub(in crate::schema) use judge::options;
pub(crate) use names::is_near;
pub(in crate::schema) use phrase::pointer;
pub(crate) use problem::At;

use compile::Compiler;
use explain::Explainer;
use names::no_such;
use work::{Work, excess};

use super::tree::{Document, Node};

/// What is done about an argument of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is coerced by its declared type, and then checked.
    Coerce,
    /// It is checked as it is.
    Check,
}

/// The schema of a tool's parameters, compiled.
///
/// ```
/// use serde_json::json;
/// use toolcrib::schema::check::{Checker, Mode};
///
/// let checker = Checker::compile(&json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}))?;
///
/// let changed = checker.settle(&json!({"n": "42"}), Mode::Coerce, &[]).expect("fits after coercion");
/// assert_eq!(changed, Some(json!({"n": 42})));
///
/// let problems = checker.settle(&json!({"n": "42"}), Mode::Check, &[]).expect_err("not an integer");
/// assert_eq!(problems[0].path, "n");
/// # Ok::<(), toolcrib::Error>(())
/// ```
pub struct Checker<F: Json = jsonschema::json::SerdeJson> {
    root: Arc<Document>,
    quick: Quick,
    _shared: Vec<Arc<Quick>>,
    /// Made for the first value that the quick test does not accept: most tools never get one.
    rare: OnceLock<Box<Rare<F>>>,
}

/// What only values need that are out of the ordinary.
struct Rare<F: Json> {
    judge: Judge<F>,
    /// Names that `patternProperties` of the document allow, compiled when such a name comes.
    patterns: OnceLock<Option<Validator>>,
}

impl<F: Json> std::fmt::Debug for Checker<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Checker").field("quick", &self.quick).finish_non_exhaustive()
    }
}

impl Checker {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSchema`](crate::Error::InvalidSchema) if it is not a schema, or refers to another document: nothing is ever
    /// fetched.
    pub fn compile(parameters: &Value) -> crate::Result<Checker> {
        let checker = Checker::of(&Node::from(parameters.clone()));
        checker.prepare()?;
        Ok(checker)
    }
}

impl<F: Json> Checker<F> {
    /// Compiles what every call needs, and leaves the rest for the first value that asks for it. For schemas that are known to be such.
    #[must_use]
    pub fn of(parameters: &Node) -> Self {
        Checker::share(parameters, Arc::new(Document::new(parameters)))
    }

    /// The same for a schema that has been written already; `document` is it.
    #[must_use]
    pub fn share(parameters: &Node, document: Arc<Document>) -> Self {
        let mut compiler = Compiler::new(parameters);
        let quick = compiler.compile_root();
        let shared = compiler.into_shared();
        Checker { root: document, quick, _shared: shared, rare: OnceLock::new() }
    }

    fn rare(&self) -> &Rare<F> {
        self.rare
            .get_or_init(|| Box::new(Rare { judge: Judge::new(Arc::clone(&self.root)), patterns: OnceLock::new() }))
    }

    fn judge(&self) -> &Judge<F> {
        &self.rare().judge
    }

    /// Compiles the judge now, to learn whether the schema is one.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSchema`](crate::Error::InvalidSchema) says where it is not.
    pub fn prepare(&self) -> crate::Result<()> {
        self.judge().prepare()
    }

    /// The test of all arguments together.
    #[must_use]
    pub fn quick(&self) -> &Quick {
        &self.quick
    }

    /// The parameters in order, if arguments fit as soon as each of them does, all required ones are there, and there are no others.
    #[must_use]
    pub fn fields(&self) -> Option<&[Field]> {
        match &self.quick {
            Quick::Fields(fields) if fields.size == Size::FREE => Some(&fields.named),
            _ => None,
        }
    }

    /// Decides about the arguments of a call: `Ok(None)` if they fit as they are, `Ok(Some(_))` if a changed copy does.
    ///
    /// A name in `hidden` does not exist for the model.
    ///
    /// # Errors
    ///
    /// All that is wrong with them.
    pub fn settle<S: Rebuild<Form = F>>(
        &self,
        input: &S,
        mode: Mode,
        hidden: &[&str],
    ) -> Result<Option<S>, Vec<Problem>> {
        if hidden.is_empty() && self.quick.accepts(input) {
            return Ok(None);
        }
        if let Some(problem) = excess(input) {
            return Err(vec![problem]);
        }
        let coerced = match mode {
            Mode::Coerce => coerce::coerce(self.root.value(), self.judge(), input),
            Mode::Check => None,
        };
        let value = coerced.as_ref().unwrap_or(input);
        if self.allows(value, hidden) { Ok(coerced) } else { Err(self.problems(value, hidden)) }
    }

    fn allows<S: Subject<Form = F>>(&self, value: &S, hidden: &[&str]) -> bool {
        let named = |name: Option<&str>| name.is_some_and(|name| !hidden.contains(&name) && self.knows(name));
        value.every_entry(|name, _| named(name))
            && (self.quick.accepts(value) || is_json(value) && self.judge().allows(value))
    }

    /// Whether a name at the top may be sent.
    fn knows(&self, name: &str) -> bool {
        let root = self.root.value();
        let Some(properties) = root.get("properties") else {
            return true;
        };
        properties.get(name).is_some()
            || root.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false))
            || self.matches_pattern(name)
    }

    fn matches_pattern(&self, name: &str) -> bool {
        let Some(Value::Object(patterns)) = self.root.value().get("patternProperties") else {
            return false;
        };
        let compile = || {
            let patterns: Vec<Value> = patterns.keys().map(|pattern| json!({"pattern": pattern})).collect();
            judge::options().build(&json!({"anyOf": patterns})).ok()
        };
        let validator = self.rare().patterns.get_or_init(compile).as_ref();
        validator.is_some_and(|validator| validator.is_valid(&Value::from(name)))
    }

    fn problems<S: Subject<Form = F>>(&self, value: &S, hidden: &[&str]) -> Vec<Problem> {
        let mut explainer = Explainer {
            root: self.root.value(),
            judge: self.judge(),
            problems: Vec::new(),
            work: Work::for_value(value),
        };
        let properties = self.root.value().get("properties").and_then(Value::as_object);
        value.every_entry(|name, entry| {
            match name {
                None => {
                    explainer.add(&At::Root, "names that are plain strings".into(), Found::Fixed("another name"));
                }
                Some(name) if hidden.contains(&name) || !self.knows(name) => {
                    let names = properties.into_iter().flatten().map(|(name, _)| name.as_str());
                    let known: Vec<&str> = names.filter(|name| !hidden.contains(name)).collect();
                    explainer.add(&At::Root.key(name), no_such("argument", name, &known), Found::of(entry));
                }
                Some(_) => {}
            }
            explainer.has_room()
        });
        explainer.explain("", &At::Root, value, 0);
        if explainer.problems.is_empty() {
            let (path, found) = foreign(value, &At::Root).unwrap_or_else(|| (ValuePath::default(), Found::of(value)));
            explainer.problems.push(Problem { path, expected: "a value that JSON has a word for".into(), found });
        }
        explainer.problems
    }
}

/// The first value that JSON cannot hold, and its place.
fn foreign<S: Subject>(value: &S, at: &At<'_>) -> Option<(ValuePath, Found)> {
    let mut place = None;
    match value.kind() {
        Kind::Other => return Some((at.into(), Found::of(value))),
        Kind::Array => {
            let mut index = 0;
            value.every_item(|item| {
                place = foreign(item, &at.index(index));
                index += 1;
                place.is_none()
            });
        }
        Kind::Object => {
            value.every_entry(|key, entry| {
                place = match key {
                    Some(key) => foreign(entry, &at.key(key)),
                    None => Some((at.into(), Found::Fixed("a key that is not plain text"))),
                };
                place.is_none()
            });
        }
        _ => {}
    }
    place
}

/// Whether JSON can say all of the value.
fn is_json<S: Subject>(value: &S) -> bool {
    match value.kind() {
        Kind::Other => false,
        Kind::Array => value.every_item(is_json),
        Kind::Object => value.every_entry(|key, value| key.is_some() && is_json(value)),
        _ => true,
    }
}
