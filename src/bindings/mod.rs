//! The Python face: converts in, calls the core, converts out.

mod allocator;
mod argument_reader;
mod background;
mod call;
mod callable;
mod copying;
mod described;
mod dialect;
mod errors;
mod events;
mod extension;
mod foreign;
mod group;
mod imported;
mod json;
mod log;
mod meta;
mod modules;
mod names;
mod native;
mod policy;
mod register;
mod render;
mod response;
mod role;
mod roles;
mod roster;
mod rule_value;
mod schema;
mod signature;
mod text;
mod tool;
mod tool_call;
mod tool_in_view;
mod toolkit;
mod trace;
mod traits;
mod value;
mod view;
mod worker;

use pyo3::prelude::*;

#[cfg(Py_GIL_DISABLED)]
compile_error!(
    "toolcrib cannot be built for a free-threaded Python: its types rely on the global interpreter lock. \
     Use a build of CPython without the `t` in its version"
);

/// The module's own allocations; the interpreter keeps its allocator.
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// The extension module behind the package `toolcrib`.
///
/// It is initialised in two phases, as pyo3 makes every module, which CPython takes for leave to load it into any
/// interpreter that shares the lock of the main one; so the first line asks. An interpreter with a lock of its own is refused
/// by CPython itself, because the slot that would allow it is not set. `gil_used` has a free-threaded Python switch its lock
/// on, but `PYTHON_GIL=0` overrules that, so such builds are refused at compile time above.
#[pymodule(gil_used = true)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    call::refuse_second_interpreter(module.py())?;
    imported::init(module)?;
    module.add_class::<toolkit::PyToolkit>()?;
    module.add_class::<tool::PyTool>()?;
    module.add_class::<group::PyToolGroup>()?;
    module.add_class::<view::PyToolkitView>()?;
    module.add_class::<role::PyRole>()?;
    module.add_class::<roles::PyRoles>()?;
    module.add_class::<roster::PyToolRoster>()?;
    module.add_class::<response::PyToolResponse>()?;
    module.add_class::<policy::PyPolicy>()?;
    module.add_class::<policy::PyApprovals>()?;
    module.add_class::<policy::PyExplanation>()?;
    module.add_class::<events::PyEvent>()?;
    module.add_class::<dialect::PyDialectTool>()?;
    tool_call::install(module)?;
    module.add_class::<argument_reader::PyArgumentReader>()?;
    text::install(module)?;
    // Not by `add_class` and `add_function`, which would list them in `__all__`.
    let py = module.py();
    module.setattr("_TaskBoard", py.get_type::<background::PyTaskBoard>())?;
    module.setattr("_Permissions", py.get_type::<policy::PyPermissions>())?;
    module.setattr("_AwaitableJob", py.get_type::<worker::AwaitableJob>())?;
    module.setattr("_EventQueue", py.get_type::<events::PyEventQueue>())?;
    module.setattr("_as_response", wrap_pyfunction!(value::_as_response, module)?)?;
    worker::install(module)?;
    native::init(module)?;
    trace::install(module)?;
    call::init(module, &module.py().get_type::<toolkit::PyToolkit>())
}
