//! The canonical JSON form of values that a tool gets: what policy rules, approvers and the audit log see of defaults and of typed
//! arguments.
//!
//! Equal values have one form, however the model spelled them: an enumeration is its value, a `Decimal` a number, a moment its text
//! in UTC, a path its text, a set a sorted list, a record an object of its fields.

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyComplex, PyComplexMethods, PyDateTime, PyDict, PyFloat, PyFrozenSet, PyList, PySet,
    PyString, PyTime, PyTuple, PyType, PyTzInfo,
};
use serde_json::{Map, Number, Value};

use super::imported::{DECIMAL, FRACTION};
use super::json::{MAX_DEPTH, entries_of, from_python};
use super::schema::value_to_json;
use super::typed::is_json_scalar;
use crate::bindings::once::intern;
use crate::policy::exact_number;

/// The maximum number of values of one default that are converted; further ones are marked.
const MAX_DEFAULT_VALUES: usize = 10_000;

/// The same for arguments, of which more have no place in the text of a call.
const MAX_ARGUMENT_VALUES: usize = 1 << 20;

/// The canonical form of a default.
///
/// It never fails, because a rule that does not see an argument cannot deny it. A value without a JSON form becomes `shown`, the
/// default in the schema, or a marker with the name of its class.
pub(crate) fn default_value(default: &Bound<'_, PyAny>, shown: Option<&Value>) -> Value {
    Walk { left: MAX_DEFAULT_VALUES, is_canonical: true }.value(default, shown, 0)
}

/// The canonical form of a typed argument that was built from `sent`, which stands in for parts without a JSON form.
pub(crate) fn built_value(built: &Bound<'_, PyAny>, sent: Option<&Value>) -> Value {
    Walk { left: MAX_ARGUMENT_VALUES, is_canonical: true }.value(built, sent, 0)
}

/// The JSON form that a model would send for an object that a program passed as an argument. A number has all of its digits as
/// text.
pub(crate) fn argument_value(argument: &Bound<'_, PyAny>) -> Value {
    Walk { left: MAX_ARGUMENT_VALUES, is_canonical: false }.value(argument, None, 0)
}

/// The marker of a value that cannot be converted. It names only the class: the value's text may contain a secret, or differ from
/// run to run.
fn marker(value: &Bound<'_, PyAny>) -> Value {
    let class = value.get_type();
    let module = class.module().map_or_else(|_| String::new(), |module| format!("{module}."));
    let name = class.qualname().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    Value::String(format!("<{} object>", [module.trim_start_matches("builtins."), &name].concat()))
}

/// A walk through a value.
struct Walk {
    /// The number of values that may still be converted.
    left: usize,
    /// True for the form in which equal values are equal.
    is_canonical: bool,
}

impl Walk {
    /// The JSON form of a value. A part without one is as it was sent, or marked.
    fn value(&mut self, value: &Bound<'_, PyAny>, sent: Option<&Value>, depth: usize) -> Value {
        self.form(value, sent, depth).unwrap_or_else(|| sent.cloned().unwrap_or_else(|| marker(value)))
    }

    /// The JSON form of a value; `None` if the value itself has none.
    fn form(&mut self, value: &Bound<'_, PyAny>, sent: Option<&Value>, depth: usize) -> Option<Value> {
        if depth > MAX_DEPTH || self.left == 0 {
            return None;
        }
        self.left -= 1;
        if let Ok(float) = value.cast::<PyFloat>() {
            return Some(self.float(float.value()));
        }
        if is_json_scalar(value)
            && let Ok(json) = from_python(value)
        {
            return Some(json.into());
        }
        let (py, depth) = (value.py(), depth + 1);
        if let Ok(text) = value.cast_exact::<PyString>() {
            return Some(Value::String(text.to_string_lossy().into_owned()));
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Some(text_of(bytes.as_bytes()));
        }
        if let Ok(bytes) = value.cast::<PyByteArray>() {
            return Some(text_of(&bytes.to_vec()));
        }
        if is_enumeration(value) {
            return Some(self.value(&value.getattr(intern!(py, "value")).ok()?, sent, depth));
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            return Some(Value::Object(self.entries(dict, sent, depth)));
        }
        if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
            let items: Vec<_> = value.try_iter().ok()?.flatten().collect();
            let mut items: Vec<Value> = items.iter().map(|item| self.value(item, None, depth)).collect();
            items.sort_by_cached_key(ToString::to_string);
            return Some(Value::Array(items));
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() || is_deque(value) {
            let items: Vec<_> = value.try_iter().ok()?.flatten().collect();
            let items =
                items.iter().enumerate().map(|(at, item)| self.value(item, sent.and_then(|it| it.get(at)), depth));
            return Some(Value::Array(items.collect()));
        }
        if let Some(record) = self.record(value, sent, depth) {
            return Some(record);
        }
        if self.is_canonical
            && let Some(leaf) = self.leaf(value, sent, depth)
        {
            return Some(leaf);
        }
        if let Some(json) = value_to_json(value) {
            return Some(json.into());
        }
        if value.get_type().hasattr(intern!(py, "__fspath__")).unwrap_or(false) {
            return str_of(value);
        }
        from_python(value).ok().map(Value::from)
    }

