//! Typed arguments: JSON values that were accepted become the objects that the annotations of a function name.
//!
//! A [`Converter`] is read from an annotation at registration, by `schema::converter`. Each call walks the value and the converter
//! together. An object that already is what the annotation names stays as it is, so that a program can pass its own.
//!
//! - this file: converters, the walk through containers and unions, problems with their paths;
//! - `scalar`: numbers, dates and times, enumerations, classes that are called with a text;
//! - `record`: dataclasses, attrs classes, named tuples and typed dictionaries;
//! - `external`: types that pydantic or msgspec validates.

mod external;
mod record;
mod scalar;

use std::fmt::Display;

use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyList, PySet, PyString, PyTuple};

pub(crate) use self::external::{External, Library};
pub(crate) use self::record::{Record, RecordField, RecordForm};
pub(crate) use self::scalar::{Construct, Enumeration, JsonShape, Moment, is_json_scalar};

use super::imported::import_module;
use super::into_response::error_text;
use super::json::{MAX_DEPTH, entries_of};
use crate::schema::check::{Expected, Found, PathStep, Problem};

/// The conversion of a JSON value to an object of one type.
pub(crate) enum Converter {
    /// A JSON value that stays as it is.
    Json(JsonShape),
    /// A whole number, also if it is written as `3.0` or is the key of an object.
    Integer,
    /// A number with a fraction, also if it is written as `3`.
    Float,
    /// A date, a time or a duration.
    Moment(Moment),
    /// Bytes, written as UTF-8 text.
    Bytes,
    /// An object of a class that is called with the text.
    Construct(Box<Construct>),
    /// A member of an enumeration.
    Enumeration(Box<Enumeration>),
    /// Any number of values of one type.
    Items(Box<Converter>, ItemsClass),
    /// A fixed number of values, each with its own type.
    Tuple(Box<[Converter]>),
    /// Values by key.
    Map(Box<(Converter, Converter)>, MapClass),
    /// An object of a class with fields.
    Record(Box<Record>),
    /// A type that another library validates.
    External(Box<External>),
    /// The type, or `None`.
    Nullable(Box<Converter>),
    /// One of several types.
    Union(Box<[Converter]>),
    /// A definition of [`Converters`], by its place. A type that contains itself refers to its own.
    Definition(usize),
}

/// The classes of collections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemsClass {
    List,
    Tuple,
    Set,
    FrozenSet,
    Deque,
}

/// The classes of mappings.
pub(crate) enum MapClass {
    Dict,
    /// A class of `collections` that is called with a dict.
    Of(&'static str),
    /// `defaultdict`, with the factory of missing values.
    Default(Py<PyAny>),
}

/// The converters of the parameters of one tool.
#[derive(Default)]
pub(crate) struct Converters {
    /// By the name of the parameter; parameters whose JSON value stays as it is are left out.
    pub(crate) parameters: Box<[ParameterConverter]>,
    pub(crate) definitions: Box<[Converter]>,
}

/// The converter of one parameter.
pub(crate) struct ParameterConverter {
    pub(crate) name: Py<PyString>,
    pub(crate) converter: Converter,
    /// True if the conversion checks all that the schema says, so that the value need not be checked against it before.
    pub(crate) is_complete: bool,
    /// True if all that it converts are integers in place of floats, so that a value whose numbers are exact stays as it is.
    pub(crate) only_floats: bool,
}

impl Converters {
    /// The place of the converter of a parameter of the signature that was read.
    pub(crate) fn position(&self, parameter: &Py<PyString>) -> Option<usize> {
        self.parameters.iter().position(|own| own.name.is(parameter))
    }

    /// True if the conversion at a place needs no check of the schema before.
    pub(crate) fn is_complete(&self, place: usize) -> bool {
        self.parameters[place].is_complete
    }

    /// True if the conversion at a place changes nothing but integers in place of floats.
    pub(crate) fn only_floats(&self, place: usize) -> bool {
        self.parameters[place].only_floats
    }

