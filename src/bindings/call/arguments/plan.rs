//! From the arguments of a request to the call of a Python function.
//!
//! Everything that can be known at registration is computed then: the parameters, which of them the model sees, and the
//! value of one that is not sent. A call fetches its arguments by interned name, checks each on the Python object itself,
//! and passes them by position, which is quicker than `function(**arguments)`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde_json::Value;

use super::accept::has_plain_names;
use super::spread::Spread;
use super::value::PyForm;
use crate::bindings::call::python::attached;
use crate::bindings::call::python::drive::{CallArguments, DictWalk, MOST_ARGUMENTS};
use crate::bindings::call::state::State;
use crate::bindings::json::entries_of;
use crate::bindings::registration::{Parameter, ParameterKind, Signature};
use crate::bindings::schema::{Fallback, fallback_of};
use crate::bindings::typed::Converters;
use crate::call::repair::{RepairMode, coercion};
use crate::call::{ArgumentMode, Repair, Reply};
use crate::schema::check::{Checker, FormatRules, ParameterChecks, render};
use crate::schema::{Document, Node};

/// The call plan of one tool, made at registration.
pub(crate) struct Plan {
    pub(super) tool: Arc<str>,
    pub(super) places: Box<[Place]>,
    /// The number of places that are filled by position; the rest by the names in `keywords`.
    pub(super) by_position: usize,
    pub(super) keywords: Option<Py<PyTuple>>,
    /// The general way, for functions that the short one does not fit.
    pub(super) spread: Option<Box<Spread>>,
    /// Parameters whose default is made anew for each call.
    pub(super) factories: Box<[(Py<PyString>, Py<PyAny>)]>,
    /// The check of the arguments, compiled by the first call.
    pub(super) checker: Checker<PyForm>,
    /// The converters of typed arguments, if there are any.
    pub(super) converters: Option<Box<Converters>>,
    pub(super) handling: Handling,
    /// True if the model may send other names too.
    pub(super) is_open: bool,
    /// Names that the model may not use in any case: presets, and parameters that it was not shown unless arguments are passed on
    /// as they are.
    pub(super) hidden: Box<[Box<str>]>,
    /// True if the function takes `**kwargs` only, and arguments are passed on as they came, under any name.
    takes_all: bool,
}

/// The handling of the arguments of a request before the call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handling {
    pub(crate) arguments: ArgumentMode,
    pub(crate) repair: RepairMode,
    /// Other names of parameters, each with the one that it stands for.
    pub(crate) aliases: Arc<[(Box<str>, Box<str>)]>,
    /// The parameters whose values only the tool sees.
    pub(crate) secrets: Arc<[Box<str>]>,
}

/// One parameter, ready to be filled.
pub(super) struct Place {
    pub(super) name: Py<PyString>,
    /// True if the model may send it.
    pub(super) is_shown: bool,
    /// True if it is filled with the context of the call.
    pub(super) is_context: bool,
    /// The position of its converter, if it is more than a JSON value.
    pub(super) converter: Option<u16>,
    /// The position of its check, which is that among the properties of the schema.
    pub(super) check: Option<u16>,
    /// The value to pass when the model sends none: a preset or a default.
    pub(super) fallback: Option<Py<PyAny>>,
}

/// The check of a tool's arguments. A schema that was supplied, and not made from annotations, is compiled now to learn whether it
/// is valid, and its formats are those of JSON Schema.
fn checker_of(parameters: Arc<Document>, is_supplied: bool) -> crate::Result<Checker<PyForm>> {
    let formats = if is_supplied { FormatRules::Standard } else { FormatRules::Python };
    let checker = Checker::with_document(parameters, formats);
    if is_supplied {
        checker.prepare()?;
    }
    Ok(checker)
}

/// Arguments that are bound to the parameters of a function.
pub(in crate::bindings::call) enum BoundArguments<'py> {
    /// In the order of the parameters.
    Listed(CallArguments<'py>),
    /// By position and by name.
    Spread(Bound<'py, PyTuple>, Bound<'py, PyDict>),
}

/// Arguments that could not be bound.
pub(in crate::bindings::call) enum Unbound {
    /// They do not fit.
    Refused(Box<Reply>),
    /// Code of the developer raised this.
    Raised(Box<PyErr>),
}

impl From<Reply> for Unbound {
    fn from(reply: Reply) -> Self {
        Self::Refused(Box::new(reply))
    }
}

