//! From the arguments of a request to the call of a Python function.
//!
//! Everything that can be known at registration is computed then: the parameters, which of them the model sees, and the
//! value of one that is not sent. A call fetches its arguments by interned name, checks each on the Python object itself,
//! and passes them by position, which is quicker than `function(**arguments)`.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use serde_json::{Map, Value};

use super::spread::Spread;
use super::value::Arguments;
use crate::bindings::call::python::attached;
use crate::bindings::call::python::drive::{CallArguments, MOST_ARGUMENTS};
use crate::bindings::call::state::State;
use crate::bindings::json;
use crate::bindings::json::{MAX_DEPTH, entries_of};
use crate::bindings::registration::{Parameter, ParameterKind, Signature};
use crate::bindings::rule_value::rule_value;
use crate::bindings::schema::{Fallback, fallback_of, value_to_json};
use crate::bindings::typed::Converters;
use crate::call::repair::RepairMode;
use crate::call::{ArgumentMode, ArgumentRules, Behaviour, CheckedArguments, Repair, Reply};
use crate::policy::Redaction;
use crate::schema::check::{JsonLike, Problem, ValueKind, render};
use crate::schema::{Document, Node};

/// The call plan of one tool, made at registration.
pub(crate) struct Plan {
    tool: Box<str>,
    places: Box<[Place]>,
    /// The number of places that are filled by position; the rest by the names in `keywords`.
    by_position: usize,
    keywords: Option<Py<PyTuple>>,
    /// The general way, for functions that the short one does not fit.
    spread: Option<Box<Spread>>,
    /// Parameters whose default is made anew for each call.
    factories: Box<[(Py<PyString>, Py<PyAny>)]>,
    arguments: Arguments,
    /// The converters of typed arguments, if there are any.
    converters: Option<Box<Converters>>,
    handling: Handling,
    /// The schema that the model was shown.
    parameters: Arc<Document>,
    /// True if the model may send other names too.
    is_open: bool,
    /// Names that the model may not use in any case: presets and parameters that it was not shown.
    hidden: Box<[Box<str>]>,
    /// True if the function takes names that it does not declare: `**kwargs`.
    takes_any_name: bool,
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
struct Place {
    name: Py<PyString>,
    /// True if the model may send it.
    is_shown: bool,
    /// True if it is filled with the context of the call.
    is_context: bool,
    /// The position of its converter, if it is more than a JSON value.
    converter: Option<u16>,
    /// The position of its compiled check.
    check: Option<usize>,
    /// The value to pass when the model sends none: a preset or a default.
    fallback: Option<Py<PyAny>>,
}

/// The outcome of calling.
pub(in crate::bindings::call) enum Called<'py> {
    Returned(Bound<'py, PyAny>),
    Raised(Box<PyErr>),
    /// The arguments do not fit.
    Refused(Box<Reply>),
}

impl Called<'_> {
    #[cold]
    fn raised(error: PyErr) -> Self {
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

    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Self::context(self, py)
    }

    fn is_built(&self, arguments: &Bound<'_, PyDict>) -> bool {
        self.cold.get().and_then(|cold| cold.built.get(arguments.py())).is_some_and(|built| built.is(arguments))
    }
}

/// Arguments that fit the schema and could be built.
pub(in crate::bindings::call) struct AcceptedArguments<'py> {
    /// The JSON values.
    pub(in crate::bindings::call) json: Bound<'py, PyDict>,
    /// The same with the objects that the annotations name; `None` if they name none.
    pub(in crate::bindings::call) built: Option<Bound<'py, PyDict>>,
}

/// Arguments that fit, with their repairs, or all their problems.
type Settled<'py> = Result<(AcceptedArguments<'py>, Vec<Repair>), Vec<Problem>>;