    /// Converts the value of the parameter at a place; `None` if it does not fit.
    ///
    /// # Errors
    ///
    /// Those of Python code that are not exceptions of the value, such as `KeyboardInterrupt`.
    #[inline]
    pub(crate) fn convert<'py>(&self, place: usize, value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut run = Conversion::new(&self.definitions);
        let converted = self.parameters[place].converter.convert(&mut run, &Place::ROOT, value);
        run.raised.map_or(Ok(converted), Err)
    }

    /// Converts accepted arguments. `objects` are those of them that were passed as objects, which take the place of their JSON
    /// form.
    pub(crate) fn convert_all<'py>(
        &self,
        input: &Bound<'py, PyDict>,
        objects: &Bound<'py, PyDict>,
    ) -> PyResult<Result<Bound<'py, PyDict>, Vec<Problem>>> {
        let py = input.py();
        let output = input.copy()?;
        let mut run = Conversion::new(&self.definitions);
        for parameter in &self.parameters {
            let name = parameter.name.bind(py);
            let Some(accepted) = input.get_item(name)? else { continue };
            let value = objects.get_item(name)?.unwrap_or(accepted);
            let place = Place { parent: None, step: Step::Key(name.to_str()?) };
            if let Some(converted) = parameter.converter.convert(&mut run, &place, &value) {
                output.set_item(name, converted)?;
            }
        }
        if let Some(error) = run.raised {
            return Err(error);
        }
        Ok(if run.problems.is_empty() { Ok(output) } else { Err(run.problems) })
    }

    /// The objects that the converters keep alive.
    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let parameters = self.parameters.iter().map(|parameter| &parameter.converter);
        parameters.chain(&self.definitions).try_for_each(|converter| converter.traverse(visit))
    }
}

/// A place inside of the arguments, as a chain up to the parameter.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    const ROOT: Self = Self { parent: None, step: Step::Root };

    fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    fn steps(&self) -> Vec<PathStep> {
        let mut steps = self.parent.map_or_else(Vec::new, Place::steps);
        match self.step {
            Step::Root => {}
            Step::Key(key) => steps.push(PathStep::Key(key.into())),
            Step::Index(index) => steps.push(PathStep::Index(index)),
        }
        steps
    }
}

/// One conversion under way.
pub(super) struct Conversion<'a> {
    definitions: &'a [Converter],
    problems: Vec<Problem>,
    /// An error that ends the call and not only the conversion.
    raised: Option<PyErr>,
    depth: usize,
}

impl<'a> Conversion<'a> {
    fn new(definitions: &'a [Converter]) -> Self {
        Self { definitions, problems: Vec::new(), raised: None, depth: 0 }
    }

    /// True if there are more problems than the number before, or the call is to end.
    fn has_failed_since(&self, before: usize) -> bool {
        self.problems.len() > before || self.raised.is_some()
    }

    /// Records a problem.
    #[cold]
    fn refuse<'py>(
        &mut self,
        place: &Place<'_>,
        expected: impl Into<Expected>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        self.refuse_at(place.steps(), expected.into(), Found::of(value));
        None
    }

    #[cold]
    fn refuse_at(&mut self, steps: Vec<PathStep>, expected: Expected, found: Found) {
        self.problems.push(Problem { path: steps.into_iter().collect(), expected, found });
    }

    /// Records the exception of a class that was called with a value.
    #[cold]
    fn refuse_by<'py>(
        &mut self,
        place: &Place<'_>,
        what: impl Display,
        error: PyErr,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        if !error.is_instance_of::<PyException>(py) {
            self.raised.get_or_insert(error);
            return None;
        }
        let reason = error_text(py, &error);
        let expected = if reason.is_empty() { what.to_string() } else { format!("{what} ({reason})") };
        self.refuse(place, expected, value)
    }

    /// The result of a call, or the problem that its exception is.
    fn built<'py>(
        &mut self,
        place: &Place<'_>,
        what: impl Display,
        result: PyResult<Bound<'py, PyAny>>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        match result {
            Ok(built) => Some(built),
            Err(error) => self.refuse_by(place, what, error, value),
        }
    }
}