impl From<PyErr> for Unbound {
    #[cold]
    fn from(error: PyErr) -> Self {
        Self::Raised(Box::new(error))
    }
}

/// Notes that a call keeps about its arguments: their repairs, and the defaults that were made for it.
pub(in crate::bindings::call) trait ArgumentNotes {
    /// Adds repairs.
    fn record(&self, repairs: Vec<Repair>);

    /// The defaults that were made so far, by name: rules and the tool get the same object.
    fn made_defaults<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict>;

    /// Keeps the typed arguments that were built for a decision, so that the tool gets the same objects.
    fn keep_built(&self, sent: &Value, built: &Bound<'_, PyDict>);

    /// The typed arguments that were kept, if they were built from these.
    fn built_from<'py>(&self, py: Python<'py>, sent: &Value) -> Option<Bound<'py, PyDict>>;

    /// The context of the call.
    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;

    /// True for the arguments that were kept.
    fn is_built(&self, arguments: &Bound<'_, PyDict>) -> bool;
}

/// Arguments that are looked at without being called with.
impl ArgumentNotes for () {
    fn record(&self, _repairs: Vec<Repair>) {}

    fn made_defaults<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        PyDict::new(py)
    }

    fn keep_built(&self, _sent: &Value, _built: &Bound<'_, PyDict>) {}

    fn built_from<'py>(&self, _py: Python<'py>, _sent: &Value) -> Option<Bound<'py, PyDict>> {
        None
    }

    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(py.None().into_bound(py))
    }

    fn is_built(&self, _arguments: &Bound<'_, PyDict>) -> bool {
        false
    }
}

impl ArgumentNotes for State {
    fn record(&self, repairs: Vec<Repair>) {
        if !repairs.is_empty() {
            self.cold().repaired.borrow_mut().repairs.extend(repairs);
        }
    }

    fn made_defaults<'py>(&self, py: Python<'py>) -> Bound<'py, PyDict> {
        let slot = &self.cold().made_defaults;
        if let Some(made) = slot.get(py).and_then(|made| made.cast_into::<PyDict>().ok()) {
            return made;
        }
        let made = PyDict::new(py);
        slot.set(made.clone().into_any());
        made
    }

    fn keep_built(&self, sent: &Value, built: &Bound<'_, PyDict>) {
        self.cold().built_from.replace(Some(sent.clone()));
        self.cold().built.set(built.clone().into_any());
    }

    fn built_from<'py>(&self, py: Python<'py>, sent: &Value) -> Option<Bound<'py, PyDict>> {
        let cold = self.cold.get().filter(|cold| cold.built_from.borrow().as_ref() == Some(sent))?;
        cold.built.get(py)?.cast_into().ok()
    }

    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Self::context(self, py)
    }

    fn is_built(&self, arguments: &Bound<'_, PyDict>) -> bool {
        self.cold.get().and_then(|cold| cold.built.get(arguments.py())).is_some_and(|built| built.is(arguments))
    }
}

