//! The acceptance of arguments: JSON values that fit the schema, the objects that are built from them, or the reply that lists
//! their problems; and the whole of them, with every default, that rules and approvers see.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyString};
use serde_json::{Map, Value};

use super::plan::{ArgumentNotes, Handling, Plan, made_default};
use crate::bindings::into_response::error_text;
use crate::bindings::json;
use crate::bindings::json::{MAX_DEPTH, entries_of};
use crate::bindings::rule_value::{argument_value, built_value, default_value};
use crate::bindings::typed::Converters;
use crate::call::repair::explanation;
use crate::call::{ArgumentMode, ArgumentRules, Behaviour, CheckedArguments, ReadRepairs, Repair, Reply, Unfit};
use crate::policy::Redaction;
use crate::schema::check::{JsonLike, Problem, ValueKind};

/// Arguments that fit the schema and could be built.
pub(in crate::bindings::call) struct AcceptedArguments<'py> {
    /// The JSON values.
    pub(in crate::bindings::call) json: Bound<'py, PyDict>,
    /// The same with the objects that the annotations name; `None` if they name none.
    pub(in crate::bindings::call) built: Option<Bound<'py, PyDict>>,
}

/// Arguments that fit, with their repairs, or all their problems.
type Settled<'py> = Result<(AcceptedArguments<'py>, Vec<Repair>), Vec<Problem>>;