impl Converter {
    /// Converts a value; `None` if it does not fit, with the problems recorded.
    fn convert<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Json(shape) => shape.convert(run, place, value),
            Self::Integer => scalar::integer(run, place, value),
            Self::Float => scalar::float(run, place, value),
            Self::Moment(moment) => moment.convert(run, place, value),
            Self::Bytes => scalar::bytes(run, place, value),
            Self::Construct(construct) => construct.convert(run, place, value),
            Self::Enumeration(enumeration) => enumeration.convert(run, place, value),
            Self::External(external) => external.convert(run, place, value),
            Self::Nullable(_) if value.is_none() => Some(value.clone()),
            Self::Nullable(inner) => inner.convert(run, place, value),
            _ => {
                // Arguments that a model sends are not this deep; an object of the program may contain itself.
                if run.depth >= MAX_DEPTH {
                    return run.refuse(place, "a value that is not nested as deeply", value);
                }
                run.depth += 1;
                let converted = self.convert_parts(run, place, value);
                run.depth -= 1;
                converted
            }
        }
    }

    fn convert_parts<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::Items(item, class) => class.convert(run, place, item, value),
            Self::Tuple(members) => convert_tuple(run, place, members, value),
            Self::Map(entry, class) => class.convert(run, place, &entry.0, &entry.1, value),
            Self::Record(record) => record.convert(run, place, value),
            Self::Union(members) => convert_union(run, place, members, value),
            Self::Definition(index) => {
                let definitions = run.definitions;
                definitions[*index].convert(run, place, value)
            }
            _ => Some(value.clone()),
        }
    }

    /// Converts the key of an object, which JSON writes as text.
    fn convert_key<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        key: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        match (self, key.cast::<PyString>()) {
            (Self::Integer | Self::Float | Self::Json(JsonShape::Boolean), Ok(text)) => {
                scalar::number_of_key(run, place, self, text)
            }
            _ => self.convert(run, place, key),
        }
    }

    /// True if a JSON value certainly is of this type and of no other member of a union.
    fn is_exact(&self, value: &Bound<'_, PyAny>) -> bool {
        match self {
            Self::Json(shape) => shape.is_exact(value),
            Self::Integer => scalar::is_integer(value),
            Self::Float => scalar::is_float(value),
            Self::Nullable(inner) => value.is_none() || inner.is_exact(value),
            Self::Union(members) => members.iter().any(|member| member.is_exact(value)),
            _ => false,
        }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Json(shape) => shape.traverse(visit),
            Self::Construct(construct) => construct.traverse(visit),
            Self::Enumeration(enumeration) => enumeration.traverse(visit),
            Self::Record(record) => record.traverse(visit),
            Self::External(external) => external.traverse(visit),
            Self::Items(inner, _) | Self::Nullable(inner) => inner.traverse(visit),
            Self::Tuple(members) | Self::Union(members) => members.iter().try_for_each(|member| member.traverse(visit)),
            Self::Map(entry, class) => {
                if let MapClass::Default(factory) = class {
                    visit.call(factory)?;
                }
                entry.0.traverse(visit)?;
                entry.1.traverse(visit)
            }
            Self::Integer | Self::Float | Self::Moment(_) | Self::Bytes | Self::Definition(_) => Ok(()),
        }
    }
}

/// The items of a collection, in their order; `None` for anything else.
fn items_of<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = value.cast::<PyList>() {
        return Some(list.iter().collect());
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return Some(tuple.iter().collect());
    }
    let is_set = value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>();
    if is_set || value.get_type().qualname().is_ok_and(|name| name == "deque") {
        return value.try_iter().ok()?.collect::<PyResult<_>>().ok();
    }
    None
}

