//! The request of a call, read: its name and its arguments, in whatever form they came; and the identity of the call.
//!
//! A dict with a name and a dict of arguments is how nearly all of them come, and is not even copied. Everything else goes
//! the slow way, through a [`ToolCall`].

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::SystemTime;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};

use super::cold::Cold;
use super::python::attached;
use super::python::drive::DictWalk;
use super::state::{Early, State};
use crate::bindings::once::intern;
use crate::bindings::tool::PyTool;
use crate::bindings::tool_call::{self, PyToolCall};
use crate::bindings::view::PyToolkitView;
use crate::bindings::{dialect, into_response, json};
use crate::call::repair::{ParsedArguments, RepairMode, read, read_strictly};
use crate::call::{ArgumentMode, CallError, CallInfo, ReadRepairs, Reply, ToolCall};
use crate::provider::{CallType, Dialect};
use crate::registry::Session;
use crate::trace::ToolSpan;

/// The message for an object that cannot be a call.
pub(super) const NO_CALL: &str = "a tool call is a mapping with `name` and `input`, or what ToolCall.read understands";

/// The place of `name` in a block: after `type` and `id`, and before `input`.
const NAME_PLACE: usize = 2;

/// True for objects that may be a call.
pub(super) fn is_readable(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>() || json::may_be_call(object)
}

/// A request that was read.
pub(super) struct Request<'py> {
    name: Bound<'py, PyAny>,
    /// The arguments as they were sent, or the reply that says why they cannot be read.
    pub(super) arguments: Result<Bound<'py, PyDict>, Box<Reply>>,
}

impl<'py> Request<'py> {
    /// The name of the tool.
    pub(super) fn name(&self) -> Result<&str, Early<'py>> {
        self.name_object()?.to_str().map_err(|_| bad("its `name` is not valid Unicode".to_owned()))
    }

    /// The name of the tool, which may not be valid Unicode.
    #[inline(always)]
    pub(super) fn name_object(&self) -> Result<&Bound<'py, PyString>, Early<'py>> {
        self.name.cast::<PyString>().map_err(|_| {
            attached(self.name.py(), |_| bad(format!("its `name` must be a string, not {}", kind_of(&self.name))))
        })
    }

    /// The end of a call that was not admitted. If the caller has no such tool, a request that cannot be read is answered with the
    /// reason for that: it may be no call of a tool at all.
    #[cold]
    pub(super) fn unadmitted(&self, early: Early<'py>) -> Early<'py> {
        match (&early, &self.arguments) {
            (Early::Reply(reply), Err(unreadable)) if reply.names_no_tool() => Early::Reply(unreadable.clone()),
            _ => early,
        }
    }
}

