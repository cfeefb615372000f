//! Values without parts: numbers, dates and times, enumerations, classes that are called with a text.

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateTime, PyDelta, PyDict, PyFloat, PyInt, PyString, PyTime, PyTuple,
    PyType, PyTzInfo,
};
use speedate::{Date, DateTime, Duration, Time};

use super::{Conversion, Converter, Place};
use crate::bindings::once::intern;
use crate::bindings::schema::value_to_json;

/// The JSON values that an annotation names and that stay as they are.
pub(crate) enum JsonShape {
    Any,
    Null,
    Boolean,
    Text,
    /// One of these values, each with the object that it stands for.
    Literal(Py<PyTuple>),
}

impl JsonShape {
    pub(super) fn convert<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let phrase = match self {
            Self::Any => return Some(value.clone()),
            Self::Null if value.is_none() => return Some(value.clone()),
            Self::Boolean if value.is_exact_instance_of::<PyBool>() => return Some(value.clone()),
            Self::Text if value.is_instance_of::<PyString>() => return Some(value.clone()),
            Self::Literal(values) => match literal(values.bind(value.py()), value) {
                Some(found) => return Some(found),
                None => "one of the listed values",
            },
            Self::Null => "null",
            Self::Boolean => "true or false",
            Self::Text => "a string",
        };
        run.refuse(place, phrase, value)
    }

    /// True if the value is of this shape and of no other.
    pub(super) fn is_exact(&self, value: &Bound<'_, PyAny>) -> bool {
        match self {
            Self::Any => false,
            Self::Null => value.is_none(),
            Self::Boolean => value.is_exact_instance_of::<PyBool>(),
            Self::Text => value.is_instance_of::<PyString>(),
            Self::Literal(values) => literal(values.bind(value.py()), value).is_some(),
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Self::Literal(values) => visit.call(values),
            _ => Ok(()),
        }
    }
}

/// The listed value that a JSON value stands for: an equal one of the same class, or the member of an enumeration whose value it
/// is. `1` and `True` are different values.
fn literal<'py>(values: &Bound<'py, PyTuple>, value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let is_same =
        |listed: &Bound<'py, PyAny>| listed.get_type().is(value.get_type()) && listed.eq(value).unwrap_or(false);
    if let Some(same) = values.iter().find(is_same) {
        return Some(same);
    }
    let sent = value_to_json(value)?;
    values.iter().find(|listed| !is_json_scalar(listed) && value_to_json(listed).as_ref() == Some(&sent))
}

/// True for a value without parts that JSON has as it is.
pub(crate) fn is_json_scalar(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyFloat>()
}

/// True for an integer, which a boolean is not.
pub(super) fn is_integer(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>()
}

/// True for a number with a fraction.
pub(super) fn is_float(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyFloat>()
}

pub(super) fn integer<'py>(
    run: &mut Conversion<'_>,
    place: &Place<'_>,
    value: &Bound<'py, PyAny>,
) -> Option<Bound<'py, PyAny>> {
    if is_integer(value) {
        return Some(value.clone());
    }
    if let Ok(float) = value.cast::<PyFloat>()
        && float.value().fract() == 0.0
    {
        let built = value.py().get_type::<PyInt>().call1((value,));
        return run.built(place, "an integer", built, value);
    }
    run.refuse(place, "an integer", value)
}

#[inline]
pub(super) fn float<'py>(
    run: &mut Conversion<'_>,
    place: &Place<'_>,
    value: &Bound<'py, PyAny>,
) -> Option<Bound<'py, PyAny>> {
    if is_float(value) {
        return Some(value.clone());
    }
    if is_integer(value)
        && let Ok(float) = value.extract::<f64>()
    {
        return Some(PyFloat::new(value.py(), float).into_any());
    }
    run.refuse(place, "a number", value)
}

/// The number or boolean that the key of an object writes as text.
pub(super) fn number_of_key<'py>(
    run: &mut Conversion<'_>,
    place: &Place<'_>,
    converter: &Converter,
    key: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    let py = key.py();
    let (phrase, parsed) = match converter {
        Converter::Integer => ("an integer as key", py.get_type::<PyInt>().call1((key,))),
        Converter::Float => ("a number as key", py.get_type::<PyFloat>().call1((key,))),
        _ => match key.to_string_lossy().as_ref() {
            "true" => return Some(PyBool::new(py, true).to_owned().into_any()),
            "false" => return Some(PyBool::new(py, false).to_owned().into_any()),
            _ => return run.refuse(place, "`true` or `false` as key", key),
        },
    };
    match parsed {
        Ok(number) => Some(number),
        Err(_) => run.refuse(place, phrase, key),
    }
}

