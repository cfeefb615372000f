//! JSON and Python objects: writing, reading and copying.
//!
//! - [`to_python`], [`schema_to_python`] and [`text_to_python`] make Python objects of JSON;
//! - [`from_python`], [`schema_from_python`] and [`from_object`] read JSON from Python objects. The last one also reads the
//!   objects of other libraries;
//! - [`deep_copy`] copies any dict, [`DictTemplate`] a JSON dict that is copied often.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyRecursionError, PyTypeError, PyValueError};
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::imported::import_module;
use crate::json::parse::NUMBER;
use crate::schema::{Entries, Node};

/// The maximum depth of a value: enough for any schema, and safe for any stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// Makes the Python object for `value`.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    make(py, value, PyString::new)
}

/// Parse TOML text; Python 3.10 has no parser of its own.
#[pyfunction]
pub(crate) fn _read_toml<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let document: Value = toml::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    to_python(py, &document)
}

/// Makes the Python object for a schema. Short strings are interned, because all tools share the keywords.
pub(crate) fn schema_to_python<'py>(py: Python<'py>, schema: &Value) -> PyResult<Bound<'py, PyAny>> {
    const MAX_INTERNED: usize = 20;
    make(
        py,
        schema,
        |py, text| if text.len() <= MAX_INTERNED { PyString::intern(py, text) } else { PyString::new(py, text) },
    )
}

fn make<'py>(
    py: Python<'py>,
    value: &Value,
    string: fn(Python<'py>, &str) -> Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Number(number) => number_to_python(py, number.as_str())?,
        Value::String(text) => string(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(make(py, item, string)?)?;
            }
            list.into_any()
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, item) in entries {
                dict.set_item(string(py, key), make(py, item, string)?)?;
            }
            dict.into_any()
        }
    })
}

fn number_to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(small) = text.parse::<i64>() {
        return Ok(small.into_pyobject(py)?.into_any());
    }
    if text.contains(['.', 'e', 'E']) {
        let float: f64 = text.parse().map_err(|_| PyValueError::new_err(format!("invalid number `{text}`")))?;
        return Ok(PyFloat::new(py, float).into_any());
    }
    py.get_type::<PyInt>().call1((text,))
}

/// Makes the Python object for JSON text, without a value between them: large values take much memory.
pub(crate) fn text_to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let keys = RefCell::default();
    let made = ObjectMaker { py, keys: &keys }.deserialize(&mut serde_json::Deserializer::from_str(text));
    made.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A maker of Python objects while JSON is parsed.
#[derive(Clone, Copy)]
struct ObjectMaker<'a, 'py> {
    py: Python<'py>,
    /// The names of members so far: most objects of a value have the same.
    keys: &'a RefCell<HashMap<String, Bound<'py, PyString>>>,
}

impl<'py> ObjectMaker<'_, 'py> {
    fn key(self, name: &str) -> Bound<'py, PyString> {
        const MAX_KEYS: usize = 1000;
        if let Some(key) = self.keys.borrow().get(name) {
            return key.clone();
        }
        let key = PyString::new(self.py, name);
        let mut keys = self.keys.borrow_mut();
        if keys.len() < MAX_KEYS {
            keys.insert(name.to_owned(), key.clone());
        }
        key
    }
}

impl<'de, 'py> DeserializeSeed<'de> for ObjectMaker<'_, 'py> {
    type Value = Bound<'py, PyAny>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, 'py> Visitor<'de> for ObjectMaker<'_, 'py> {
    type Value = Bound<'py, PyAny>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.py.None().into_bound(self.py))
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(PyBool::new(self.py, flag).to_owned().into_any())
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Self::Value, E> {
        number.into_bound_py_any(self.py).map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Self::Value, E> {
        number.into_bound_py_any(self.py).map_err(E::custom)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(PyFloat::new(self.py, number).into_any())
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(PyString::new(self.py, text).into_any())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let list = PyList::empty(self.py);
        while let Some(item) = items.next_element_seed(self)? {
            list.append(item).map_err(A::Error::custom)?;
        }
        Ok(list.into_any())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let dict = PyDict::new(self.py);
        while let Some(name) = entries.next_key::<Cow<'de, str>>()? {
            if name == NUMBER && dict.is_empty() {
                let digits = entries.next_value::<String>()?;
                return number_to_python(self.py, &digits).map_err(A::Error::custom);
            }
            let value = entries.next_value_seed(self)?;
            dict.set_item(self.key(&name), value).map_err(A::Error::custom)?;
        }
        Ok(dict.into_any())
    }
}

