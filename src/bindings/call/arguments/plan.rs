//! From the arguments of a request to the call of a Python function.
//!
//! What can be known at registration is known then: which parameters there are, which of them the model sees, what stands
//! in for one that is not sent. A call fetches its arguments by interned name, checks each on the Python object itself,
//! and passes them by position, which is quicker than `function(**arguments)`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde_json::{Map, Value};

use super::spread::Spread;
use crate::bindings::arguments::Arguments;
use crate::bindings::call::python::attached;
use crate::bindings::call::python::drive::{CallArguments, MOST_ARGUMENTS};
use crate::bindings::call::state::State;
use crate::bindings::schema::{Fallback, fallback_of};
use crate::bindings::signature::{Parameter, ParameterKind, Signature};
use crate::bindings::{foreign, json};
use crate::call::repair::{Names, RepairMode, coerced, explanation, mend_names};
use crate::call::{Answer, ArgumentMode, Repair};
use crate::policy::Redaction;
use crate::schema::check::{Mode, Problem, render};
use crate::schema::{Document, Node};

/// How one tool is called.
pub(crate) struct Plan {
    tool: Box<str>,
    places: Box<[Place]>,
    /// How many of the places are filled by position; the rest by the names in `keywords`.
    by_position: usize,
    keywords: Option<Py<PyTuple>>,
    /// The general way, for functions that the short one does not fit.
    spread: Option<Box<Spread>>,
    /// Parameters whose default is made anew for each call.
    factories: Box<[(Py<PyString>, Py<PyAny>)]>,
    arguments: Arguments,
    handling: Handling,
    /// What the model was shown, and whether it may send other names too.
    parameters: Arc<Document>,
    is_open: bool,
    /// Names that the model may not use in any case: presets and parameters that it was not shown.
    hidden: Box<[Box<str>]>,
    /// Whether the function would take a name that nobody declared.
    takes_any_name: bool,
}

/// What is done with the arguments of a request before the call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handling {
    pub(crate) arguments: ArgumentMode,
    pub(crate) repair: RepairMode,
    /// Other names of parameters, each with the one that it stands for.
    pub(crate) aliases: Arc<[(Box<str>, Box<str>)]>,
    /// The parameters whose values nobody but the tool sees.
    pub(crate) secrets: Arc<[Box<str>]>,
}

/// One parameter, ready to be filled.
struct Place {
    name: Py<PyString>,
    /// Whether the model may send it, and which of the compiled checks is for it.
    is_shown: bool,
    check: Option<usize>,
    /// What is passed when the model sends nothing: a preset or a default.
    fallback: Option<Py<PyAny>>,
}

/// The outcome of calling.
pub(in crate::bindings::call) enum Called<'py> {
    Returned(Bound<'py, PyAny>),
    Raised(PyErr),
    /// The arguments do not fit.
    Refused(Answer),
}

/// A record of the repairs that were made in the arguments of a call.
pub(in crate::bindings::call) trait RecordRepairs {
    /// Adds to the record.
    fn record(&self, repairs: Vec<Repair>);
}

/// Arguments that are looked at without being called with.
impl RecordRepairs for () {
    fn record(&self, _repairs: Vec<Repair>) {}
}

impl RecordRepairs for State {
    fn record(&self, repairs: Vec<Repair>) {
        if !repairs.is_empty() {
            self.cold().repaired.borrow_mut().repairs.extend(repairs);
        }
    }
}

/// Arguments that fit with what was mended in them, or all that is wrong with them.
type Settled<'py> = Result<(Bound<'py, PyDict>, Vec<Repair>), Vec<Problem>>;

/// The outcome of binding.
pub(in crate::bindings::call) enum Bind<'py> {
    Ready(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>),
    Refused(Answer),
}