pub(super) fn bytes<'py>(
    run: &mut Conversion<'_>,
    place: &Place<'_>,
    value: &Bound<'py, PyAny>,
) -> Option<Bound<'py, PyAny>> {
    if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
        return Some(value.clone());
    }
    match value.cast::<PyString>().ok().and_then(|text| text.to_str().ok()) {
        Some(text) => Some(PyBytes::new(value.py(), text.as_bytes()).into_any()),
        None => run.refuse(place, "bytes as UTF-8 text", value),
    }
}

/// The classes of `datetime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Date,
    Time,
    DateTime,
    Duration,
}

impl Moment {
    pub(super) fn convert<'py>(
        self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let text = value.cast::<PyString>().ok().and_then(|text| text.to_str().ok());
        let built = match text {
            Some(text) => self.parse(value.py(), text),
            None => self.of_object(value),
        };
        built.or_else(|| run.refuse(place, self.phrase(), value))
    }

    fn phrase(self) -> &'static str {
        match self {
            Self::Date => "a date (YYYY-MM-DD)",
            Self::Time => "a time (hh:mm:ssZ)",
            Self::DateTime => "a date and time (YYYY-MM-DDThh:mm:ssZ)",
            Self::Duration => "a duration (P1DT2H30M)",
        }
    }

    /// An object of the class, or of one that can stand for it without loss.
    fn of_object<'py>(self, value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        let is_moment = value.is_instance_of::<PyDateTime>();
        match self {
            Self::Date if is_moment => {
                let date = value.call_method0(intern!(py, "date")).ok()?;
                let time = value.call_method0(intern!(py, "time")).ok()?;
                time.eq(PyTime::new(py, 0, 0, 0, 0, None).ok()?).ok()?.then_some(date)
            }
            Self::DateTime if !is_moment && value.is_instance_of::<PyDate>() => {
                let part = |name: &str| value.getattr(name).ok()?.extract().ok();
                let (month, day): (u8, u8) = (part("month")?, part("day")?);
                let year: i32 = value.getattr("year").ok()?.extract().ok()?;
                PyDateTime::new(py, year, month, day, 0, 0, 0, 0, None).ok().map(Bound::into_any)
            }
            Self::Date => value.is_instance_of::<PyDate>().then(|| value.clone()),
            Self::Time => value.is_instance_of::<PyTime>().then(|| value.clone()),
            Self::DateTime => is_moment.then(|| value.clone()),
            Self::Duration => value.is_instance_of::<PyDelta>().then(|| value.clone()),
        }
    }

    /// Parses ISO 8601 and RFC 3339. A number is refused: `20260131` could be a date or a count of seconds.
    fn parse<'py>(self, py: Python<'py>, text: &str) -> Option<Bound<'py, PyAny>> {
        let bytes = text.as_bytes();
        match self {
            Self::Date => {
                let date = Date::parse_bytes_rfc3339(bytes).ok().or_else(|| date_at_midnight(bytes))?;
                PyDate::new(py, i32::from(date.year), date.month, date.day).ok().map(Bound::into_any)
            }
            Self::Time => {
                let time = Time::parse_bytes(bytes).ok()?;
                let zone = zone(py, time.tz_offset).ok()?;
                PyTime::new(py, time.hour, time.minute, time.second, time.microsecond, zone.as_ref())
                    .ok()
                    .map(Bound::into_any)
            }
            Self::DateTime => {
                let DateTime { date, time } =
                    DateTime::parse_bytes_rfc3339(bytes).ok().or_else(|| day_at_midnight(bytes))?;
                let zone = zone(py, time.tz_offset).ok()?;
                let (year, second, microsecond) = (i32::from(date.year), time.second, time.microsecond);
                PyDateTime::new(
                    py,
                    year,
                    date.month,
                    date.day,
                    time.hour,
                    time.minute,
                    second,
                    microsecond,
                    zone.as_ref(),
                )
                .ok()
                .map(Bound::into_any)
            }
            Self::Duration => {
                let duration = Duration::parse_bytes(bytes).ok()?;
                let sign = if duration.positive { 1 } else { -1 };
                let part = |part: u32| i32::try_from(part).ok().map(|part| sign * part);
                let (days, seconds) = (part(duration.day)?, part(duration.second)?);
                PyDelta::new(py, days, seconds, part(duration.microsecond)?, true).ok().map(Bound::into_any)
            }
        }
    }
}