/// Reads JSON from builtin objects. An error names the path of the object that is not JSON.
pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Node> {
    ObjectReader::BUILTIN.read(object, &JsonPath::Root, 0)
}

/// The same as a value, for parts of the core that deserialize it.
pub(crate) fn value_from_python(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    ObjectReader::BUILTIN.read(object, &JsonPath::Root, 0)
}

/// Reads a schema that Python code made. A default that is not JSON is left out.
pub(crate) fn schema_from_python(object: &Bound<'_, PyAny>) -> PyResult<Node> {
    ObjectReader { drops_defaults: true, ..ObjectReader::BUILTIN }.read(object, &JsonPath::Root, 0)
}

/// Reads JSON from any object: builtin ones, and those of other libraries, such as mappings, pydantic models, messages of
/// protocols, and objects with the attributes of a tool call. Bytes outside of arguments, such as signatures, are read as base64.
pub(crate) fn from_object(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    ObjectReader { reads_instances: true, reads_bytes: true, ..ObjectReader::BUILTIN }.read(object, &JsonPath::Root, 0)
}

/// Reads the result of a tool in the same way. Lone surrogates, which no provider accepts, are replaced by `U+FFFD`.
pub(crate) fn from_result(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    ObjectReader { reads_instances: true, reads_bytes: true, replaces_surrogates: true, ..ObjectReader::BUILTIN }.read(
        object,
        &JsonPath::Root,
        0,
    )
}

/// The attributes by which an object is recognised as a tool call, or as a message with tool calls.
const CALL_ATTRIBUTES: [&str; 36] = [
    "type",
    "id",
    "call_id",
    "name",
    "input",
    "arguments",
    "args",
    "params",
    "function",
    "custom",
    "function_call",
    "functionCall",
    "method",
    "tool_calls",
    "content",
    "output",
    "parts",
    "choices",
    "candidates",
    "function_calls",
    "message",
    "item",
    "response",
    "content_block",
    // The attributes by which an unfinished call is recognised.
    "object",
    "index",
    "status",
    "delta",
    "will_continue",
    "willContinue",
    "partial_args",
    "partialArgs",
    "finish_reason",
    "stop_reason",
    "toolUse",
    "role",
];

/// The methods that convert an object to a dict, without required arguments.
const DUMP_METHODS: [&str; 3] = ["model_dump", "to_dict", "dict"];

/// True if an object may be a tool call or contain one: a mapping, or an object that a library made for it.
pub(crate) fn may_be_call(object: &Bound<'_, PyAny>) -> bool {
    if object.is_instance_of::<PyDict>() || object.cast::<PyMapping>().is_ok() {
        return true;
    }
    if object.is_instance_of::<PyString>() || object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return false;
    }
    let has = |name: &str| object.getattr_opt(name).is_ok_and(|found| found.is_some());
    let has_any = |names: &[&str]| names.iter().any(|name| has(name));
    has_any(&DUMP_METHODS)
        || has_any(&["function", "tool_calls", "function_call", "functionCall", "toolUse", "choices", "candidates"])
        || has_any(&["content_block", "delta", "item"])
        || has_any(&["name", "method"]) && has_any(&["input", "arguments", "args", "params"])
}

/// A representation of JSON that [`ObjectReader`] can produce.
trait JsonTree: From<String> {
    type Entries;
    const NULL: Self;
    fn boolean(flag: bool) -> Self;
    fn number(number: Number) -> Self;
    fn array(items: Vec<Self>) -> Self;
    fn object(entries: Self::Entries) -> Self;
    fn entries(capacity: usize) -> Self::Entries;
    fn insert(entries: &mut Self::Entries, key: &str, value: Self);
}