    fn float(&self, value: f64) -> Value {
        // Zero has two spellings, which are equal.
        let value = if self.is_canonical && value == 0.0 { 0.0 } else { value };
        Number::from_f64(value).map_or_else(|| Value::String(value.to_string().to_lowercase()), Value::Number)
    }

    /// A value without parts whose text is not the same for equal values, or that only its library can write.
    fn leaf(&mut self, value: &Bound<'_, PyAny>, sent: Option<&Value>, depth: usize) -> Option<Value> {
        let (py, class) = (value.py(), value.get_type());
        let is = |imported: Option<&Bound<'_, PyAny>>| {
            imported.is_some_and(|class| value.is_instance(class).unwrap_or(false))
        };
        if is(DECIMAL.if_imported(py)) {
            let text = value.str().ok()?;
            let text = text.to_string_lossy();
            return Some(exact_number(&text).unwrap_or_else(|| Value::String(text.to_lowercase())));
        }
        if is(FRACTION.if_imported(py)) {
            return fraction(value);
        }
        if value.is_instance_of::<PyDateTime>() || value.is_instance_of::<PyTime>() {
            return in_utc(value);
        }
        if let Ok(complex) = value.cast::<PyComplex>() {
            let number = PyComplex::from_doubles(py, complex.real() + 0.0, complex.imag() + 0.0);
            return value_to_json(&number).map(Value::from);
        }
        if class.hasattr(intern!(py, "__fspath__")).unwrap_or(false) {
            let text = value.str().ok()?.to_string_lossy().into_owned();
            // Two slashes in front mean what one does, and `pathlib` keeps them.
            let is_doubled = text.starts_with("//") && !text.starts_with("///");
            return Some(Value::String(if is_doubled { text[1..].to_owned() } else { text }));
        }
        if is_of_pydantic(&class) {
            return match value.call_method0(intern!(py, "get_secret_value")) {
                Ok(secret) => Some(self.value(&secret, sent, depth)),
                Err(_) => str_of(value),
            };
        }
        None
    }

    fn entries(&mut self, dict: &Bound<'_, PyDict>, sent: Option<&Value>, depth: usize) -> Map<String, Value> {
        let mut entries = Map::new();
        for (key, value) in entries_of(dict) {
            let key = match self.value(&key, None, depth) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let value = self.value(&value, sent.and_then(|sent| sent.get(&key)), depth);
            entries.insert(key, value);
        }
        entries
    }

    /// A dataclass, a pydantic model, an attrs class or a msgspec struct in the form from which its class is built; `None` for any
    /// other object.
    fn record(&mut self, value: &Bound<'_, PyAny>, sent: Option<&Value>, depth: usize) -> Option<Value> {
        let (py, class) = (value.py(), value.get_type());
        let of_class = |name| class.getattr_opt(name).ok().flatten();
        if of_class(intern!(py, "__pydantic_root_model__")).is_some_and(|is_root| is_root.is_truthy().unwrap_or(false))
        {
            return Some(self.value(&value.getattr(intern!(py, "root")).ok()?, sent, depth));
        }
        let fields = if let Some(fields) = of_class(intern!(py, "__pydantic_fields__")) {
            pydantic_fields(fields.cast::<PyDict>().ok()?)
        } else if let Some(fields) = of_class(intern!(py, "__dataclass_fields__")) {
            dataclass_fields(fields.cast::<PyDict>().ok()?)
        } else if let Some(names) = of_class(intern!(py, "__struct_fields__")) {
            let shown = of_class(intern!(py, "__struct_encode_fields__"))?.extract::<Vec<String>>().ok()?;
            let names = shown.into_iter().zip(names.extract::<Vec<String>>().ok()?);
            names.map(|(shown, name)| Field { shown, name, is_kept: true }).collect()
        } else {
            attrs_fields(&of_class(intern!(py, "__attrs_attrs__"))?)?
        };
        let mut entries = Map::new();
        for Field { shown, name, is_kept } in fields {
            let sent = sent.and_then(|sent| sent.get(&shown));
            let entry = match (value.getattr(name.as_str()), sent) {
                (Ok(attribute), sent) if is_kept || sent.is_none() => self.value(&attribute, sent, depth),
                (_, Some(sent)) => sent.clone(),
                _ => continue,
            };
            entries.insert(shown, entry);
        }
        if let Ok(Some(extra)) = value.getattr_opt(intern!(py, "__pydantic_extra__"))
            && let Ok(extra) = extra.cast::<PyDict>()
        {
            entries.extend(self.entries(extra, sent, depth));
        }
        match of_class(intern!(py, "__struct_config__")) {
            Some(config) => self.struct_form(&config, entries, depth),
            None => Some(Value::Object(entries)),
        }
    }

    /// A msgspec struct with its tag, as an array if the class is `array_like`.
    fn struct_form(
        &mut self,
        config: &Bound<'_, PyAny>,
        mut entries: Map<String, Value>,
        depth: usize,
    ) -> Option<Value> {
        let py = config.py();
        let tag = config.getattr(intern!(py, "tag")).ok().filter(|tag| !tag.is_none());
        let tag = tag.map(|tag| self.value(&tag, None, depth));
        if config.getattr(intern!(py, "array_like")).ok()?.is_truthy().ok()? {
            return Some(Value::Array(tag.into_iter().chain(entries.into_iter().map(|(_, value)| value)).collect()));
        }
        if let Some(tag) = tag {
            entries.insert(config.getattr(intern!(py, "tag_field")).ok()?.extract().ok()?, tag);
        }
        Some(Value::Object(entries))
    }
}