impl Plan {
    /// Plans the calls of a tool; `document` holds the same as `parameters`.
    #[allow(clippy::too_many_arguments, reason = "all that is known about a tool comes together here")]
    pub(crate) fn new(
        py: Python<'_>,
        tool: &str,
        signature: &Signature,
        presets: &Bound<'_, PyDict>,
        parameters: &Node,
        document: &Arc<Document>,
        is_supplied: bool,
        handling: Handling,
    ) -> PyResult<Self> {
        let mode = handling.arguments;
        let arguments = Arguments::compile(parameters, document.clone(), is_supplied)?;
        let properties = parameters.get("properties").and_then(Node::as_object);
        let is_shown = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        let is_open = properties.is_none()
            || parameters.get("additionalProperties").is_some_and(|rest| *rest != Node::Bool(false))
            || parameters.get("patternProperties").is_some();
        let (by_position, by_name): (Vec<&Parameter>, Vec<&Parameter>) = signature
            .parameters
            .iter()
            .filter(|parameter| !matches!(parameter.kind, ParameterKind::VarPositional | ParameterKind::VarKeyword))
            .partition(|parameter| match parameter.kind {
                ParameterKind::PositionalOnly => true,
                ParameterKind::PositionalOrKeyword => !signature.by_name,
                _ => false,
            });
        let mut names = Vec::with_capacity(by_position.len() + by_name.len());
        let mut places = Vec::with_capacity(names.capacity());
        let mut factories = Vec::new();
        for parameter in by_position.iter().chain(&by_name) {
            let name = parameter.name.bind(py).to_str()?;
            let preset = if presets.is_empty() { None } else { presets.get_item(&parameter.name)? };
            let is_shown = preset.is_none() && is_shown(name);
            let check = if is_shown { arguments.position(name) } else { None };
            // What the schema requires must come from the model, also when the function has a default.
            let is_required = mode != ArgumentMode::Pass && check.is_some_and(|check| arguments.requires(check));
            let default = parameter.default.as_ref().filter(|_| !is_required);
            let fallback = match (preset, default) {
                (Some(preset), _) => Some(preset.unbind()),
                (None, None) => None,
                (None, Some(default)) => match fallback_of(default.bind(py))? {
                    Fallback::None => None,
                    Fallback::Value(value) => Some(value),
                    Fallback::Factory(factory) => {
                        factories.push((parameter.name.clone_ref(py), factory));
                        None
                    }
                },
            };
            names.push(name);
            places.push(Place { name: parameter.name.clone_ref(py), is_shown, check, fallback });
        }
        let unseen = names.iter().zip(&places).filter(|(_, place)| !place.is_shown);
        let mut hidden: Vec<Box<str>> = unseen.map(|(name, _)| Box::from(*name)).collect();
        let mut is_short = places.len() <= MOST_ARGUMENTS
            && !is_open
            && properties.is_none_or(|properties| properties.keys().all(|name| names.contains(&name)));
        for (name, _) in presets.iter() {
            let name = name.cast_into::<PyString>()?;
            let name = name.to_str()?;
            if !names.contains(&name) {
                is_short = false;
            }
            if !hidden.iter().any(|known| **known == *name) {
                hidden.push(name.into());
            }
        }
        let keywords = if by_name.is_empty() || !is_short {
            None
        } else {
            Some(PyTuple::new(py, by_name.iter().map(|parameter| &parameter.name))?.unbind())
        };
        let spread = if is_short { None } else { Some(Box::new(Spread::new(py, signature, presets, &is_shown)?)) };
        Ok(Self {
            tool: tool.into(),
            places: places.into(),
            by_position: by_position.len(),
            keywords,
            spread,
            factories: factories.into(),
            arguments,
            handling,
            parameters: document.clone(),
            is_open,
            hidden: hidden.into(),
            takes_any_name: signature.parameters.iter().any(|parameter| parameter.kind == ParameterKind::VarKeyword),
        })
    }

    /// What is done with the arguments of a request before the call.
    pub(crate) fn handling(&self) -> &Handling {
        &self.handling
    }

    /// Whether arguments are mended; never where they are passed on as they came.
    pub(crate) fn repair(&self) -> RepairMode {
        if self.handling.arguments == ArgumentMode::Pass { RepairMode::Off } else { self.handling.repair }
    }