macro_rules! json_tree {
    ($tree:ident, $entries:ty, $insert:ident) => {
        impl JsonTree for $tree {
            type Entries = $entries;
            const NULL: Self = $tree::Null;

            fn boolean(flag: bool) -> Self {
                $tree::Bool(flag)
            }

            fn number(number: Number) -> Self {
                $tree::Number(number)
            }

            fn array(items: Vec<Self>) -> Self {
                $tree::Array(items)
            }

            fn object(entries: $entries) -> Self {
                $tree::Object(entries)
            }

            fn entries(capacity: usize) -> $entries {
                <$entries>::with_capacity(capacity)
            }

            fn insert(entries: &mut $entries, key: &str, value: Self) {
                entries.$insert(key.to_owned(), value);
            }
        }
    };
}

json_tree!(Node, Entries, push);
json_tree!(Value, Map<String, Value>, insert);

/// The path of a value, which is written only in error messages.
enum JsonPath<'a> {
    Root,
    Key(&'a JsonPath<'a>, &'a str),
    Index(&'a JsonPath<'a>, usize),
}

impl std::fmt::Display for JsonPath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => f.write_str("$"),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// A reader of JSON from Python objects.
#[allow(clippy::struct_excessive_bools, reason = "each names a difference between its three users")]
struct ObjectReader {
    /// Entries `default` that are not JSON are left out.
    drops_defaults: bool,
    /// Instances of other classes than the builtin ones are read, which may run their code.
    reads_instances: bool,
    /// Bytes are read as base64, as providers write them.
    reads_bytes: bool,
    /// Text that is not valid Unicode is made valid.
    replaces_surrogates: bool,
}

/// The keys of the arguments of a call. Base64 in these would not be what the caller sent.
const ARGUMENT_KEYS: [&str; 4] = ["input", "arguments", "args", "params"];

impl ObjectReader {
    /// A reader of builtin objects, which runs no code of theirs.
    const BUILTIN: Self =
        Self { drops_defaults: false, reads_instances: false, reads_bytes: false, replaces_surrogates: false };

    fn read<T: JsonTree>(&self, object: &Bound<'_, PyAny>, path: &JsonPath<'_>, depth: usize) -> PyResult<T> {
        if depth > MAX_DEPTH {
            return Err(PyRecursionError::new_err(format!("{path}: more than {MAX_DEPTH} levels deep")));
        }
        if object.is_none() {
            return Ok(T::NULL);
        }
        if let Ok(flag) = object.cast::<PyBool>() {
            return Ok(T::boolean(flag.is_true()));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return match text.to_str() {
                Ok(text) => Ok(T::from(text.to_owned())),
                Err(_) if self.replaces_surrogates => Ok(T::from(without_surrogates(text)?)),
                Err(_) => Err(PyValueError::new_err(format!("{path}: text with a lone surrogate is not JSON"))),
            };
        }
        if let Ok(integer) = object.cast::<PyInt>() {
            return integer_from_python(integer).map(T::number);
        }
        if let Ok(float) = object.cast::<PyFloat>() {
            return Number::from_f64(float.value())
                .map(T::number)
                .ok_or_else(|| PyValueError::new_err(format!("{path}: {} is not JSON", float.value())));
        }
        if let Ok(dict) = object.cast::<PyDict>() {
            return self.read_dict(dict, path, depth);
        }
        let items = if let Ok(list) = object.cast::<PyList>() {
            list.iter().collect::<Vec<_>>()
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            tuple.iter().collect()
        } else if self.reads_bytes && object.is_instance_of::<PyBytes>() {
            let encoded = import_module(object.py(), "base64")?.call_method1("urlsafe_b64encode", (object,))?;
            return Ok(T::from(String::from_utf8_lossy(encoded.cast::<PyBytes>()?.as_bytes()).into_owned()));
        } else if self.reads_instances {
            return self.read_instance(object, path, depth);
        } else {
            return Err(not_json(object, path));
        };
        let items =
            items.iter().enumerate().map(|(index, item)| self.read(item, &JsonPath::Index(path, index), depth + 1));
        items.collect::<PyResult<Vec<_>>>().map(T::array)
    }