fn str_of(value: &Bound<'_, PyAny>) -> Option<Value> {
    Some(Value::String(value.str().ok()?.to_string_lossy().into_owned()))
}

/// A fraction as a number if it has an exact decimal form, and otherwise as text.
fn fraction(value: &Bound<'_, PyAny>) -> Option<Value> {
    let py = value.py();
    let (above, below) =
        (value.getattr(intern!(py, "numerator")).ok()?, value.getattr(intern!(py, "denominator")).ok()?);
    // The denominator divides a power of ten, or no power of ten at all.
    let places: usize = below.call_method0(intern!(py, "bit_length")).ok()?.extract().ok()?;
    let power = 10_u8.into_pyobject(py).ok()?.pow(places, py.None()).ok()?;
    if power.rem(&below).ok()?.is_truthy().ok()? {
        return str_of(value);
    }
    let digits = above.mul(power.floor_div(&below).ok()?).and_then(|above| above.str());
    let Ok(digits) = digits else { return str_of(value) }; // more digits than Python writes
    exact_number(&format!("{}e-{places}", digits.to_string_lossy()))
}

/// A moment with an offset as text in UTC, so that one moment has one text; `None` for one without an offset.
fn in_utc(value: &Bound<'_, PyAny>) -> Option<Value> {
    let py = value.py();
    let offset = value.call_method0(intern!(py, "utcoffset")).ok().filter(|offset| !offset.is_none())?;
    if value.is_instance_of::<PyDateTime>() {
        let moment = value.call_method1(intern!(py, "astimezone"), (PyTzInfo::utc(py).ok()?,)).ok()?;
        return value_to_json(&moment).map(Value::from);
    }
    // A time has no `astimezone`, so it is moved on a day that has both neighbours.
    let day = PyDateTime::new(py, 2000, 1, 2, 0, 0, 0, 0, None).ok()?;
    let moment = day.call_method1("combine", (day.call_method0("date").ok()?, value, py.None())).ok()?;
    let time = moment.sub(offset).ok()?.call_method0("time").ok()?;
    let text: String = time.call_method0(intern!(py, "isoformat")).ok()?.extract().ok()?;
    Some(Value::String(text + "Z"))
}

