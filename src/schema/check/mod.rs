//! Validation of a call's arguments against the schema that the model was shown.
//!
//! Three steps, each slower and rarer than the one before: the fast check accepts, coercion converts values to their declared type, and
//! the validator decides, after which every [`Problem`] is named. Read in this order:
//!
//! - `value`: the view of a JSON-like value, so that Python objects are checked in place;
//! - `fast`, with `compile`, `bounds` and `unique`: the accept-only check;
//! - `coerce`: conversion by declared type;
//! - `format`: the formats of strings;
//! - `validator`: `jsonschema`, and limits on work;
//! - `explain`: the problems of a value; `problem` and `path`: a problem as data and as text;
//! - `first`: the first problem of a value in the words of ajv.

mod bounds;
mod coerce;
mod compile;
mod explain;
mod fast;
mod first;
mod format;
mod path;
mod problem;
mod unique;
mod validator;
mod value;

use std::sync::{Arc, OnceLock};

use jsonschema::{Validator, json::Json};
use serde_json::{Value, json};

pub use coerce::Rebuild;
pub use format::FormatRules;
pub use path::{PathStep, ValuePath};
pub use problem::{Expected, Found, HIDDEN, Problem, UnknownName, render};
pub use validator::not_json;
pub use value::{Integer, JsonLike, ValueKind};

pub(crate) use coerce::coerce;
pub(crate) use fast::KindSet;
pub(crate) use path::At;
pub(crate) use validator::SchemaValidator;

pub(in crate::schema) use explain::unknown_name;
pub(in crate::schema) use validator::{DOCUMENT, build_within};

use coerce::to_types;
use compile::Compiler;
use explain::Explainer;
use fast::{FastCheck, FastField, SizeRange};
use validator::{Budget, options, oversize};

use crate::json::text::read;
use crate::json::{Document, Node};
use crate::schema::view::required;

/// The treatment of an argument of another type than declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is coerced to its declared type, then checked.
    Coerce,
    /// It is checked as it is.
    Check,
}

/// The compiled schema of a tool's parameters.
///
/// ```
/// use serde_json::json;
/// use toolcrib::schema::check::{Checker, Mode};
///
/// let checker = Checker::compile(&json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}))?;
///
/// let changed = checker.check(&json!({"n": "42"}), Mode::Coerce, &[]).expect("fits after coercion");
/// assert_eq!(changed, Some(json!({"n": 42})));
///
/// let problems = checker.check(&json!({"n": "42"}), Mode::Check, &[]).expect_err("not an integer");
/// assert_eq!(problems[0].path, "n");
/// # Ok::<(), toolcrib::Error>(())
/// ```
pub struct Checker<F: Json = jsonschema::json::SerdeJson> {
    root: Arc<Document>,
    formats: FormatRules,
    /// Compiled for the first value: most tools are never called.
    fast: OnceLock<Box<FastPath>>,
    /// Compiled for the first value that the fast check does not accept: most tools never get one.
    slow: OnceLock<Box<SlowPath<F>>>,
}

/// The fast check of a whole document, with the definitions that it refers to.
struct FastPath {
    check: FastCheck,
    _shared: Vec<Arc<FastCheck>>,
}

/// The parts that only unusual values need.
struct SlowPath<F: Json> {
    validator: SchemaValidator<F>,
    /// The names that `patternProperties` of the document allow, compiled when such a name comes.
    patterns: OnceLock<Option<Validator>>,
}

impl<F: Json> std::fmt::Debug for Checker<F> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Checker").field("fast", self.fast()).finish_non_exhaustive()
    }
}