    fn read_dict<T: JsonTree>(&self, dict: &Bound<'_, PyDict>, path: &JsonPath<'_>, depth: usize) -> PyResult<T> {
        let mut entries = T::entries(dict.len());
        for (key, item) in entries_of(dict) {
            let key = key.cast::<PyString>().map_err(|_| {
                let text = key.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string_lossy().into_owned());
                PyTypeError::new_err(format!("{path}: key {text} is {}, not str", class_name(&key)))
            })?;
            let key = match key.to_str() {
                Ok(key) => Cow::Borrowed(key),
                Err(_) if self.replaces_surrogates => Cow::Owned(without_surrogates(key)?),
                Err(error) => return Err(error),
            };
            let key = key.as_ref();
            let reader = Self { reads_bytes: self.reads_bytes && !ARGUMENT_KEYS.contains(&key), ..*self };
            match reader.read(&item, &JsonPath::Key(path, key), depth + 1) {
                Ok(item) => T::insert(&mut entries, key, item),
                Err(_) if self.drops_defaults && key == "default" => {}
                Err(error) => return Err(error),
            }
        }
        Ok(T::object(entries))
    }

    /// Reads an instance of another class. The class of a piece of a stream is the only sign that a call is not whole.
    fn read_instance<T: JsonTree>(&self, object: &Bound<'_, PyAny>, path: &JsonPath<'_>, depth: usize) -> PyResult<T> {
        let value = self.read_attributes(object, path, depth)?;
        let may_be_piece = matches!(path, JsonPath::Root | JsonPath::Index(JsonPath::Root, _));
        if !may_be_piece || !class_name(object).contains("Delta") {
            return Ok(value);
        }
        let mut entries = T::entries(1);
        T::insert(&mut entries, "delta", value);
        Ok(T::object(entries))
    }

    fn read_attributes<T: JsonTree>(
        &self,
        object: &Bound<'_, PyAny>,
        path: &JsonPath<'_>,
        depth: usize,
    ) -> PyResult<T> {
        if let Ok(mapping) = object.cast::<PyMapping>() {
            let dict = PyDict::new(object.py());
            dict.update(mapping)?;
            return self.read_dict(&dict, path, depth);
        }
        for name in DUMP_METHODS {
            if let Some(dump) = object.getattr_opt(name)?
                && let Ok(dict) = dump.call0()
                && let Ok(dict) = dict.cast::<PyDict>()
            {
                return self.read_dict(dict, path, depth);
            }
        }
        if object.get_type().getattr_opt("__members__")?.is_some() {
            return self.read(&object.getattr("value")?, path, depth + 1);
        }
        let mut entries = None;
        for name in CALL_ATTRIBUTES {
            if let Some(value) = object.getattr_opt(name)?
                && !value.is_callable()
            {
                let value = self.read(&value, &JsonPath::Key(path, name), depth + 1)?;
                T::insert(entries.get_or_insert_with(|| T::entries(0)), name, value);
            }
        }
        entries.map(T::object).ok_or_else(|| not_json(object, path))
    }
}

/// The text with each lone surrogate replaced by `U+FFFD`.
fn without_surrogates(text: &Bound<'_, PyString>) -> PyResult<String> {
    let halves = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
    let whole = halves.call_method1("decode", ("utf-16-le", "replace"))?;
    Ok(whole.cast_into::<PyString>()?.to_str()?.to_owned())
}

fn not_json(object: &Bound<'_, PyAny>, path: &JsonPath<'_>) -> PyErr {
    PyTypeError::new_err(format!("{path}: {} is not JSON", class_name(object)))
}

fn class_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The entries of a dict, taken before any of them is read: reading one may run Python code, and another thread may run
/// meanwhile, so that the dict may change.
pub(crate) fn entries_of<'py>(dict: &Bound<'py, PyDict>) -> Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    dict.iter().collect()
}