    /// Calls `callable` with the arguments of a request; `notes` records their repairs.
    #[inline]
    pub(in crate::bindings::call) fn call<'py>(
        &self,
        callable: &Bound<'py, PyAny>,
        input: &Bound<'py, PyDict>,
        notes: &impl RecordRepairs,
    ) -> Called<'py> {
        let returned = match self.fill(input, self.handling.arguments != ArgumentMode::Pass) {
            Ok(Some(values)) => {
                let names = self.keywords.as_ref().map(|names| names.bind_borrowed(callable.py()));
                values.call(callable, self.by_position, names.as_deref())
            }
            Ok(None) => return self.call_slowly(callable, input, notes),
            Err(error) => Err(error),
        };
        returned.map_or_else(Called::Raised, Called::Returned)
    }

    /// Fetches the arguments in the order of the places. `None` when anything is out of the ordinary: the slow way finds
    /// out what.
    #[inline]
    fn fill<'py>(&self, input: &Bound<'py, PyDict>, check: bool) -> PyResult<Option<CallArguments<'py>>> {
        if self.spread.is_some() {
            return Ok(None);
        }
        let py = input.py();
        let mut values = CallArguments::new(py);
        let mut found = 0;
        for place in &self.places {
            if place.is_shown
                && let Some(value) = input.get_item(place.name.bind_borrowed(py))?
            {
                if check && !self.arguments.accepts(place.check, value.as_borrowed()) {
                    return Ok(None);
                }
                found += 1;
                values.push(value);
                continue;
            }
            match &place.fallback {
                Some(fallback) => values.push(fallback.bind(py).clone()),
                None => return Ok(None),
            }
        }
        Ok((found == input.len()).then_some(values))
    }

    #[cold]
    fn call_slowly<'py>(
        &self,
        callable: &Bound<'py, PyAny>,
        input: &Bound<'py, PyDict>,
        notes: &impl RecordRepairs,
    ) -> Called<'py> {
        attached(input.py(), |_| match self.bind_slowly(input, notes) {
            Ok(Bind::Ready(arguments, keywords)) => {
                callable.call(arguments, keywords.as_ref()).map_or_else(Called::Raised, Called::Returned)
            }
            Ok(Bind::Refused(answer)) => Called::Refused(answer),
            Err(error) => Called::Raised(error),
        })
    }

    /// Binds the arguments of a request without calling; `notes` records their repairs.
    pub(in crate::bindings::call) fn bind<'py>(
        &self,
        input: &Bound<'py, PyDict>,
        notes: &impl RecordRepairs,
    ) -> PyResult<Bind<'py>> {
        if self.keywords.is_none()
            && let Some(values) = self.fill(input, self.handling.arguments != ArgumentMode::Pass)?
        {
            return Ok(Bind::Ready(values.into_tuple()?, None));
        }
        self.bind_slowly(input, notes)
    }

    /// Binds arguments that have to be checked as a whole, and may be repaired or refused.
    fn bind_slowly<'py>(&self, input: &Bound<'py, PyDict>, notes: &impl RecordRepairs) -> PyResult<Bind<'py>> {
        let py = input.py();
        let input = match self.accepted(input, notes)? {
            Ok(input) => input,
            Err(answer) => return Ok(Bind::Refused(answer)),
        };
        let input = self.with_made_defaults(py, input)?;
        if let Some(spread) = &self.spread {
            return Ok(match spread.bind(py, &input)? {
                Ok((arguments, keywords)) => Bind::Ready(arguments, Some(keywords)),
                Err(problems) => Bind::Refused(Answer::InvalidArguments { text: render(&self.tool, &problems) }),
            });
        }
        let Some(values) = self.fill(&input, false)? else {
            // Something is missing or too much: Python itself says what, in its own words.
            return Ok(Bind::Ready(PyTuple::empty(py), Some(self.as_keywords(py, &input)?)));
        };
        let Some(names) = &self.keywords else { return Ok(Bind::Ready(values.into_tuple()?, None)) };
        let values = values.into_vec();
        let keywords = PyDict::new(py);
        for (name, value) in names.bind(py).iter().zip(&values[self.by_position..]) {
            keywords.set_item(name, value)?;
        }
        Ok(Bind::Ready(PyTuple::new(py, &values[..self.by_position])?, Some(keywords)))
    }

    /// The arguments to use, or the answer that says what is wrong with them; `notes` is told what was mended in them.
    pub(in crate::bindings::call) fn accepted<'py>(
        &self,
        input: &Bound<'py, PyDict>,
        notes: &impl RecordRepairs,
    ) -> PyResult<Result<Bound<'py, PyDict>, Answer>> {
        let text = match self.settled(input)? {
            Ok((input, repairs)) if self.repair() == RepairMode::Explain && !repairs.is_empty() => {
                let repairs = self.redacted(repairs);
                let text = explanation(&self.tool, &repairs, self.masked(&input).as_ref());
                notes.record(repairs);
                text
            }
            Ok((input, repairs)) => {
                notes.record(self.redacted(repairs));
                return Ok(Ok(input));
            }
            Err(problems) => render(&self.tool, &self.redaction().problems(problems)),
        };
        Ok(Err(Answer::InvalidArguments { text }))
    }

    /// The redaction of what is said about arguments.
    pub(crate) fn redaction(&self) -> Redaction<'_> {
        Redaction::new(&self.handling.secrets, self.parameters.value())
    }

    fn redacted(&self, repairs: Vec<Repair>) -> Vec<Repair> {
        if self.handling.secrets.is_empty() {
            return repairs;
        }
        let redaction = self.redaction();
        repairs.into_iter().map(|repair| repair.redacted(&redaction)).collect()
    }

    /// Arguments that fit, as far as they may be shown.
    fn masked(&self, settled: &Bound<'_, PyDict>) -> Option<Value> {
        let arguments = foreign::to_value(settled.as_any()).ok()?;
        Some(self.redaction().arguments(&arguments))
    }

    /// What a model is told about arguments that were mended before, and what else was mended to make them fit. What they
    /// should be is told only if they do.
    pub(in crate::bindings::call) fn explained(
        &self,
        input: &Bound<'_, PyDict>,
        mut repairs: Vec<Repair>,
    ) -> PyResult<(String, Vec<Repair>)> {
        Ok(match self.settled(input)? {
            Ok((settled, more)) => {
                let more = self.redacted(more);
                repairs.extend(more.iter().cloned());
                (explanation(&self.tool, &repairs, self.masked(&settled).as_ref()), more)
            }
            Err(problems) => {
                let text = explanation(&self.tool, &repairs, None);
                let problems = self.redaction().problems(problems);
                (format!("{text}\n{}", render(&self.tool, &problems)), Vec::new())
            }
        })
    }

    fn with_made_defaults<'py>(&self, py: Python<'py>, input: Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        if self.factories.is_empty() {
            return Ok(input);
        }
        let input = input.copy()?;
        for (name, factory) in &self.factories {
            if !input.contains(name)? {
                input.set_item(name, factory.bind(py).call0()?)?;
            }
        }
        Ok(input)
    }

    /// The arguments to use and what was mended in them, or what is wrong with them.
    fn settled<'py>(&self, input: &Bound<'py, PyDict>) -> PyResult<Settled<'py>> {
        let mode = match self.handling.arguments {
            ArgumentMode::Coerce => Mode::Coerce,
            ArgumentMode::Check => Mode::Check,
            ArgumentMode::Pass => {
                return Ok(self.names_checked(&with_plain_names(input)?).map(|input| (input, Vec::new())));
            }
        };
        let hidden: Vec<&str> = self.hidden.iter().map(AsRef::as_ref).collect();
        let hidden = if self.is_open { &hidden[..] } else { &[] };
        let problems = match self.arguments.settle(input, mode, hidden)? {
            Ok(settled) => {
                let repairs = coerced(input.as_any(), settled.as_any());
                return Ok(Ok((settled, repairs)));
            }
            Err(problems) => problems,
        };
        let Some((mended, mut repairs)) = self.with_names_mended(input, mode) else { return Ok(Err(problems)) };
        let mended = json::to_python(input.py(), &mended)?.cast_into::<PyDict>()?;
        Ok(self.arguments.settle(&mended, mode, hidden)?.map(|settled| {
            repairs.extend(coerced(mended.as_any(), settled.as_any()));
            (settled, repairs)
        }))
    }

    /// Arguments that do not fit, with names that do.
    fn with_names_mended(&self, input: &Bound<'_, PyDict>, mode: Mode) -> Option<(Value, Vec<Repair>)> {
        if self.repair() == RepairMode::Off || mode == Mode::Check {
            return None;
        }
        let arguments = foreign::to_value(input.as_any()).ok()?;
        let names = Names { aliases: &self.handling.aliases, hidden: &self.hidden };
        mend_names(&arguments, self.parameters.value(), names)
    }

    /// Adds what stands in for arguments that the model may send and did not, as far as JSON can hold it.
    pub(in crate::bindings::call) fn add_defaults(&self, py: Python<'_>, arguments: &mut Map<String, Value>) {
        let mut add = |name: &Py<PyString>, default: Option<&Py<PyAny>>| {
            let (Ok(name), Some(default)) = (name.bind(py).to_str(), default) else { return };
            if !arguments.contains_key(name)
                && let Ok(default) = json::from_python(default.bind(py))
            {
                arguments.insert(name.to_owned(), default.into());
            }
        };
        match &self.spread {
            None => {
                self.places.iter().filter(|place| place.is_shown).for_each(|it| add(&it.name, it.fallback.as_ref()));
            }
            Some(spread) => spread.shown_defaults().for_each(|(name, default)| add(name, default)),
        }
    }

    /// Arguments with what stands in for those that were not sent.
    pub(crate) fn completed(&self, py: Python<'_>, mut arguments: Value) -> Value {
        if let Value::Object(entries) = &mut arguments {
            self.add_defaults(py, entries);
        }
        arguments
    }

    /// What is checked even when nothing else is: names that the model was not shown. One that the function itself refuses
    /// is left to Python, which says so in its own words.
    fn names_checked<'py>(&self, input: &Bound<'py, PyDict>) -> Result<Bound<'py, PyDict>, Vec<Problem>> {
        let properties = self.parameters.value().get("properties").and_then(Value::as_object);
        let shown: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let mut problems = Vec::new();
        for (name, value) in input {
            let text = name.cast::<PyString>().ok().and_then(|name| name.to_str().ok().map(str::to_owned));
            let Some(name) = text else { continue };
            let is_hidden = self.hidden.iter().any(|hidden| **hidden == *name);
            let is_shown = shown.contains(&name.as_str());
            // Python's own words may hint at a name that is alike, which the model must not learn if it is hidden.
            let is_ours = self.takes_any_name || !self.hidden.is_empty();
            if is_hidden || (!is_shown && !self.is_open && is_ours) {
                let kind = value.get_type().name().map_or_else(|_| "value".to_owned(), |kind| kind.to_string());
                problems.push(Problem {
                    path: name.into(),
                    expected: format!("no such argument (known: {})", shown.join(", ")).into(),
                    found: format!("a value of type {kind}").into(),
                });
            }
        }
        if problems.is_empty() { Ok(input.clone()) } else { Err(problems) }
    }

    /// Everything by name, presets included.
    fn as_keywords<'py>(&self, py: Python<'py>, input: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let keywords = input.copy()?;
        for place in self.places.iter().filter(|place| !place.is_shown) {
            if let Some(preset) = &place.fallback {
                keywords.set_item(&place.name, preset.bind(py))?;
            }
        }
        Ok(keywords)
    }

    /// The objects that a plan keeps alive.
    pub(crate) fn traverse(&self, visit: &pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::gc::PyTraverseError> {
        for place in &self.places {
            visit.call(&place.fallback)?;
        }
        for (_, factory) in &self.factories {
            visit.call(factory)?;
        }
        self.spread.as_ref().map_or(Ok(()), |spread| spread.traverse(visit))
    }
}

/// The same arguments under names that are `str` itself, which Python compares without running anybody's code.
fn with_plain_names<'py>(input: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    if input.keys().iter().all(|name| name.is_exact_instance_of::<PyString>()) {
        return Ok(input.clone());
    }
    let plain = PyDict::new(input.py());
    for (name, value) in input {
        match name.cast::<PyString>() {
            Ok(text) => plain.set_item(PyString::new(input.py(), text.to_str()?), value)?,
            Err(_) => plain.set_item(name, value)?,
        }
    }
    Ok(plain)
}