impl Checker {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSchema`](crate::Error::InvalidSchema) if the schema is invalid, or refers to another document: nothing is ever
    /// fetched.
    pub fn compile(parameters: &Value) -> crate::Result<Checker> {
        let checker = Checker::of(&Node::from(parameters.clone()));
        checker.prepare()?;
        Ok(checker)
    }

    /// Describes the first problem of a value in the words of ajv, such as `params/n must be integer`, where `name` stands for the
    /// value; `None` if it fits. Nothing is coerced, and keys that the schema does not list are accepted unless it forbids them.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolcrib::schema::check::Checker;
    ///
    /// let checker = Checker::compile(&json!({"type": "object", "properties": {"n": {"type": "integer"}}}))?;
    ///
    /// let problem = checker.first_problem(&json!({"n": "3"}), "params");
    /// assert_eq!(problem.as_deref(), Some("params/n must be integer"));
    /// # Ok::<(), toolcrib::Error>(())
    /// ```
    #[must_use]
    pub fn first_problem(&self, value: &Value, name: &str) -> Option<String> {
        first::first_problem(self.validator(), self.formats, value, name)
    }
}

impl<F: Json> Checker<F> {
    /// The checker of a schema that is known to be valid. It is compiled on first use.
    #[must_use]
    pub fn of(parameters: &Node) -> Self {
        Checker::with_document(Arc::new(Document::new(parameters)), FormatRules::Standard)
    }

    /// The same for a schema that has already been written as a document, with the rules for its formats.
    #[must_use]
    pub fn with_document(document: Arc<Document>, formats: FormatRules) -> Self {
        Checker { root: document, formats, fast: OnceLock::new(), slow: OnceLock::new() }
    }

    #[inline]
    fn fast(&self) -> &FastCheck {
        &self.fast.get_or_init(|| Box::new(self.compile_fast())).check
    }

    #[cold]
    fn compile_fast(&self) -> FastPath {
        let root = Node::from(read(self.root.text()));
        let mut compiler = Compiler::new(&root, self.formats);
        let check = compiler.compile_root();
        FastPath { check, _shared: compiler.into_shared() }
    }

    fn slow(&self) -> &SlowPath<F> {
        self.slow.get_or_init(|| {
            let validator = SchemaValidator::new(Arc::clone(&self.root), self.formats);
            Box::new(SlowPath { validator, patterns: OnceLock::new() })
        })
    }

    fn validator(&self) -> &SchemaValidator<F> {
        &self.slow().validator
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Value {
        self.root.value()
    }

    /// Compiles the validator now, to find out whether the schema is valid.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidSchema`](crate::Error::InvalidSchema) with the place and the reason.
    pub fn prepare(&self) -> crate::Result<()> {
        self.validator().prepare()
    }

    /// True if the fast check alone accepts the arguments; false is undecided.
    #[must_use]
    pub fn accepts<S: JsonLike<Form = F>>(&self, input: &S) -> bool {
        self.fast().accepts(input)
    }

    /// The checks of the parameters one by one, if these are enough; see [`ParameterChecks`].
    #[inline]
    #[must_use]
    pub fn by_parameter(&self) -> Option<ParameterChecks<'_>> {
        match self.fast() {
            FastCheck::Object(object) if object.size == SizeRange::FREE => Some(ParameterChecks(&object.named)),
            _ => None,
        }
    }

    /// Coerces a value to its declared types; `None` if nothing changes.
    pub fn coerce<S: Rebuild<Form = F>>(&self, input: &S) -> Option<S> {
        coerce(self.validator(), input)
    }

    /// Checks the arguments of a call: `Ok(None)` if they fit as they are, `Ok(Some(_))` if a coerced copy does.
    ///
    /// Names in `hidden` are unknown to the model.
    ///
    /// # Errors
    ///
    /// All problems of the arguments.
    pub fn check<S: Rebuild<Form = F>>(
        &self,
        input: &S,
        mode: Mode,
        hidden: &[&str],
    ) -> Result<Option<S>, Vec<Problem>> {
        if hidden.is_empty() && self.fast().accepts(input) {
            return Ok(None);
        }
        if let Some(problem) = oversize(input) {
            return Err(vec![problem]);
        }
        let coerced = match mode {
            Mode::Coerce => self.coerce(input),
            Mode::Check => None,
        };
        let value = coerced.as_ref().unwrap_or(input);
        if self.is_valid(value, hidden) { Ok(coerced) } else { Err(self.problems(value, hidden)) }
    }