/// Reads an integer of any size.
pub(crate) fn integer_from_python(integer: &Bound<'_, PyInt>) -> PyResult<Number> {
    if let Ok(small) = integer.extract::<i64>() {
        return Ok(Number::from(small));
    }
    // `int.__repr__` rather than `repr`, which a subclass such as an enumeration overrides.
    let digits = integer.py().get_type::<PyInt>().call_method1("__repr__", (integer,))?;
    Ok(Number::from_string_unchecked(digits.extract::<String>()?))
}

/// The depth to which [`deep_copy`] copies; deeper values are shared.
const MAX_COPIED: usize = 100;

type Copies<'py> = HashMap<*mut PyObject, Bound<'py, PyAny>>;

/// Copies a dict, and the dicts and lists in it. It may contain any objects, which are shared, and itself.
pub(crate) fn deep_copy<'py>(dict: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    copy_dict(dict, 0, &mut HashMap::new())
}

fn copy_dict<'py>(dict: &Bound<'py, PyDict>, depth: usize, copies: &mut Copies<'py>) -> PyResult<Bound<'py, PyDict>> {
    let copy = dict.copy()?;
    copies.insert(dict.as_ptr(), copy.clone().into_any());
    for (key, value) in entries_of(&copy) {
        if let Some(value) = copy_container(&value, depth + 1, copies)? {
            copy.set_item(key, value)?;
        }
    }
    Ok(copy)
}

fn copy_container<'py>(
    value: &Bound<'py, PyAny>,
    depth: usize,
    copies: &mut Copies<'py>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if let Some(copy) = copies.get(&value.as_ptr()) {
        return Ok(Some(copy.clone()));
    }
    if depth > MAX_COPIED {
        return Ok(None);
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return Ok(Some(copy_dict(dict, depth, copies)?.into_any()));
    }
    let Ok(list) = value.cast_exact::<PyList>() else { return Ok(None) };
    let copy = list.get_slice(0, list.len());
    copies.insert(value.as_ptr(), copy.clone().into_any());
    for index in 0..copy.len() {
        if let Some(item) = copy_container(&copy.get_item(index)?, depth + 1, copies)? {
            copy.set_item(index, item)?;
        }
    }
    Ok(Some(copy.into_any()))
}

/// A JSON dict that is copied often: the positions of its dicts and lists are found once.
pub(crate) struct DictTemplate {
    dict: Py<PyDict>,
    nested: Box<[(Py<PyString>, NestedTemplate)]>,
}

/// A dict or a list inside of a template; all copies share everything else.
enum NestedTemplate {
    Dict(DictTemplate),
    List(Py<PyList>, Box<[(usize, NestedTemplate)]>),
}

impl DictTemplate {
    /// Makes the template of a dict, which must not be modified afterwards.
    pub(crate) fn new(dict: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut nested = Vec::new();
        for (key, value) in dict {
            if let Some(value) = NestedTemplate::new(&value)? {
                nested.push((key.cast_into::<PyString>()?.unbind(), value));
            }
        }
        Ok(Self { dict: dict.clone().unbind(), nested: nested.into() })
    }

    /// Returns a deep copy.
    pub(crate) fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let copy = self.dict.bind(py).copy()?;
        for (key, nested) in &self.nested {
            copy.set_item(key.bind(py), nested.copy(py)?)?;
        }
        Ok(copy)
    }
}

impl NestedTemplate {
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            return Ok(Some(Self::Dict(DictTemplate::new(dict)?)));
        }
        let Ok(list) = value.cast_exact::<PyList>() else { return Ok(None) };
        let mut nested = Vec::new();
        for (index, item) in list.iter().enumerate() {
            nested.extend(Self::new(&item)?.map(|item| (index, item)));
        }
        Ok(Some(Self::List(list.clone().unbind(), nested.into())))
    }

    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Dict(template) => template.copy(py).map(Bound::into_any),
            Self::List(list, nested) => {
                let list = list.bind(py);
                let copy = list.get_slice(0, list.len());
                for (index, item) in nested {
                    copy.set_item(*index, item.copy(py)?)?;
                }
                Ok(copy.into_any())
            }
        }
    }
}