impl Plan {
    /// Plans the calls of a tool; `document` holds the same as `parameters`.
    #[allow(clippy::too_many_arguments, reason = "all that is known about a tool comes together here")]
    pub(crate) fn new(
        py: Python<'_>,
        tool: &Arc<str>,
        signature: &Signature,
        presets: &Bound<'_, PyDict>,
        parameters: &Node,
        document: &Arc<Document>,
        is_supplied: bool,
        converters: Converters,
        handling: Handling,
    ) -> PyResult<Self> {
        let mode = handling.arguments;
        // A parameter that the schema does not show can be sent then, too.
        let passes_all = mode == ArgumentMode::Pass;
        let checker = checker_of(document.clone(), is_supplied)?;
        let properties = parameters.get("properties").and_then(Node::as_object);
        let required = parameters.get("required").and_then(Node::as_array).unwrap_or_default();
        let is_shown = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        let is_open = properties.is_none()
            || parameters.get("additionalProperties").is_some_and(|rest| *rest != Node::Bool(false))
            || parameters.get("patternProperties").is_some();
        let mut by_position: Vec<&Parameter> = Vec::with_capacity(signature.parameters.len());
        let mut by_name: Vec<&Parameter> = Vec::new();
        for parameter in &signature.parameters {
            match parameter.kind {
                ParameterKind::PositionalOnly => by_position.push(parameter),
                ParameterKind::PositionalOrKeyword if !signature.by_name => by_position.push(parameter),
                ParameterKind::VarPositional | ParameterKind::VarKeyword => {}
                _ => by_name.push(parameter),
            }
        }
        let mut names = Vec::with_capacity(by_position.len() + by_name.len());
        let mut places = Vec::with_capacity(names.capacity());
        let (mut factories, mut known_properties) = (Vec::new(), 0);
        for parameter in by_position.iter().chain(&by_name) {
            let name = parameter.name.bind(py).to_str()?;
            let preset = if presets.is_empty() { None } else { presets.get_item(&parameter.name)? };
            let is_context = preset.is_none() && parameter.is_context;
            let is_sent = preset.is_none() && !is_context;
            let property = properties.and_then(|properties| properties.keys().position(|key| key == name));
            known_properties += usize::from(property.is_some());
            let check = property.filter(|_| is_sent);
            let is_shown = is_sent && (passes_all || check.is_some());
            let converter = if is_shown { converters.position(&parameter.name) } else { None };
            // What the schema requires must come from the model, also when the function has a default.
            let is_required = !passes_all && check.is_some() && required.iter().any(|each| each.as_str() == Some(name));
            let default = parameter.default.as_ref().filter(|_| !is_required);
            let fallback = match (preset, default) {
                (Some(preset), _) => Some(preset.unbind()),
                (None, _) if is_context => None,
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
            let [check, converter] = [check, converter].map(|place| place.and_then(|place| u16::try_from(place).ok()));
            places.push(Place { name: parameter.name.clone_ref(py), is_shown, is_context, converter, check, fallback });
        }
        let unseen = names.iter().zip(&places).filter(|(_, place)| !place.is_shown);
        let mut hidden: Vec<Box<str>> = unseen.map(|(name, _)| Box::from(*name)).collect();
        let has = |kind| signature.parameters.iter().any(|parameter| parameter.kind == kind);
        // Other names reach `**kwargs` then, beside parameters that only a position reaches.
        let is_mixed = passes_all && has(ParameterKind::VarKeyword) && has(ParameterKind::PositionalOnly);
        let mut is_short = places.len() <= MOST_ARGUMENTS
            && !is_open
            && !is_mixed
            && properties.is_none_or(|properties| properties.len() == known_properties);
        for (name, _) in entries_of(presets) {
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
        let takes_all = match &*signature.parameters {
            [all] if all.kind == ParameterKind::VarKeyword => {
                let is_rest = !is_supplied && is_shown(all.name.bind(py).to_str()?);
                passes_all && hidden.is_empty() && presets.is_empty() && !is_rest
            }
            _ => false,
        };
        let spread = if is_short {
            None
        } else {
            Some(Box::new(Spread::new(py, signature, presets, &is_shown, is_supplied, passes_all)?))
        };
        Ok(Self {
            tool: tool.clone(),
            places: places.into(),
            by_position: by_position.len(),
            keywords,
            spread,
            factories: factories.into(),
            checker,
            converters: (!converters.parameters.is_empty()).then(|| Box::new(converters)),
            handling,
            is_open,
            hidden: hidden.into(),
            takes_all,
        })
    }

    /// The handling of the arguments of a request before the call.
    pub(crate) fn handling(&self) -> &Handling {
        &self.handling
    }

    /// The repair mode; arguments that are passed on as they came are never repaired.
    pub(crate) fn repair(&self) -> RepairMode {
        if self.handling.arguments == ArgumentMode::Pass { RepairMode::Off } else { self.handling.repair }
    }

    /// Binds the arguments of a request, which are checked on the way; `notes` records their repairs.
    #[inline(always)]
    pub(in crate::bindings::call) fn bind<'py>(
        &self,
        input: &Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> Result<BoundArguments<'py>, Unbound> {
        let mut values = CallArguments::new(input.py());
        let check = self.handling.arguments != ArgumentMode::Pass;
        // What is not checked by its name could pretend to have that of a parameter which the model was not shown.
        if (check || has_plain_names(input)) && self.fill(input, check, notes, &mut values)? {
            return Ok(BoundArguments::Listed(values));
        }
        attached(input.py(), |_| self.bind_slowly(input, notes))
    }

    /// Calls a function with arguments that were bound by this plan.
    #[inline(always)]
    pub(in crate::bindings::call) fn call<'py>(
        &self,
        callable: &Bound<'py, PyAny>,
        arguments: BoundArguments<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match arguments {
            BoundArguments::Listed(mut values) => {
                let names = self.keywords.as_ref().map(|names| names.bind_borrowed(callable.py()));
                values.call(callable, self.by_position, names.as_deref())
            }
            BoundArguments::Spread(arguments, keywords) => {
                attached(callable.py(), |_| callable.call(arguments, Some(&keywords)))
            }
        }
    }