    fn is_valid<S: JsonLike<Form = F>>(&self, value: &S, hidden: &[&str]) -> bool {
        let is_known = |name: Option<&str>| name.is_some_and(|name| !hidden.contains(&name) && self.knows(name));
        value.every_entry(|name, _| is_known(name))
            && (self.fast().accepts(value) || is_json(value) && self.validator().is_valid(value))
    }

    /// True if an argument of this name may be sent.
    fn knows(&self, name: &str) -> bool {
        let root = self.root.value();
        let Some(properties) = root.get("properties") else {
            return true;
        };
        properties.get(name).is_some()
            || root.as_object().is_some_and(|root| required(root).any(|required| required == name))
            || root.get("additionalProperties").is_some_and(|rest| *rest != Value::Bool(false))
            || self.matches_pattern(name)
    }

    fn matches_pattern(&self, name: &str) -> bool {
        let Some(Value::Object(patterns)) = self.root.value().get("patternProperties") else {
            return false;
        };
        let compile = || {
            let patterns: Vec<Value> = patterns.keys().map(|pattern| json!({"pattern": pattern})).collect();
            options(self.formats).build(&json!({"anyOf": patterns})).ok()
        };
        let validator = self.slow().patterns.get_or_init(compile).as_ref();
        validator.is_some_and(|validator| validator.is_valid(&Value::from(name)))
    }

    fn problems<S: JsonLike<Form = F>>(&self, value: &S, hidden: &[&str]) -> Vec<Problem> {
        let mut explainer = Explainer {
            root: self.root.value(),
            validator: self.validator(),
            problems: Vec::new(),
            budget: Budget::for_value(value),
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
                    explainer.add(&At::Root.key(name), unknown_name("argument", name, &known), Found::of(entry));
                }
                Some(_) => {}
            }
            explainer.has_room()
        });
        explainer.explain("", &At::Root, value, 0);
        if explainer.problems.is_empty() {
            explainer.problems.push(not_json(value));
        }
        explainer.problems
    }
}

/// The checks of parameters one by one, by their position among `properties`. Arguments fit if each is one of the properties,
/// every required parameter is present, and every value is accepted.
#[derive(Debug, Clone, Copy)]
pub struct ParameterChecks<'a>(&'a [FastField]);

impl ParameterChecks<'_> {
    /// True if the fast check alone accepts a value; false is undecided.
    #[inline]
    pub fn accepts<S: JsonLike>(&self, position: usize, value: &S) -> bool {
        self.0.get(position).is_some_and(|field| field.check.accepts(value))
    }

    /// The same for a value that is of the declared classes too, so that there is nothing to convert: an integer is not a number
    /// with a fraction, nor a tuple a list.
    pub fn accepts_exactly<S: JsonLike>(&self, position: usize, value: &S) -> bool {
        self.0.get(position).is_some_and(|field| field.check.accepts_exactly(value))
    }

    /// Coerces a value to the declared type and accepts it; `None` is undecided. Only parameters that declare one type of scalar
    /// are coerced by themselves.
    pub fn coerce<S: Rebuild>(&self, position: usize, value: &S) -> Option<S> {
        let check = &self.0.get(position)?.check;
        let coerced = to_types(value, &[check.scalar_type()?])?;
        check.accepts(&coerced).then_some(coerced)
    }
}

/// True if the value consists of JSON values only.
fn is_json<S: JsonLike>(value: &S) -> bool {
    match value.kind() {
        ValueKind::Other => false,
        ValueKind::Array => value.every_item(is_json),
        ValueKind::Object => value.every_entry(|key, value| key.is_some() && is_json(value)),
        _ => true,
    }
}