/// The outcome of binding.
pub(in crate::bindings::call) enum Bind<'py> {
    Ready(Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>),
    Refused(Reply),
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
        converters: Converters,
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
            let is_context = preset.is_none() && parameter.is_context;
            let is_shown = preset.is_none() && !is_context && is_shown(name);
            let check = if is_shown { arguments.position(name) } else { None };
            let converter = if is_shown { converters.position(py, parameter.name.bind(py))? } else { None };
            // What the schema requires must come from the model, also when the function has a default.
            let is_required = mode != ArgumentMode::Pass && check.is_some_and(|check| arguments.requires(check));
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
            let converter = converter.and_then(|converter| u16::try_from(converter).ok());
            places.push(Place { name: parameter.name.clone_ref(py), is_shown, is_context, converter, check, fallback });
        }
        let unseen = names.iter().zip(&places).filter(|(_, place)| !place.is_shown);
        let mut hidden: Vec<Box<str>> = unseen.map(|(name, _)| Box::from(*name)).collect();
        let mut is_short = places.len() <= MOST_ARGUMENTS
            && !is_open
            && properties.is_none_or(|properties| properties.keys().all(|name| names.contains(&name)));
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
        let spread = if is_short { None } else { Some(Box::new(Spread::new(py, signature, presets, &is_shown)?)) };
        Ok(Self {
            tool: tool.into(),
            places: places.into(),
            by_position: by_position.len(),
            keywords,
            spread,
            factories: factories.into(),
            arguments,
            converters: (!converters.parameters.is_empty()).then(|| Box::new(converters)),
            handling,
            parameters: document.clone(),
            is_open,
            hidden: hidden.into(),
            takes_any_name: signature.parameters.iter().any(|parameter| parameter.kind == ParameterKind::VarKeyword),
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

    /// Calls `callable` with the arguments of a request; `notes` records their repairs.
    #[inline(always)]
    pub(in crate::bindings::call) fn call<'py>(
        &self,
        callable: &Bound<'py, PyAny>,
        input: &Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> Called<'py> {
        let mut values = CallArguments::new(callable.py());
        let returned = match self.fill(input, self.handling.arguments != ArgumentMode::Pass, notes, &mut values) {
            Ok(true) => {
                let names = self.keywords.as_ref().map(|names| names.bind_borrowed(callable.py()));
                values.call(callable, self.by_position, names.as_deref())
            }
            Ok(false) => return self.call_slowly(callable, input, notes),
            Err(error) => Err(error),
        };
        returned.map_or_else(Called::raised, Called::Returned)
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
        if self.spread.is_some() || (check && self.converters.is_some() && notes.is_built(input)) {
            return Ok(false);
        }
        let py = input.py();
        let mut found = 0;
        for place in &self.places {
            if place.is_shown
                && let Some(mut value) = input.get_item(place.name.bind_borrowed(py))?
            {
                if check {
                    if let Some(converter) = place.converter {
                        match self.convert(place, converter, &value)? {
                            Some(converted) => value = converted,
                            None => return Ok(false),
                        }
                    } else if !self.arguments.accepts(place.check, value.as_borrowed()) {
                        return Ok(false);
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
        Ok(found == input.len())
    }

    /// Checks and converts the value of one parameter; `None` if it has to be looked at more closely.
    fn convert<'py>(
        &self,
        place: &Place,
        converter: u16,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(converters) = &self.converters else { return Ok(None) };
        let converter = usize::from(converter);
        if !converters.is_complete(converter) && !self.arguments.accepts(place.check, value.as_borrowed()) {
            return Ok(None);
        }
        converters.convert(converter, value)
    }

    #[cold]
    fn call_slowly<'py>(
        &self,
        callable: &Bound<'py, PyAny>,
        input: &Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> Called<'py> {
        attached(input.py(), |_| match self.bind_slowly(input, notes) {
            Ok(Bind::Ready(arguments, keywords)) => {
                callable.call(arguments, keywords.as_ref()).map_or_else(Called::raised, Called::Returned)
            }
            Ok(Bind::Refused(answer)) => Called::Refused(Box::new(answer)),
            Err(error) => Called::raised(error),
        })
    }

    /// Binds the arguments of a request without calling; `notes` records their repairs.
    pub(in crate::bindings::call) fn bind<'py>(
        &self,
        input: &Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> PyResult<Bind<'py>> {
        let mut values = CallArguments::new(input.py());
        let check = self.handling.arguments != ArgumentMode::Pass;
        if self.keywords.is_none() && self.fill(input, check, notes, &mut values)? {
            return Ok(Bind::Ready(values.take_tuple()?, None));
        }
        self.bind_slowly(input, notes)
    }

    /// Binds arguments that have to be checked as a whole, and may be repaired or refused.
    fn bind_slowly<'py>(&self, input: &Bound<'py, PyDict>, notes: &impl ArgumentNotes) -> PyResult<Bind<'py>> {
        let py = input.py();
        let input = if notes.is_built(input) {
            input.clone()
        } else {
            match self.accepted(input, notes)? {
                Ok(accepted) => accepted.built.unwrap_or(accepted.json),
                Err(answer) => return Ok(Bind::Refused(answer)),
            }
        };
        let input = self.with_made_defaults(py, input, notes)?;
        if let Some(spread) = &self.spread {
            let input = self.with_context(input, spread, notes)?;
            return Ok(match spread.bind(py, &input)? {
                Ok((arguments, keywords)) => Bind::Ready(arguments, Some(keywords)),
                Err(problems) => Bind::Refused(Reply::InvalidArguments { text: render(&self.tool, &problems) }),
            });
        }
        let mut values = CallArguments::new(py);
        if !self.fill(&input, false, notes, &mut values)? {
            // Something is missing or too much: Python itself says what, in its own words.
            return Ok(Bind::Ready(PyTuple::empty(py), Some(self.as_keywords(py, &input, notes)?)));
        }
        let Some(names) = &self.keywords else { return Ok(Bind::Ready(values.take_tuple()?, None)) };
        let values = values.take_vec();
        let keywords = PyDict::new(py);
        for (name, value) in names.bind(py).iter().zip(&values[self.by_position..]) {
            keywords.set_item(name, value)?;
        }
        Ok(Bind::Ready(PyTuple::new(py, &values[..self.by_position])?, Some(keywords)))
    }

    /// The arguments to use, or the reply that lists their problems; `notes` records their repairs.
    pub(in crate::bindings::call) fn accepted<'py>(
        &self,
        input: &Bound<'py, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> PyResult<Result<AcceptedArguments<'py>, Reply>> {
        let accepted = self.settled(input)?;
        Ok(match self.rules().settle(accepted, |accepted| json::from_object(accepted.json.as_any()).ok()) {
            Ok((accepted, repairs)) => {
                notes.record(repairs);
                Ok(accepted)
            }
            Err((reply, repairs)) => {
                notes.record(repairs);
                Err(reply)
            }
        })
    }

    /// The rules by which arguments are accepted.
    fn rules(&self) -> ArgumentRules<'_> {
        let Handling { arguments, repair, aliases, secrets } = &self.handling;
        ArgumentRules {
            tool: &self.tool,
            parameters: self.parameters.value(),
            behaviour: Behaviour { arguments: *arguments, repair: *repair, ..Behaviour::default() },
            aliases,
            hidden: &self.hidden,
            secrets,
            is_read_only: false,
        }
    }

    /// The redaction of what is said about arguments.
    pub(crate) fn redaction(&self) -> Redaction<'_> {
        Redaction::new(&self.handling.secrets, self.parameters.value())
    }

    /// Repairs without what could be a secret.
    pub(in crate::bindings::call) fn redacted(&self, repairs: Vec<Repair>) -> Vec<Repair> {
        self.rules().redacted(repairs)
    }

    /// The text about arguments that were repaired when they were read, and the repairs that are needed besides.
    pub(in crate::bindings::call) fn explained(
        &self,
        input: &Bound<'_, PyDict>,
        repairs: Vec<Repair>,
    ) -> PyResult<(String, Vec<Repair>)> {
        let (rules, accepted) = (self.rules(), self.settled(input)?);
        Ok(rules.explain(rules.redacted(repairs), accepted, |it| json::from_object(it.json.as_any()).ok()))
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

    /// The arguments to use with their repairs, or their problems.
    fn settled<'py>(&self, input: &Bound<'py, PyDict>) -> PyResult<Settled<'py>> {
        let plain = |json| AcceptedArguments { json, built: None };
        if self.handling.arguments == ArgumentMode::Pass {
            return Ok(self.names_checked(&with_plain_names(input)?).map(|input| (plain(input), Vec::new())));
        }
        let Some(converters) = &self.converters else {
            return Ok(self.checked(input)?.map(|(json, repairs)| (plain(json), repairs)));
        };
        let (input, objects) = self.with_json_forms(converters, input)?;
        let (json, repairs) = match self.checked(&input)? {
            Ok(checked) => checked,
            Err(problems) => return Ok(Err(problems)),
        };
        for (name, _) in entries_of(&objects) {
            let (before, now) = (input.get_item(&name)?, json.get_item(&name)?);
            if !before.zip(now).is_some_and(|(before, now)| now.is(&before)) {
                objects.del_item(name)?; // the JSON form was repaired, so the object is not what runs
            }
        }
        let built = converters.convert_all(&json, &objects)?;
        Ok(built.map(|built| (AcceptedArguments { json, built: Some(built) }, repairs)))
    }

    /// Arguments in which objects that a program passed in place of JSON values have their JSON form, and these objects by name.
    fn with_json_forms<'py>(
        &self,
        converters: &Converters,
        input: &Bound<'py, PyDict>,
    ) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
        let py = input.py();
        let (mut shown, objects) = (input.clone(), PyDict::new(py));
        for parameter in &converters.parameters {
            let Some(value) = input.get_item(&parameter.name)? else { continue };
            if !has_objects(&value, 0) {
                continue;
            }
            let json = value_to_json(&value).map_or_else(|| rule_value(&value, None), Value::from);
            if shown.is(input) {
                shown = input.copy()?;
            }
            shown.set_item(&parameter.name, json::to_python(py, &json)?)?;
            objects.set_item(&parameter.name, value)?;
        }
        Ok((shown, objects))
    }

    /// The JSON values to use with their repairs, or their problems.
    #[allow(clippy::type_complexity, reason = "accepted arguments, as the core has them")]
    fn checked<'py>(
        &self,
        input: &Bound<'py, PyDict>,
    ) -> PyResult<Result<(Bound<'py, PyDict>, Vec<Repair>), Vec<Problem>>> {
        let hidden: Vec<&str> = self.hidden.iter().map(AsRef::as_ref).collect();
        let hidden = if self.is_open { &hidden[..] } else { &[] };
        let check = |input: &Bound<'py, PyAny>, mode| -> PyResult<_> {
            Ok(self.arguments.settle(input.cast::<PyDict>()?, mode, hidden)?.map(Bound::into_any))
        };
        let to_value = |input: &Bound<'py, PyAny>| json::from_object(input).ok();
        let accepted = self.rules().accept(input.as_any(), check, to_value, |it| json::to_python(input.py(), &it))?;
        accepted
            .map(|(accepted, repairs)| Ok((accepted.cast_into::<PyDict>()?, repairs)))
            .map_or_else(|problems| Ok(Err(problems)), |accepted: PyResult<_>| accepted.map(Ok))
    }

    /// Arguments that were accepted, with the defaults of those that were not sent: what rules and approvers see.
    pub(in crate::bindings::call) fn completed(
        &self,
        py: Python<'_>,
        sent: Value,
        built: Option<&Bound<'_, PyDict>>,
        notes: &impl ArgumentNotes,
    ) -> PyResult<CheckedArguments> {
        let mut whole = sent.clone();
        if let (Some(converters), Value::Object(entries)) = (&self.converters, &mut whole) {
            self.add_inner_defaults(py, converters, entries, built)?;
        }
        let properties = self.parameters.value().get("properties").and_then(Value::as_object);
        let Value::Object(entries) = &mut whole else { return Ok(CheckedArguments { sent, whole }) };
        let mut add = |name: &Py<PyString>, default: Bound<'_, PyAny>| -> PyResult<()> {
            let name = name.bind(py).to_str()?;
            if !entries.contains_key(name) {
                let shown = properties.and_then(|properties| properties.get(name)?.get("default"));
                entries.insert(name.to_owned(), rule_value(&default, shown));
            }
            Ok(())
        };
        match &self.spread {
            None => {
                for place in self.places.iter().filter(|place| place.is_shown) {
                    if let Some(default) = &place.fallback {
                        add(&place.name, default.bind(py).clone())?;
                    }
                }
            }
            Some(spread) => {
                for (name, default) in spread.shown_defaults() {
                    if let Some(default) = default {
                        add(name, default.bind(py).clone())?;
                    }
                }
            }
        }
        for (name, factory) in &self.factories {
            let text = name.bind(py).to_str()?;
            let is_shown = properties.is_some_and(|properties| properties.contains_key(text));
            if is_shown && sent.get(text).is_none() {
                add(name, made_default(&notes.made_defaults(py), name, factory)?)?;
            }
        }
        Ok(CheckedArguments { sent, whole })
    }

    /// Adds the defaults inside of typed arguments: the fields of records that were not sent.
    fn add_inner_defaults(
        &self,
        py: Python<'_>,
        converters: &Converters,
        sent: &mut Map<String, Value>,
        built: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let fresh = match built {
            Some(built) => Some(built.clone()),
            None => {
                let input = json::to_python(py, &Value::Object(sent.clone()))?.cast_into::<PyDict>()?;
                converters.convert_all(&input, &PyDict::new(py))?.ok()
            }
        };
        let Some(built) = fresh else { return Ok(()) };
        for parameter in &converters.parameters {
            let name = parameter.name.bind(py).to_str()?;
            if let (Some(sent), Some(object)) = (sent.get_mut(name), built.get_item(&parameter.name)?) {
                let whole = value_to_json(&object).map_or_else(|| rule_value(&object, None), Value::from);
                complete_from(sent, whole);
            }
        }
        Ok(())
    }

    /// The check that is always made: names that the model was not shown. One that the function itself refuses
    /// is left to Python, which says so in its own words.
    fn names_checked<'py>(&self, input: &Bound<'py, PyDict>) -> Result<Bound<'py, PyDict>, Vec<Problem>> {
        let properties = self.parameters.value().get("properties").and_then(Value::as_object);
        let shown: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let mut problems = Vec::new();
        for (name, value) in entries_of(input) {
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

    /// The arguments with the context of the call, for functions that are called by name.
    fn with_context<'py>(
        &self,
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

/// True if a value is, or contains, an object that is not JSON.
fn has_objects(value: &Bound<'_, PyAny>, depth: usize) -> bool {
    match value.kind() {
        ValueKind::Other => true,
        ValueKind::Array if depth < MAX_DEPTH => !value.every_item(|item| !has_objects(item, depth + 1)),
        ValueKind::Object if depth < MAX_DEPTH => {
            !value.every_entry(|key, entry| key.is_some() && !has_objects(entry, depth + 1))
        }
        _ => false,
    }
}

/// Adds the entries of a JSON value that another one lacks, at any depth. Nothing that was sent changes.
fn complete_from(sent: &mut Value, whole: Value) {
    match (sent, whole) {
        (Value::Object(sent), Value::Object(whole)) => {
            for (name, value) in whole {
                match sent.get_mut(&name) {
                    Some(inner) => complete_from(inner, value),
                    None => _ = sent.insert(name, value),
                }
            }
        }
        (Value::Array(sent), Value::Array(whole)) if sent.len() == whole.len() => {
            sent.iter_mut().zip(whole).for_each(|(sent, whole)| complete_from(sent, whole));
        }
        _ => {}
    }
}

/// A default that is made once for each call.
fn made_default<'py>(
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

/// The same arguments under names that are `str` itself, which Python compares without running anybody's code.
fn with_plain_names<'py>(input: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    if input.keys().iter().all(|name| name.is_exact_instance_of::<PyString>()) {
        return Ok(input.clone());
    }
    let plain = PyDict::new(input.py());
    for (name, value) in entries_of(input) {
        match name.cast::<PyString>() {
            Ok(text) => plain.set_item(PyString::new(input.py(), text.to_str()?), value)?,
            Err(_) => plain.set_item(name, value)?,
        }
    }
    Ok(plain)
}