    /// The same arguments by position and by name, for a call in another place.
    pub(in crate::bindings::call) fn parts<'py>(
        &self,
        py: Python<'py>,
        arguments: BoundArguments<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>)> {
        let mut values = match arguments {
            BoundArguments::Listed(values) => values,
            BoundArguments::Spread(arguments, keywords) => return Ok((arguments, Some(keywords))),
        };
        let Some(names) = &self.keywords else { return Ok((values.take_tuple()?, None)) };
        let values = values.take_vec();
        let keywords = PyDict::new(py);
        for (name, value) in names.bind(py).iter().zip(&values[self.by_position..]) {
            keywords.set_item(name, value)?;
        }
        Ok((PyTuple::new(py, &values[..self.by_position])?, Some(keywords)))
    }

    /// Fetches the arguments in the order of the places. False when anything is out of the ordinary: the slow way finds
    /// out what.
    #[inline]
    fn fill<'py>(
        &self,
        input: &Bound<'py, PyDict>,
        check: bool,
        notes: &impl ArgumentNotes,
        values: &mut CallArguments<'py>,
    ) -> PyResult<bool> {
        if self.spread.is_some() {
            return Ok(false);
        }
        let checks = if check {
            let Some(checks) = self.checker.by_parameter() else { return Ok(false) };
            Some(checks)
        } else {
            None
        };
        let py = input.py();
        let mut repairs = Vec::new();
        let mut found = 0;
        // Arguments mostly come in the order of the parameters, under the very objects that are their names.
        let (count, mut entries, mut ahead) = (input.len(), DictWalk::new(input), None);
        for place in &self.places {
            let value = if place.is_shown && found < count {
                match ahead.take().or_else(|| entries.next()) {
                    Some((key, value)) if key == place.name.as_ptr() => Some(value),
                    other => {
                        ahead = other;
                        input.get_item(place.name.bind_borrowed(py))?
                    }
                }
            } else {
                None
            };
            if let Some(mut value) = value {
                if let Some(checks) = checks
                    && !self.fits(place, checks, &mut value)?
                {
                    match self.coerce(place, checks, &value)? {
                        Some((coerced, repair)) => {
                            value = coerced;
                            repairs.push(repair);
                        }
                        None => return Ok(false),
                    }
                }
                found += 1;
                values.push(value);
                continue;
            }
            match &place.fallback {
                Some(fallback) => values.push(fallback.bind(py).clone()),
                None if place.is_context => values.push(attached(py, |py| notes.context(py))?),
                None => return Ok(false),
            }
        }
        if found != input.len() {
            return Ok(false);
        }
        if !repairs.is_empty() {
            notes.record(repairs);
        }
        Ok(true)
    }

    /// Checks the value of one parameter, and converts it if the annotation names more than JSON; false is undecided.
    #[inline(always)]
    fn fits(&self, place: &Place, checks: ParameterChecks<'_>, value: &mut Bound<'_, PyAny>) -> PyResult<bool> {
        let Some(converter) = place.converter else {
            return Ok(place.check.is_some_and(|check| checks.accepts(check.into(), value)));
        };
        let built = self.convert(place, checks, converter.into(), value)?;
        Ok(built.map(|built| *value = built).is_some())
    }

    /// Checks and converts the value of one parameter; `None` if it has to be looked at more closely.
    fn convert<'py>(
        &self,
        place: &Place,
        checks: ParameterChecks<'_>,
        converter: usize,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(converters) = &self.converters else { return Ok(None) };
        let check = place.check.map(usize::from);
        if converters.only_floats(converter) && check.is_some_and(|check| checks.accepts_exactly(check, value)) {
            return Ok(Some(value.clone()));
        }
        if !converters.is_complete(converter) && !check.is_some_and(|check| checks.accepts(check, value)) {
            return Ok(None);
        }
        converters.convert(converter, value)
    }

    /// Coerces the value of one parameter to its declared type, such as `"42"` to the integer 42, where no more than that is to be
    /// done about the arguments; `None` is undecided.
    #[cold]
    fn coerce<'py>(
        &self,
        place: &Place,
        checks: ParameterChecks<'_>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Option<(Bound<'py, PyAny>, Repair)>> {
        let Handling { arguments, repair, secrets, .. } = &self.handling;
        if *arguments != ArgumentMode::Coerce || *repair == RepairMode::Explain || !secrets.is_empty() {
            return Ok(None);
        }
        attached(value.py(), |py| {
            let coerced = place.check.and_then(|check| checks.coerce(check.into(), value));
            let Some(mut coerced) = coerced else { return Ok(None) };
            let repair = coercion(place.name.bind(py).to_str()?, value, &coerced);
            Ok(self.fits(place, checks, &mut coerced)?.then_some((coerced, repair)))
        })
    }

    /// Binds arguments that have to be checked as a whole, and may be repaired or refused.
    #[cold]
    fn bind_slowly<'py>(
        &self,
        input: &Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> Result<BoundArguments<'py>, Unbound> {
        if self.takes_all && has_plain_names(input) {
            return Ok(BoundArguments::Spread(PyTuple::empty(input.py()), input.copy()?));
        }
        let accepted = self.accepted(input, notes)??;
        self.bind_accepted(accepted.built.unwrap_or(accepted.json), notes)
    }

    /// Binds arguments that were decided about, which are checked already unless their objects have to be built once more.
    pub(in crate::bindings::call) fn bind_permitted<'py>(
        &self,
        input: Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> Result<BoundArguments<'py>, Unbound> {
        if self.converters.is_some() && !notes.is_built(&input) {
            return self.bind_slowly(&input, notes);
        }
        self.bind_accepted(input, notes)
    }

    fn bind_accepted<'py>(
        &self,
        input: Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> Result<BoundArguments<'py>, Unbound> {
        let py = input.py();
        let input = self.with_made_defaults(py, input, notes)?;
        if let Some(spread) = &self.spread {
            let input = with_context(input, spread, notes)?;
            return match spread.bind(py, &input)? {
                Ok((arguments, keywords)) => Ok(BoundArguments::Spread(arguments, keywords)),
                Err(problems) => Err(Reply::InvalidArguments { text: render(&self.tool, &problems) }.into()),
            };
        }
        let mut values = CallArguments::new(py);
        if !self.fill(&input, false, notes, &mut values)? {
            // Something is missing or too much: Python itself says what, in its own words.
            return Ok(BoundArguments::Spread(PyTuple::empty(py), self.as_keywords(py, &input, notes)?));
        }
        Ok(BoundArguments::Listed(values))
    }

    fn with_made_defaults<'py>(
        &self,
        py: Python<'py>,
        input: Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> PyResult<Bound<'py, PyDict>> {
        if self.factories.is_empty() {
            return Ok(input);
        }
        let (input, made) = (input.copy()?, notes.made_defaults(py));
        for (name, factory) in &self.factories {
            if !input.contains(name)? {
                input.set_item(name, made_default(&made, name, factory)?)?;
            }
        }
        Ok(input)
    }

    /// Everything by name, presets included.
    fn as_keywords<'py>(
        &self,
        py: Python<'py>,
        input: &Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> PyResult<Bound<'py, PyDict>> {
        let keywords = input.copy()?;
        for place in self.places.iter().filter(|place| !place.is_shown) {
            if let Some(preset) = &place.fallback {
                keywords.set_item(&place.name, preset.bind(py))?;
            } else if place.is_context {
                keywords.set_item(&place.name, notes.context(py)?)?;
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
        if let Some(converters) = &self.converters {
            converters.traverse(visit)?;
        }
        self.spread.as_ref().map_or(Ok(()), |spread| spread.traverse(visit))
    }
}

/// A default that is made once for each call.
pub(super) fn made_default<'py>(
    made: &Bound<'py, PyDict>,
    name: &Py<PyString>,
    factory: &Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(value) = made.get_item(name)? {
        return Ok(value);
    }
    let value = factory.bind(made.py()).call0()?;
    made.set_item(name, &value)?;
    Ok(value)
}

/// The arguments with the context of the call, for functions that are called by name.
fn with_context<'py>(
    input: Bound<'py, PyDict>,
    spread: &Spread,
    notes: &impl ArgumentNotes,
) -> PyResult<Bound<'py, PyDict>> {
    let mut names = spread.contexts().peekable();
    if names.peek().is_none() {
        return Ok(input);
    }
    let (input, context) = (input.copy()?, notes.context(input.py())?);
    for name in names {
        input.set_item(name, &context)?;
    }
    Ok(input)
}