/// The date of a date and time, if the time is midnight.
fn date_at_midnight(bytes: &[u8]) -> Option<Date> {
    let DateTime { date, time } = DateTime::parse_bytes_rfc3339(bytes).ok()?;
    (time.total_seconds() == 0 && time.microsecond == 0).then_some(date)
}

/// Midnight of a date without a time.
fn day_at_midnight(bytes: &[u8]) -> Option<DateTime> {
    let date = Date::parse_bytes_rfc3339(bytes).ok()?;
    let time = Time { hour: 0, minute: 0, second: 0, microsecond: 0, tz_offset: None };
    Some(DateTime { date, time })
}

/// The time zone of an offset in seconds.
fn zone(py: Python<'_>, offset: Option<i32>) -> PyResult<Option<Bound<'_, PyTzInfo>>> {
    Ok(match offset {
        None => None,
        Some(0) => Some(PyTzInfo::utc(py)?.to_owned()),
        Some(seconds) => Some(PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, seconds, 0, true)?)?),
    })
}

/// A class that is called with the text of a value: `UUID`, `Path`, `Decimal`, `IPv4Address`.
pub(crate) struct Construct {
    /// The class that objects of the program may have.
    pub(crate) class: Py<PyType>,
    /// The function that is called with the text.
    pub(crate) function: Py<PyAny>,
    pub(crate) phrase: String,
    /// True if a number is called for as its text, which keeps all of its digits.
    pub(crate) takes_numbers: bool,
}

impl Construct {
    pub(super) fn convert<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        let is_number = self.takes_numbers && (is_integer(value) || is_float(value));
        let built = if is_number {
            value.str().and_then(|text| self.function.bind(py).call1((text,)))
        } else if value.is_instance_of::<PyString>() {
            self.function.bind(py).call1((value,))
        } else if value.is_instance(self.class.bind(py)).unwrap_or(false) {
            return Some(value.clone());
        } else {
            return run.refuse(place, self.phrase.clone(), value);
        };
        match built {
            Ok(built) => Some(built),
            // The messages of these classes are made for developers.
            Err(error) if error.is_instance_of::<pyo3::exceptions::PyException>(py) => {
                run.refuse(place, self.phrase.clone(), value)
            }
            Err(error) => run.refuse_by(place, &self.phrase, error, value),
        }
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.class)?;
        visit.call(&self.function)
    }
}

/// An enumeration.
pub(crate) struct Enumeration {
    class: Py<PyType>,
    /// The members by those of their values that can be keys.
    members: Py<PyDict>,
    name: String,
}

impl Enumeration {
    pub(crate) fn new(class: &Bound<'_, PyType>) -> PyResult<Self> {
        let py = class.py();
        let members = PyDict::new(py);
        for member in class.getattr(intern!(py, "__members__"))?.call_method0(intern!(py, "values"))?.try_iter()? {
            let member = member?;
            // A value that cannot be a key is found by comparison.
            let _ = members.set_item(member.getattr(intern!(py, "value"))?, &member);
        }
        let name = class.name()?.to_string();
        Ok(Self { class: class.clone().unbind(), members: members.unbind(), name })
    }

    pub(super) fn convert<'py>(
        &self,
        run: &mut Conversion<'_>,
        place: &Place<'_>,
        value: &Bound<'py, PyAny>,
    ) -> Option<Bound<'py, PyAny>> {
        let (py, class) = (value.py(), self.class.bind(value.py()));
        if let Ok(Some(member)) = self.members.bind(py).get_item(value)
            && !(value.is_instance_of::<PyBool>() ^ has_boolean_value(&member))
        {
            return Some(member);
        }
        if value.is_instance(class).unwrap_or(false) {
            return Some(value.clone());
        }
        self.by_json(value).or_else(|| class.call1((value,)).ok()).or_else(|| {
            let phrase = format!("a value of {}", self.name);
            run.refuse(place, phrase, value)
        })
    }

    /// The member whose value has this JSON form, for values such as tuples.
    fn by_json<'py>(&self, value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
        let py = value.py();
        let sent = value_to_json(value)?;
        let members = self.class.bind(py).getattr(intern!(py, "__members__")).ok()?;
        let mut members = members.call_method0(intern!(py, "values")).ok()?.try_iter().ok()?.flatten();
        members.find(|member| value_to_json(member).as_ref() == Some(&sent))
    }

    pub(super) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.class)?;
        visit.call(&self.members)
    }
}

fn has_boolean_value(member: &Bound<'_, PyAny>) -> bool {
    member.getattr(intern!(member.py(), "value")).is_ok_and(|value| value.is_instance_of::<PyBool>())
}