impl Plan {
    /// Checks the arguments of a request, and makes the copy of them that is decided about.
    pub(in crate::bindings::call) fn check_arguments(
        &self,
        input: &Bound<'_, PyDict>,
        notes: &impl ArgumentNotes,
    ) -> PyResult<Result<CheckedArguments, Unfit>> {
        let py = input.py();
        let accepted = match self.accepted(input, notes)? {
            Ok(accepted) => accepted,
            Err(reply) => return Ok(Err(Unfit::Refused(reply))),
        };
        match json::value_from_python(&accepted.json) {
            Ok(sent) => {
                if let Some(built) = &accepted.built {
                    notes.keep_built(&sent, built);
                }
                self.completed(py, sent, accepted.built, notes).map(Ok)
            }
            Err(error) => Ok(Err(Unfit::Unwritable(error_text(py, &error)))),
        }
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
            parameters: self.checker.schema(),
            behaviour: Behaviour { arguments: *arguments, repair: *repair, ..Behaviour::default() },
            aliases,
            hidden: &self.hidden,
            secrets,
            is_read_only: false,
        }
    }

    /// The redaction of what is said about arguments.
    pub(crate) fn redaction(&self) -> Redaction<'_> {
        Redaction::new(&self.handling.secrets, self.checker.schema())
    }

    /// Repairs without what could be a secret.
    pub(in crate::bindings::call) fn redacted(&self, repairs: Vec<Repair>) -> Vec<Repair> {
        self.rules().redacted(repairs)
    }

    /// The reply to arguments that may not be what was meant, by the repairs that were needed to read them, and the repairs that are
    /// needed besides.
    pub(in crate::bindings::call) fn refuse_repaired(
        &self,
        read: &ReadRepairs,
        is_read_only: bool,
        input: &Bound<'_, PyDict>,
    ) -> (Option<Reply>, Vec<Repair>) {
        let rules = ArgumentRules { is_read_only, ..self.rules() };
        let mut more = Vec::new();
        let explain = |repairs: Vec<Repair>| match self.settled(input) {
            Ok(accepted) => {
                let (text, needed) = rules.explain(repairs, accepted, |it| json::from_object(it.json.as_any()).ok());
                more = needed;
                text
            }
            // Without the arguments, the repairs can still be listed.
            Err(_) => explanation(&self.tool, &repairs, None),
        };
        let reply = rules.refuse_repaired(read, explain);
        (reply, more)
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
        let (input, objects) = with_json_forms(converters, input)?;
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

    /// The JSON values to use with their repairs, or their problems.
    #[allow(clippy::type_complexity, reason = "accepted arguments, as the core has them")]
    fn checked<'py>(
        &self,
        input: &Bound<'py, PyDict>,
    ) -> PyResult<Result<(Bound<'py, PyDict>, Vec<Repair>), Vec<Problem>>> {
        let hidden: Vec<&str> = self.hidden.iter().map(AsRef::as_ref).collect();
        let hidden = if self.is_open { &hidden[..] } else { &[] };
        let check = |input: &Bound<'py, PyAny>, mode| -> PyResult<_> {
            let checked = self.checker.check(input, mode, hidden);
            Ok(checked.map(|changed| changed.unwrap_or_else(|| input.clone())))
        };
        let to_value = |input: &Bound<'py, PyAny>| json::from_object(input).ok();
        let accepted = self.rules().accept(input.as_any(), check, to_value, |it| json::to_python(input.py(), &it))?;
        accepted
            .map(|(accepted, repairs)| Ok((accepted.cast_into::<PyDict>()?, repairs)))
            .map_or_else(|problems| Ok(Err(problems)), |accepted: PyResult<_>| accepted.map(Ok))
    }

    /// Arguments that were accepted in their canonical form, with the defaults of those that were not sent: what rules and approvers
    /// see. Objects that were not built yet are built and kept for the run.
    pub(in crate::bindings::call) fn completed<'py>(
        &self,
        py: Python<'py>,
        sent: Value,
        built: Option<Bound<'py, PyDict>>,
        notes: &impl ArgumentNotes,
    ) -> PyResult<CheckedArguments> {
        let mut whole = sent.clone();
        if let (Some(converters), Value::Object(entries)) = (&self.converters, &mut whole)
            && let Some(built) = built.map_or_else(|| rebuilt(py, converters, &sent, notes), |built| Ok(Some(built)))?
        {
            write_built(py, converters, entries, &built)?;
        }
        let properties = self.checker.schema().get("properties").and_then(Value::as_object);
        let Value::Object(entries) = &mut whole else { return Ok(CheckedArguments { sent, whole }) };
        let mut add = |name: &Py<PyString>, default: Bound<'_, PyAny>| -> PyResult<()> {
            let name = name.bind(py).to_str()?;
            if !entries.contains_key(name) {
                let shown = properties.and_then(|properties| properties.get(name)?.get("default"));
                entries.insert(name.to_owned(), default_value(&default, shown));
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

    /// The canonical form of a value for one parameter, or `Some(None)` if it does not fit; `None` if its JSON value stays as it is.
    #[allow(clippy::option_option, reason = "outside: the parameter is typed; inside: the value fits")]
    pub(crate) fn canonical(&self, py: Python<'_>, name: &str, value: &Value) -> PyResult<Option<Option<Value>>> {
        let is_typed = |converters: &&Converters| converters.parameters.iter().any(|it| it.name.bind(py) == name);
        let Some(converters) = self.converters.as_deref().filter(is_typed) else { return Ok(None) };
        let input = PyDict::new(py);
        input.set_item(name, json::to_python(py, value)?)?;
        let Ok(built) = converters.convert_all(&input, &PyDict::new(py))? else { return Ok(Some(None)) };
        Ok(Some(built.get_item(name)?.map(|built| built_value(&built, Some(value)))))
    }

    /// The check that is made even if arguments are passed on as they are: names that are preset, bound by a partial or filled by
    /// the call itself. All other names are the function's to accept or refuse, in its own words.
    fn names_checked<'py>(&self, input: &Bound<'py, PyDict>) -> Result<Bound<'py, PyDict>, Vec<Problem>> {
        let properties = self.checker.schema().get("properties").and_then(Value::as_object);
        let shown: Vec<&str> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let mut problems = Vec::new();
        for (name, value) in entries_of(input) {
            let text = name.cast::<PyString>().ok().and_then(|name| name.to_str().ok().map(str::to_owned));
            let Some(name) = text else { continue };
            if self.hidden.iter().any(|hidden| **hidden == *name) {
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
}

/// True if a value is, or contains, an object that is not JSON. A number that JSON does not have is none: it stays and is refused.
fn has_objects(value: &Bound<'_, PyAny>, depth: usize) -> bool {
    match value.kind() {
        ValueKind::Other => !value.is_instance_of::<PyFloat>(),
        ValueKind::Array if depth < MAX_DEPTH => !value.every_item(|item| !has_objects(item, depth + 1)),
        ValueKind::Object if depth < MAX_DEPTH => {
            !value.every_entry(|key, entry| key.is_some() && !has_objects(entry, depth + 1))
        }
        _ => false,
    }
}

/// True if all names are `str` itself, which Python compares without running anybody's code.
pub(super) fn has_plain_names(input: &Bound<'_, PyDict>) -> bool {
    input.iter().all(|(name, _)| name.is_exact_instance_of::<PyString>())
}

/// The same arguments under names that are `str` itself.
fn with_plain_names<'py>(input: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    if has_plain_names(input) {
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

/// Arguments in which objects that a program passed in place of JSON values have their JSON form, and these objects by name.
fn with_json_forms<'py>(
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
        if shown.is(input) {
            shown = input.copy()?;
        }
        shown.set_item(&parameter.name, json::to_python(py, &argument_value(&value))?)?;
        objects.set_item(&parameter.name, value)?;
    }
    Ok((shown, objects))
}

/// The objects of arguments that were accepted before, such as those of a pending call: kept ones, or built now; `None` if they do
/// not fit any more, so that the call will be refused.
fn rebuilt<'py>(
    py: Python<'py>,
    converters: &Converters,
    sent: &Value,
    notes: &impl ArgumentNotes,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    if let Some(kept) = notes.built_from(py, sent) {
        return Ok(Some(kept));
    }
    let input = json::to_python(py, sent)?.cast_into::<PyDict>()?;
    let built = converters.convert_all(&input, &PyDict::new(py))?.ok();
    if let Some(built) = &built {
        notes.keep_built(sent, built);
    }
    Ok(built)
}

/// Puts the canonical form of typed arguments in the place of what was sent, with every field that was not.
fn write_built(
    py: Python<'_>,
    converters: &Converters,
    sent: &mut Map<String, Value>,
    built: &Bound<'_, PyDict>,
) -> PyResult<()> {
    for parameter in &converters.parameters {
        let name = parameter.name.bind(py).to_str()?;
        if let (Some(sent), Some(object)) = (sent.get_mut(name), built.get_item(&parameter.name)?) {
            *sent = built_value(&object, Some(sent));
        }
    }
    Ok(())
}