impl State {
    /// Reads the name and the arguments. Both are owned: a key of the request may run code that changes it.
    #[inline(always)]
    pub(super) fn read_request<'py>(&self, py: Python<'py>) -> Result<Request<'py>, Early<'py>> {
        let Some(request) = self.request.get(py) else { return Err(missing_name()) };
        if self.single {
            let arguments = self.keywords(py).unwrap_or_else(|| PyDict::new(py));
            return Ok(Request { name: request, arguments: Ok(arguments) });
        }
        let Ok(block) = request.cast::<PyDict>() else {
            return attached(py, |_| self.read_another_kind(&request));
        };
        let (Some(name), Some(input)) = name_and_input(block)? else {
            return attached(py, |_| self.read_another_format(&request));
        };
        if has_special_type(block)? {
            return attached(py, |_| self.read_another_format(&request));
        }
        match input.cast_into_exact::<PyDict>() {
            Ok(arguments) => Ok(Request { name, arguments: Ok(arguments) }),
            Err(other) => attached(py, |_| self.read_input(name, other.into_inner())),
        }
    }

    /// A request that is not a dict: a call that was read before, text, a mapping, or the object of a library.
    fn read_another_kind<'py>(&self, request: &Bound<'py, PyAny>) -> Result<Request<'py>, Early<'py>> {
        let py = request.py();
        let mapping = match request.cast::<PyMapping>() {
            Ok(mapping) if !request.is_instance_of::<PyToolCall>() => mapping,
            _ => return self.read_another_format(request),
        };
        let block = PyDict::new(py);
        block.update(mapping)?;
        self.request.set(block.into_any());
        self.read_request(py)
    }

    /// A request in the format of a provider; it is a block from then on.
    #[cold]
    fn read_another_format<'py>(&self, request: &Bound<'py, PyAny>) -> Result<Request<'py>, Early<'py>> {
        let py = request.py();
        let call = as_call(request, self.origin(py).as_ref())?;
        let call = call.get();
        let read = match &call.call.error {
            Some(error) => Err(bad_call(reason(&call.call, error))),
            None => to_dict(py, &call.call),
        };
        let arguments = match read {
            Ok(arguments) => arguments,
            Err(unreadable) if call.call.name.is_empty() => return Err(unreadable.into()),
            Err(unreadable) => {
                return Ok(Request {
                    name: PyString::new(py, &call.call.name).into_any(),
                    arguments: Err(unreadable.into()),
                });
            }
        };
        let block = call.to_block(py)?;
        block.set_item(intern!(py, "input"), &arguments)?;
        let Some(name) = block.get_item(intern!(py, "name"))? else { return Err(missing_name()) };
        self.request.set(block.into_any());
        let ToolCall { repairs, is_truncated, has_duplicate_keys, .. } = &call.call;
        let (repairs, is_truncated, has_duplicate_keys) = (repairs.clone(), *is_truncated, *has_duplicate_keys);
        self.note_reading(ReadRepairs { repairs, is_truncated, has_duplicate_keys });
        Ok(Request { name, arguments: Ok(arguments) })
    }

    /// The arguments of a block in whatever form they came: an object, its JSON text, or nothing.
    fn read_input<'py>(&self, name: Bound<'py, PyAny>, input: Bound<'py, PyAny>) -> Result<Request<'py>, Early<'py>> {
        let py = input.py();
        let request = Request { name, arguments: Ok(PyDict::new(py)) };
        if input.is_none() {
            return Ok(request);
        }
        let name = request.name()?;
        let arguments = if let Ok(input) = input.cast::<PyDict>() {
            Ok(input.copy()?)
        } else if let Ok(text) = input.cast::<PyString>() {
            self.read_text(py, name, &text.to_string_lossy())
        } else if let Ok(mapping) = input.cast::<PyMapping>() {
            let copy = PyDict::new(py);
            copy.update(mapping)?;
            Ok(copy)
        } else {
            Err(bad_call(format!("the `input` of '{name}' must be an object, not {}", kind_of(&input))))
        };
        Ok(Request { arguments: arguments.map_err(Box::new), ..request })
    }

    /// Arguments that came as JSON text.
    fn read_text<'py>(&self, py: Python<'py>, name: &str, text: &str) -> Result<Bound<'py, PyDict>, Reply> {
        let is_off = self.repair_mode(py) == RepairMode::Off;
        let reading = if is_off { read_strictly(text) } else { read(text) }
            .map_err(|error| bad_call(format!("the `input` of '{name}' cannot be read: {error}")))?;
        let ParsedArguments { arguments, repairs, is_truncated, has_duplicate_keys } = reading;
        self.note_reading(ReadRepairs { repairs, is_truncated, has_duplicate_keys });
        to_dict(py, &ToolCall::new(name, arguments))
    }

    /// Keeps the repairs that were needed to read the request.
    fn note_reading(&self, read: ReadRepairs) {
        if !read.is_empty() {
            *self.cold().repaired.borrow_mut() = read;
        }
    }

    /// The arguments of a request. Refuses those that cannot be read, or whose repairs may not be what was meant.
    #[inline(always)]
    pub(super) fn certain_arguments<'py>(
        &self,
        py: Python<'py>,
        tool: &PyTool,
        request: Request<'py>,
    ) -> Result<Bound<'py, PyDict>, Early<'py>> {
        let arguments = request.arguments.map_err(Early::Reply)?;
        if let Some(cold) = self.cold.get()
            && !cold.repaired.borrow().is_empty()
        {
            attached(py, |_| refuse_repaired(cold, tool, &arguments))?;
        }
        Ok(arguments)
    }

    /// The repair mode of this call.
    fn repair_mode(&self, py: Python<'_>) -> RepairMode {
        if let Some(tool) = self.tool.get(py) {
            return tool.get().plan.repair();
        }
        let Some(toolkit) = self.toolkit.get(py) else { return RepairMode::On };
        let behaviour = toolkit.get().behaviour();
        if behaviour.arguments == ArgumentMode::Pass { RepairMode::Off } else { behaviour.repair }
    }

    /// The request that middlewares get: a block as it came, and any other format as a `ToolCall`.
    pub(super) fn request_for_layers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let request =
            self.request.get(py).ok_or_else(|| PyRuntimeError::new_err("the request of this call is gone"))?;
        if let (true, Some(arguments)) = (self.single, self.keywords(py)) {
            return Ok(block(&request, arguments.as_any())?.into_any());
        }
        // A call that was read from text has values that were guessed, where its reader did not know the tool.
        if !request.is_instance_of::<PyToolCall>() && is_block(&request)? {
            return Ok(request);
        }
        let call = as_call(&request, self.origin(py).as_ref())?.into_any();
        self.request.set(call.clone());
        Ok(call)
    }

    /// Writes down the request of `Toolkit.call` as a block, which postprocess functions are given.
    #[cold]
    pub(super) fn keep_block(&self, py: Python<'_>, arguments: &Bound<'_, PyDict>) {
        let Some(name) = self.request.get(py) else { return };
        match arguments.copy().and_then(|arguments| block(&name, arguments.as_any())) {
            Ok(block) => self.request.set(block.into_any()),
            Err(error) => error.write_unraisable(py, None),
        }
    }

    /// The same call, to be translated from a dialect when it starts.
    pub(super) fn in_dialect(self, dialect: Option<Dialect>) -> Self {
        if dialect.is_some() {
            self.cold().dialect.set(dialect);
        }
        self
    }

    /// Translates the request, which is a block of the toolkit's own from then on.
    #[cold]
    pub(super) fn translate<'py>(&self, py: Python<'py>, dialect: Dialect) -> Result<(), Early<'py>> {
        let request = match self.read_request(py) {
            Ok(request) => request,
            // The same reply is given where the request is read again.
            Err(Early::Reply(_)) => return Ok(()),
            Err(early) => return Err(early),
        };
        let (Some(toolkit), Ok(name)) = (self.toolkit.get(py), request.name()) else { return Ok(()) };
        let Some(tool) = toolkit.get().find_in_dialect(py, dialect, name) else { return Ok(()) };
        let tool = tool.get();
        // A call that is not admitted is answered under the name that the model used.
        if self.find_admitted(py, &tool.name).is_err() || tool.check_extension().is_err() {
            return Ok(());
        }
        let Ok(arguments) = &request.arguments else {
            // The same reply is given where they are read again.
            return Ok(self.rename_request(py, &tool.name)?);
        };
        let in_dialect = tool.in_dialect(py, dialect, toolkit.get())?;
        let input = in_dialect.get().decoded(arguments.as_any())?.map_err(|problem| {
            let problems = tool.plan.redaction().problems(vec![problem]);
            let text = problems.iter().map(|problem| dialect::refusal(&tool.name, problem)).collect();
            Early::from(Reply::InvalidArguments { text })
        })?;
        let name = PyString::new(py, &tool.name).into_any();
        let translated = match self.request.get(py).and_then(|call| call.cast_into::<PyDict>().ok()) {
            Some(call) => {
                let copy = call.copy()?;
                copy.set_item(intern!(py, "name"), name)?;
                copy.set_item(intern!(py, "input"), input)?;
                copy
            }
            None => block(&name, &input)?,
        };
        self.request.set(translated.into_any());
        Ok(())
    }

    /// Gives the request another name of its tool, and leaves the rest of it as it came.
    fn rename_request(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let Some(request) = self.request.get(py) else { return Ok(()) };
        let renamed = match request.cast::<PyDict>() {
            Ok(request) if is_block(request)? => {
                let copy = request.copy()?;
                copy.set_item(intern!(py, "name"), name)?;
                copy.into_any()
            }
            _ => {
                let call = as_call(&request, self.origin(py).as_ref())?;
                let call = ToolCall { name: name.to_owned(), ..call.get().call.clone() };
                Bound::new(py, PyToolCall { call })?.into_any()
            }
        };
        self.request.set(renamed);
        Ok(())
    }
}

