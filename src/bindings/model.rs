//! Models of a validation library, such as AgentScope's pydantic classes: made as copies of a prototype, because validating values
//! that are known to be right takes longer than a call.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySet, PyString, PyType};

use super::call::python::interpreter::{GilCell, instance};
use super::response::local_second;
use crate::bindings::once::intern;
use crate::bytes::random_bytes;

/// A model whose instances differ from a prototype in `N` fields only.
pub(crate) struct Prototype<const N: usize> {
    class: Py<PyType>,
    /// The values of all fields, in their order.
    values: Py<PyDict>,
    /// The names of the fields that differ.
    names: [Py<PyString>; N],
    given_fields: Py<PySet>,
}

impl<const N: usize> Prototype<N> {
    /// A prototype whose instances are given the values of `fields`.
    pub(crate) fn new(model: &Bound<'_, PyAny>, fields: [&str; N]) -> PyResult<Self> {
        let py = model.py();
        Ok(Self {
            class: model.get_type().unbind(),
            values: model.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?.copy()?.unbind(),
            names: fields.map(|name| PyString::intern(py, name).unbind()),
            given_fields: model.getattr(intern!(py, "__pydantic_fields_set__"))?.cast_into::<PySet>()?.unbind(),
        })
    }

    /// An instance with these values, which are not validated.
    pub(crate) fn with<'py>(&self, py: Python<'py>, values: [Bound<'py, PyAny>; N]) -> PyResult<Bound<'py, PyAny>> {
        let fields = self.values.bind(py).copy()?;
        for (name, value) in self.names.iter().zip(values) {
            fields.set_item(name, value)?;
        }
        let given_fields = py.get_type::<PySet>().call1((&self.given_fields,))?;
        let none = py.None().into_bound(py);
        let attributes = [
            (intern!(py, "__dict__"), fields.as_any()),
            (intern!(py, "__pydantic_fields_set__"), &given_fields),
            (intern!(py, "__pydantic_extra__"), &none),
            (intern!(py, "__pydantic_private__"), &none),
        ];
        instance(self.class.bind(py), attributes.into_iter())
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.class)?;
        visit.call(&self.values)?;
        visit.call(&self.given_fields)
    }
}

/// A function of another library that gives ids or times. The library lets programs replace what it calls; as long as they did not, the
/// same values are made here.
pub(crate) struct ValueFactory {
    function: Py<PyAny>,
    /// The module of the function, and the name in it of the default that it calls.
    module: Py<PyDict>,
    default_name: Py<PyString>,
    default: Option<Py<PyAny>>,
}

impl ValueFactory {
    /// A default counts only if the module itself defines it.
    pub(crate) fn new(function: &Bound<'_, PyAny>, default_name: &Bound<'_, PyString>) -> PyResult<Self> {
        let py = function.py();
        let module_name = function.getattr(intern!(py, "__module__"))?.cast_into::<PyString>()?;
        let module = py.import(&module_name)?.dict();
        let is_its_own = |default: &Bound<'_, PyAny>| match default.getattr_opt(intern!(py, "__module__")) {
            Ok(Some(found)) => found.eq(&module_name).unwrap_or(false),
            _ => false,
        };
        Ok(Self {
            default: module.get_item(default_name)?.filter(is_its_own).map(Bound::unbind),
            function: function.clone().unbind(),
            module: module.unbind(),
            default_name: default_name.clone().unbind(),
        })
    }

    /// The value: made by `make` while the default is in force, otherwise by the library.
    pub(crate) fn value<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce(Python<'py>) -> PyResult<Bound<'py, PyString>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(default) = &self.default
            && self.module.bind(py).get_item(self.default_name.bind(py))?.is_some_and(|current| current.is(default))
        {
            return make(py).map(Bound::into_any);
        }
        self.function.bind(py).call0()
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.module)?;
        visit.call(&self.default)
    }
}

/// The number of bytes of an id.
const ID: usize = 16;

/// A source of ids: two sequences that begin at random numbers of the system. They need not be secret.
pub(crate) struct IdSource(GilCell<Option<[u64; 2]>>);

impl IdSource {
    pub(crate) fn new() -> Self {
        Self(GilCell::new(None))
    }

    /// Begins anew, because a forked process would give the same ids once more.
    pub(crate) fn renew(&self, py: Python<'_>) {
        self.0.with(py, |state| *state = None);
    }

    /// A random UUID of version 4, as 32 hexadecimal digits.
    pub(crate) fn uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let halves = self.0.with(py, |state| -> crate::Result<[u64; 2]> {
            if state.is_none() {
                *state = Some([u64::from_ne_bytes(random_bytes()?), u64::from_ne_bytes(random_bytes()?)]);
            }
            Ok(state.as_mut().map(|state| state.each_mut().map(next_random)).unwrap_or_default())
        })?;
        let mut bytes = [0; ID];
        for (part, half) in bytes.chunks_exact_mut(8).zip(halves) {
            part.copy_from_slice(&half.to_ne_bytes());
        }
        bytes[6] = (bytes[6] & 0x0F) | 0x40;
        bytes[8] = (bytes[8] & 0x3F) | 0x80;
        let mut digits = [0; 2 * ID];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 0x0F)];
        }
        Ok(PyString::new(py, std::str::from_utf8(&digits).unwrap_or_default()))
    }
}

/// The next number of a sequence, by the algorithm SplitMix64.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The local time in ISO 8601 without an offset, as `datetime.isoformat` writes it.
pub(crate) fn local_time(py: Python<'_>) -> PyResult<Bound<'_, PyString>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let second = local_second(py, now.as_secs())?;
    // Not by `format!`, which takes longer than all else here.
    let mut text = *b"0000-00-00T00:00:00.000000";
    let (Some((date, time)), mut rest) = (second.split_once(' '), now.subsec_micros()) else {
        return Ok(PyString::new(py, &second));
    };
    if (date.len(), time.len()) != (10, 8) || rest == 0 {
        let fraction = if rest == 0 { String::new() } else { format!(".{rest:06}") };
        return Ok(PyString::new(py, &format!("{date}T{time}{fraction}")));
    }
    text[..10].copy_from_slice(date.as_bytes());
    text[11..19].copy_from_slice(time.as_bytes());
    for digit in text[20..].iter_mut().rev() {
        *digit = DIGITS[(rest % 10) as usize];
        rest /= 10;
    }
    Ok(PyString::new(py, std::str::from_utf8(&text).unwrap_or_default()))
}