impl ItemsClass {
    fn convert<'py>(
        self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        item: &Converter,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        let before = run.problems.len();
        let Some(mut items) = items_of(value) else { return run.refuse(place, "an array", value) };
        let mut is_changed = false;
        for (index, each) in items.iter_mut().enumerate() {
            // All problems are listed, so a wrong item does not end the walk.
            if let Some(new) = item.convert(run, &place.index(index), each) {
                is_changed |= !new.is(&*each);
                *each = new;
            }
        }
        if run.has_failed_since(before) {
            return None;
        }
        let built = match self {
            Self::List if !is_changed && value.is_instance_of::<PyList>() => return Some(value.clone()),
            Self::List => PyList::new(py, items).map(Bound::into_any),
            Self::Tuple => PyTuple::new(py, items).map(Bound::into_any),
            Self::Set => PySet::new(py, items).map(Bound::into_any),
            Self::FrozenSet => PyFrozenSet::new(py, items).map(Bound::into_any),
            Self::Deque => import_module(py, "collections")
                .and_then(|collections| collections.call_method1("deque", (PyList::new(py, items)?,))),
        };
        run.built(place, "an array of values that can be compared", built, value)
    }
}

fn convert_tuple<'py>(
    run: &mut Conversion<'_>,
    place: &Place<'_>,
    members: &[Converter],
    value: &Bound<'py, PyAny>,
) -> Option<Bound<'py, PyAny>> {
    let items = items_of(value).filter(|items| items.len() == members.len());
    let Some(items) = items else {
        return run.refuse(place, format!("an array of {} items", members.len()), value);
    };
    let before = run.problems.len();
    let converted = members.iter().zip(&items).enumerate();
    let converted: Vec<_> =
        converted.filter_map(|(index, (member, item))| member.convert(run, &place.index(index), item)).collect();
    if run.has_failed_since(before) {
        return None;
    }
    PyTuple::new(value.py(), converted).ok().map(Bound::into_any)
}

impl MapClass {
    fn convert<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        keys: &Converter,
        values: &Converter,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        let Ok(dict) = value.cast::<PyDict>() else { return run.refuse(place, "an object", value) };
        let output = PyDict::new(py);
        let mut is_changed = false;
        let before = run.problems.len();
        for (key, entry) in entries_of(dict) {
            let name = key.str().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
            let place = place.key(&name);
            let (new_key, new_entry) = (keys.convert_key(run, &place, &key), values.convert(run, &place, &entry));
            let (Some(new_key), Some(new_entry)) = (new_key, new_entry) else { continue };
            is_changed |= !new_key.is(&key) || !new_entry.is(&entry);
            if let Err(error) = output.set_item(new_key, new_entry) {
                run.refuse_by(&place, "a key that can be compared", error, &key);
            }
        }
        if run.has_failed_since(before) {
            return None;
        }
        if output.len() < dict.len() {
            return run.refuse(place, "an object whose keys are different values", value);
        }
        let built = match self {
            Self::Dict if !is_changed => return Some(value.clone()),
            Self::Dict => return Some(output.into_any()),
            Self::Of(class) => {
                import_module(py, "collections").and_then(|collections| collections.call_method1(*class, (output,)))
            }
            Self::Default(factory) => import_module(py, "collections")
                .and_then(|collections| collections.call_method1("defaultdict", (factory.bind(py), output))),
        };
        run.built(place, "an object", built, value)
    }
}

/// Converts a value of a union: to a member that it is exactly, or else to the first that it can be converted to. Of several
/// classes with fields it is the one that uses the most of them.
fn convert_union<'py>(
    run: &mut Conversion<'_>,
    place: &Place<'_>,
    members: &[Converter],
    value: &Bound<'py, PyAny>,
) -> Option<Bound<'py, PyAny>> {
    if let Some(exact) = members.iter().find(|member| member.is_exact(value)) {
        return exact.convert(run, place, value);
    }
    let before = run.problems.len();
    let mut best: Option<(usize, Bound<'py, PyAny>)> = None;
    for member in members {
        let converted = member.convert(run, place, value);
        if run.raised.is_some() {
            return None;
        }
        let Some(converted) = converted else { continue };
        let used = external::fields_set(&converted);
        if best.as_ref().is_none_or(|(most, _)| used > *most) {
            best = Some((used, converted));
        }
    }
    if let Some((_, best)) = best {
        run.problems.truncate(before);
        return Some(best);
    }
    // The problems of all members together would contradict each other.
    run.problems.truncate(before);
    run.refuse(place, "a value of one of the declared types", value)
}