/// The identity of a call.
impl State {
    /// The identity of the call, which its layers share; made when it is first asked for.
    pub(super) fn info(&self, py: Python<'_>) -> Arc<CallInfo> {
        if let Some(info) = self.known_info() {
            return info;
        }
        let make = || {
            let Peeked { name, id } = Peeked::of(py, self);
            let id = id.filter(|id| !id.is_empty()).unwrap_or_else(made_up_id);
            CallInfo::new(&id, name.as_deref(), self.caller(py)).in_session(self.session(py))
        };
        let info = match self.port(py) {
            Some(port) => port.get().info(make),
            None => Arc::new(make()),
        };
        self.cold().info.replace(Some(info.clone()));
        info
    }

    /// The same, if it was asked for before.
    pub(super) fn known_info(&self) -> Option<Arc<CallInfo>> {
        self.cold.get().and_then(|cold| cold.info.borrow().clone())
    }

    /// Makes this stream a layer of a call that began elsewhere.
    pub(super) fn join(&self, info: Option<Arc<CallInfo>>) {
        if info.is_some() {
            self.cold().info.replace(info);
        }
    }

    /// The view that the call comes through, also before the call has reached it.
    pub(super) fn viewed<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyToolkitView>> {
        if self.toolkit.get(py).is_none() {
            return self.view_of_handler(py);
        }
        self.view.get(py).map(Borrowed::to_owned)
    }

