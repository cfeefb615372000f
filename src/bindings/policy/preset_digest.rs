//! The hash of presets that an approval is bound to. It covers all values, also those that JSON cannot represent.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use pyo3::prelude::*;
use pyo3::types::{
    PyBytes, PyCFunction, PyDict, PyFloat, PyFrozenSet, PyFunction, PyList, PySet, PyTuple, PyType, PyWeakrefReference,
};
use serde_json::{Value, json};

use crate::bindings::imported::{METHOD, PARTIAL, import_module};
use crate::bindings::json::{MAX_DEPTH, entries_of, from_python};
use crate::bindings::once::intern;
use crate::bytes::{hex, random_bytes};
use crate::policy::{canonical, hash};
use crate::sync::lock;

/// The hash of presets. Equal values have equal hashes in every process; an object that cannot be serialised has a hash of
/// its own, which is valid in this process only.
///
/// A partial that binds a part of `*args` is called itself; its positional arguments have no names and are not among the
/// presets, but are presets all the same. So is the object that a method is bound to.
pub(crate) fn presets_hash(presets: &Bound<'_, PyDict>, function: &Bound<'_, PyAny>) -> [u8; 32] {
    let named = dict(presets, 0);
    match (positional(function), receiver(function)) {
        (Some(values), _) => hash(&json!([named, tagged(&values, 0)])),
        (None, Some(receiver)) => hash(&json!([named, ["receiver", receiver_tag(&receiver)]])),
        (None, None) => hash(&named),
    }
}

/// The object that a method is bound to, or that is called itself.
fn receiver<'py>(function: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let py = function.py();
    if function.is_instance_of::<PyFunction>() || function.is_instance_of::<PyCFunction>() {
        return None;
    }
    match function.is_instance(METHOD.get(py).ok()?) {
        Ok(true) => function.getattr(intern!(py, "__self__")).ok(),
        _ => Some(function.clone()),
    }
}

/// The identity of a receiver that other processes can know: the name of its class, and its value if it is one, which an object with
/// an equality and a hash of its own is. Any other object may change between the question and the answer.
fn receiver_tag(receiver: &Bound<'_, PyAny>) -> Value {
    let name = |class: &Bound<'_, PyType>| class.qualname().map_or(Value::Null, |name| name.to_string().into());
    match receiver.cast::<PyType>() {
        Ok(class) => json!(["class", name(class)]),
        Err(_) if is_value(receiver) => json!(["value", name(&receiver.get_type()), tagged(receiver, 0)]),
        Err(_) => json!(["object", name(&receiver.get_type())]),
    }
}

/// True for an object whose class defines an equality and a hash.
fn is_value(object: &Bound<'_, PyAny>) -> bool {
    let (py, class) = (object.py(), object.get_type());
    let base = py.get_type::<PyAny>();
    [intern!(py, "__eq__"), intern!(py, "__hash__")].into_iter().all(|method| {
        let own = class.getattr(method).ok().filter(|own| !own.is_none());
        own.is_some_and(|own| base.getattr(method).is_ok_and(|base| !own.is(&base)))
    })
}

/// The positional arguments of a partial.
fn positional<'py>(function: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let py = function.py();
    let is_partial = function.is_instance(PARTIAL.get(py).ok()?).unwrap_or(false);
    if is_partial { function.getattr(intern!(py, "args")).ok() } else { None }
}

/// A value with its type, so that two different values never have the same form.
fn tagged(value: &Bound<'_, PyAny>, depth: usize) -> Value {
    if depth > MAX_DEPTH {
        return identity(value);
    }
    if let Ok(plain) = from_python(value) {
        return json!(["json", Value::from(plain)]);
    }
    if let Ok(float) = value.cast_exact::<PyFloat>() {
        return json!(["float", float.value().to_string()]);
    }
    if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        return json!(["bytes", hex(bytes.as_bytes())]);
    }
    if let Ok(entries) = value.cast_exact::<PyDict>() {
        return json!(["dict", dict(entries, depth)]);
    }
    let items = || -> PyResult<Vec<Value>> {
        let items: Vec<_> = value.try_iter()?.flatten().collect();
        Ok(items.iter().map(|item| tagged(item, depth + 1)).collect())
    };
    let is_set = value.is_exact_instance_of::<PySet>() || value.is_exact_instance_of::<PyFrozenSet>();
    let is_list = value.is_exact_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>();
    match items().ok().filter(|_| is_set || is_list) {
        Some(items) if is_list => json!(["list", items]),
        Some(mut items) => {
            items.sort_by_cached_key(canonical);
            json!(["set", items])
        }
        None => serialised(value).unwrap_or_else(|| identity(value)),
    }
}

fn dict(entries: &Bound<'_, PyDict>, depth: usize) -> Value {
    let mut pairs: Vec<Value> = entries_of(entries)
        .iter()
        .map(|(key, value)| json!([tagged(key, depth + 1), tagged(value, depth + 1)]))
        .collect();
    pairs.sort_by_cached_key(canonical);
    Value::Array(pairs)
}

/// An object as text: a path, a date, or anything that can be pickled.
fn serialised(value: &Bound<'_, PyAny>) -> Option<Value> {
    const PLAIN: [&str; 8] =
        ["datetime", "decimal", "fractions", "ipaddress", "pathlib", "pathlib._local", "uuid", "zoneinfo"];
    let (py, class) = (value.py(), value.get_type());
    let module = class.module().ok()?.to_string();
    let name = format!("{module}.{}", class.qualname().ok()?);
    if PLAIN.contains(&module.as_str()) {
        return Some(json!([name, value.repr().ok()?.to_str().ok()?]));
    }
    let pickled = import_module(py, "pickle").ok()?.call_method1(intern!(py, "dumps"), (value, 4)).ok()?;
    Some(json!([name, hex(pickled.cast::<PyBytes>().ok()?.as_bytes())]))
}

/// Maximum number of known objects.
const MAX_KNOWN: usize = 10_000;

/// The objects that have a number of their own, by address, for as long as they live.
static KNOWN: LazyLock<Mutex<KnownObjects>> = LazyLock::new(Mutex::default);
type KnownObjects = HashMap<usize, (Py<PyWeakrefReference>, u64)>;

/// A value that is unique to an object, in this process and all others.
fn identity(value: &Bound<'_, PyAny>) -> Value {
    // Without random numbers there are no approvals either: `Approvals` needs them for its key.
    static PROCESS: LazyLock<[u8; 16]> = LazyLock::new(|| random_bytes().unwrap_or_default());
    json!(["object", hex(&*PROCESS), number_of(value)])
}

fn number_of(value: &Bound<'_, PyAny>) -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (py, address) = (value.py(), value.as_ptr() as usize);
    let known = {
        let known = lock(&KNOWN);
        known.get(&address).map(|(reference, number)| (reference.clone_ref(py), *number))
    };
    if let Some((reference, number)) = known
        && reference.bind(py).call0().is_ok_and(|object| object.is(value))
    {
        return number;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // An object without weak references has a new number each time, so that its approvals are refused.
    if let Ok(reference) = PyWeakrefReference::new(value) {
        let mut known = lock(&KNOWN);
        let mut gone = vec![known.insert(address, (reference.unbind(), number))];
        if known.len() > MAX_KNOWN {
            // Objects that still live get a new number, so that calls with them need a new approval.
            gone.extend(known.drain().map(|(_, entry)| Some(entry)));
        }
        // Dropped without the lock, because that may run Python code.
        drop(known);
        drop(gone);
    }
    number
}