/// True for a class of pydantic itself that is not a model: a URL, a secret, a colour.
fn is_of_pydantic(class: &Bound<'_, PyType>) -> bool {
    let module = class.module().map_or_else(|_| String::new(), |module| module.to_string_lossy().into_owned());
    let package = module.split('.').next().unwrap_or_default();
    matches!(package, "pydantic" | "pydantic_core" | "pydantic_extra_types")
}

/// Bytes as the text that a model sends for them, or else as a Python literal.
fn text_of(bytes: &[u8]) -> Value {
    Value::String(match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("b\"{}\"", bytes.escape_ascii()),
    })
}

fn is_enumeration(value: &Bound<'_, PyAny>) -> bool {
    let (py, class) = (value.py(), value.get_type());
    let has = |name| class.hasattr(name).unwrap_or(false);
    has(intern!(py, "__members__")) && has(intern!(py, "_member_map_"))
}

fn is_deque(value: &Bound<'_, PyAny>) -> bool {
    value.get_type().qualname().is_ok_and(|name| name == "deque")
}

/// A field of a record.
struct Field {
    /// Its name in JSON.
    shown: String,
    /// The name of the attribute.
    name: String,
    /// False if the object does not have the value that was sent: the constructor does not keep it, or it is a part of the value.
    is_kept: bool,
}

/// The fields of a pydantic class. Their names in JSON are the ones by which they are validated, as the schema has them.
fn pydantic_fields(fields: &Bound<'_, PyDict>) -> Vec<Field> {
    /// The first name of an alias: a text, a path or a list of choices.
    fn first_name(alias: &Bound<'_, PyAny>) -> Option<String> {
        let inner = ["choices", "path"].into_iter().find_map(|inner| alias.getattr_opt(inner).ok()?);
        inner.map_or_else(|| alias.extract().ok(), |inner| first_name(&inner.get_item(0).ok()?))
    }
    /// True for an alias that leads to a part of a value.
    fn is_path(alias: &Bound<'_, PyAny>) -> bool {
        if let Ok(Some(choices)) = alias.getattr_opt("choices") {
            return choices.get_item(0).is_ok_and(|first| is_path(&first));
        }
        alias.getattr_opt("path").is_ok_and(|path| path.is_some_and(|path| path.len().is_ok_and(|steps| steps > 1)))
    }
    let names = |(name, field): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract().ok()?;
        let is_argument = !field.getattr("init").is_ok_and(|init| init.is(PyBool::new(init.py(), false)));
        let alias = field.getattr("validation_alias").ok().and_then(|alias| first_name(&alias));
        let is_path = field.getattr("validation_alias").is_ok_and(|alias| is_path(&alias));
        let is_kept = !is_path && !field.getattr("init_var").is_ok_and(|it| it.is_truthy().unwrap_or(false));
        is_argument.then(|| Field { shown: alias.unwrap_or_else(|| name.clone()), name, is_kept })
    };
    entries_of(fields).into_iter().filter_map(names).collect()
}

/// The fields of a dataclass that its constructor takes.
fn dataclass_fields(fields: &Bound<'_, PyDict>) -> Vec<Field> {
    let names = |(name, field): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract().ok()?;
        let kind: String = field.getattr("_field_type").ok()?.getattr("name").ok()?.extract().ok()?;
        let is_argument = kind != "_FIELD_CLASSVAR" && field.getattr("init").ok()?.is_truthy().ok()?;
        is_argument.then(|| Field { shown: name.clone(), name, is_kept: kind != "_FIELD_INITVAR" })
    };
    entries_of(fields).into_iter().filter_map(names).collect()
}

/// The fields of an attrs class that its constructor takes.
fn attrs_fields(attributes: &Bound<'_, PyAny>) -> Option<Vec<Field>> {
    let names = |attribute: PyResult<Bound<'_, PyAny>>| {
        let attribute = attribute.ok()?;
        let is_argument = attribute.getattr("init").ok()?.is_truthy().ok()?;
        let name = |name: &str| attribute.getattr(name).ok()?.extract().ok();
        is_argument.then_some(Field { shown: name("alias")?, name: name("name")?, is_kept: true })
    };
    Some(attributes.try_iter().ok()?.filter_map(names).collect())
}