    /// The identity of the caller, if the call comes through a view.
    pub(super) fn caller(&self, py: Python<'_>) -> Option<Arc<str>> {
        self.viewed(py)?.get().caller().cloned()
    }

    /// The session that the call is part of.
    pub(super) fn session(&self, py: Python<'_>) -> Option<Arc<Session>> {
        self.viewed(py)?.get().session().cloned()
    }
}

/// An id that no other call has. Nothing depends on its being hard to guess.
pub(crate) fn made_up_id() -> String {
    let seed = (SystemTime::now(), std::process::id());
    let bits = || RandomState::new().hash_one(seed);
    format!("call_{:016x}{:08x}", bits(), bits() >> 32)
}

/// The value of an entry, if there is one.
type Entry<'py> = Option<Bound<'py, PyAny>>;

/// The name and the arguments of a block. Most have the same four entries in the same order, and their keys are the interned
/// strings: these are found without a search.
#[inline(always)]
fn name_and_input<'py>(block: &Bound<'py, PyDict>) -> PyResult<(Entry<'py>, Entry<'py>)> {
    let (name_key, input_key) = (intern!(block.py(), "name"), intern!(block.py(), "input"));
    let mut entries = DictWalk::starting_at(block, NAME_PLACE);
    if let Some((key, name)) = entries.next()
        && key == name_key.as_ptr()
        && let Some((key, input)) = entries.next()
        && key == input_key.as_ptr()
    {
        return Ok((Some(name), Some(input)));
    }
    Ok((block.get_item(name_key)?, block.get_item(input_key)?))
}

/// True if a block with a name and an input may be something else than a plain call, by its type: a call that the provider runs,
/// a piece of a stream, or something unknown. Nearly all have the type `tool_use` in the first place, or no type.
#[inline(always)]
fn has_special_type(block: &Bound<'_, PyDict>) -> PyResult<bool> {
    let py = block.py();
    let is_plain =
        |(key, kind): (_, Bound<'_, PyAny>)| key == intern!(py, "type").as_ptr() && kind.is(intern!(py, "tool_use"));
    if block.len() == 2 || DictWalk::new(block).next().is_some_and(is_plain) {
        return Ok(false);
    }
    let Some(kind) = block.get_item(intern!(py, "type"))? else { return Ok(false) };
    let is_plain = |kind: &str| matches!(CallType::of(kind), CallType::Plain | CallType::Block);
    Ok(!kind.is_none() && !kind.cast::<PyString>().is_ok_and(|kind| kind.to_str().is_ok_and(is_plain)))
}

/// The name and id of a request that has not been read yet, for events and spans.
pub(super) struct Peeked {
    pub(super) name: Option<String>,
    pub(super) id: Option<String>,
}

impl Peeked {
    /// Looks at a call that has not started.
    pub(super) fn of(py: Python<'_>, state: &State) -> Self {
        let text = |object: Option<Bound<'_, PyAny>>| {
            let text = object?.cast_into::<PyString>().ok()?;
            Some(text.to_string_lossy().into_owned())
        };
        if state.single {
            return Self { name: text(state.request.get(py)), id: None };
        }
        let entry = |key| peeked_block(py, state).and_then(|block| block.get_item(key).ok().flatten());
        Self { name: text(entry(intern!(py, "name"))), id: text(entry(intern!(py, "id"))) }
    }

    /// The span for it, with the description of the tool.
    pub(super) fn described(&self, py: Python<'_>, state: &State) -> ToolSpan<'_> {
        let description = self.name.as_deref().and_then(|name| match state.toolkit.get(py) {
            Some(toolkit) => toolkit.get().description(name),
            None => state.tool_called_by_itself(py)?.get().schema.description(),
        });
        let owned = |text: Arc<str>| Cow::Owned(text.to_string());
        let (caller, session) = (state.caller(py), state.session(py).map(|session| session.id().clone()));
        ToolSpan::new(self.name.as_deref(), self.id.as_deref(), description.map(Cow::Owned))
            .called_by(caller.map(owned), session.map(owned))
    }

    /// The arguments that the model sent. Presets are not among them.
    pub(super) fn arguments<'py>(py: Python<'py>, state: &State) -> Option<Bound<'py, PyAny>> {
        if state.single {
            return state.keywords(py).map(Bound::into_any);
        }
        peeked_block(py, state)?.get_item(intern!(py, "input")).ok()?
    }
}

/// The request as a dict. One that only behaves like a dict is read once, here, and is a dict from then on; one in the
/// format of a provider is read too, and is a call from then on.
fn peeked_block<'py>(py: Python<'py>, state: &State) -> Option<Bound<'py, PyDict>> {
    let request = state.request_for_layers(py).ok()?;
    if let Ok(call) = request.cast::<PyToolCall>() {
        let block = call.get().to_block(py).ok()?;
        if call.get().call.name.is_empty() {
            block.del_item(intern!(py, "name")).ok()?;
        }
        return Some(block);
    }
    let request = match request.cast_into::<PyDict>() {
        Ok(block) => return Some(block),
        Err(error) => error.into_inner(),
    };
    let block = PyDict::new(py);
    // An error is reported when the request is read.
    block.update(request.cast::<PyMapping>().ok()?).ok()?;
    state.request.set(block.clone().into_any());
    Some(block)
}

/// The call that a request is.
fn as_call<'py>(request: &Bound<'py, PyAny>, origin: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyToolCall>> {
    let request = match request.cast::<PyToolCall>() {
        Ok(call) => return tool_call::read_again(call, origin),
        Err(_) => request,
    };
    let call = match request.cast::<PyString>() {
        Ok(text) => tool_call::read_text(&text.to_string_lossy(), origin)?,
        Err(_) => tool_call::read_object(request, origin)?,
    };
    Bound::new(request.py(), PyToolCall { call })
}

/// True for a request that is a block already: a mapping with a name and an input.
fn is_block(request: &Bound<'_, PyAny>) -> PyResult<bool> {
    match request.cast::<PyMapping>() {
        Ok(mapping) => Ok(mapping.contains("name")? && mapping.contains("input")?),
        Err(_) => Ok(false),
    }
}

/// A request that did not come as a block, written as one.
pub(super) fn block<'py>(name: &Bound<'py, PyAny>, input: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let py = name.py();
    let block = PyDict::new(py);
    block.set_item(intern!(py, "type"), intern!(py, "tool_use"))?;
    block.set_item(intern!(py, "id"), intern!(py, ""))?;
    block.set_item(intern!(py, "name"), name)?;
    block.set_item(intern!(py, "input"), input)?;
    Ok(block)
}

/// The arguments as Python objects. Python itself refuses some of what is valid JSON: integers of more digits than its
/// limit.
fn to_dict<'py>(py: Python<'py>, call: &ToolCall) -> Result<Bound<'py, PyDict>, Reply> {
    let name = &call.name;
    let object = json::to_python(py, &call.arguments).map_err(|error| {
        bad_call(format!("the arguments of '{name}' cannot be read: {}", into_response::error_text(py, &error)))
    })?;
    object.cast_into::<PyDict>().map_err(|_| bad_call(format!("the arguments of '{name}' must be an object")))
}

/// Refuses arguments whose repairs may not be what was meant.
#[cold]
fn refuse_repaired<'py>(cold: &Cold, tool: &PyTool, arguments: &Bound<'py, PyDict>) -> Result<(), Early<'py>> {
    let read = cold.repaired.borrow().clone();
    let (refused, more) = tool.plan.refuse_repaired(&read, tool.is_read_only(), arguments);
    cold.repaired.borrow_mut().repairs.extend(more);
    refused.map_or(Ok(()), |reply| Err(reply.into()))
}

fn reason(call: &ToolCall, error: &CallError) -> String {
    if call.name.is_empty() { error.to_string() } else { format!("the call of '{}': {error}", call.name) }
}

fn bad<'py>(reason: String) -> Early<'py> {
    bad_call(reason).into()
}

fn bad_call(reason: String) -> Reply {
    Reply::BadCall { reason }
}

#[cold]
fn missing_name<'py>() -> Early<'py> {
    bad("it has no `name`".to_owned())
}

fn kind_of(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".to_owned(), |name| format!("{name}"))
}
