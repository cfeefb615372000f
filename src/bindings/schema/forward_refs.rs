//! Resolution of string annotations in the scope in which they were written.

use pyo3::exceptions::PyNameError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyString, PyTuple, PyType};

use crate::bindings::imported::{import_module, loaded_module};
use crate::bindings::once::intern;

/// The scope in which an annotation was written. Its names are collected when they are first needed.
pub(super) struct Scope<'py> {
    owner: ScopeOwner<'py>,
    names: Option<ScopeNames<'py>>,
}

/// The object whose annotations are resolved.
enum ScopeOwner<'py> {
    /// A function, a method, a class or an object that can be called.
    Callable(Bound<'py, PyAny>),
    /// A class with fields, a type alias or a type variable.
    Type(Bound<'py, PyAny>),
}

/// The names that are visible in a scope.
struct ScopeNames<'py> {
    globals: Bound<'py, PyDict>,
    /// The closure, the type parameters and the name of the class itself.
    locals: Bound<'py, PyDict>,
    /// The members of the class, looked up last: a method called `list` must not hide the type.
    members: Bound<'py, PyDict>,
}

impl<'py> Scope<'py> {
    pub(super) fn of_callable(callable: Bound<'py, PyAny>) -> Self {
        Self { owner: ScopeOwner::Callable(callable), names: None }
    }

    pub(super) fn of_type(named: Bound<'py, PyAny>) -> Self {
        Self { owner: ScopeOwner::Type(named), names: None }
    }

    fn names(&mut self) -> PyResult<&ScopeNames<'py>> {
        let names = match self.names.take() {
            Some(names) => names,
            None => ScopeNames::of(&self.owner)?,
        };
        Ok(self.names.insert(names))
    }
}

impl<'py> ScopeNames<'py> {
    fn of(owner: &ScopeOwner<'py>) -> PyResult<Self> {
        let (owner, function) = match owner {
            ScopeOwner::Callable(callable) => (callable, function_of(callable)?),
            ScopeOwner::Type(named) => (named, None),
        };
        let py = owner.py();
        let mut names = Self { globals: PyDict::new(py), locals: PyDict::new(py), members: PyDict::new(py) };
        if let Ok(class) = owner.cast::<PyType>() {
            names.add_class(class)?;
        }
        match function {
            Some(function) => names.add_function(&function)?,
            None => names.add_module(owner)?,
        }
        if let Ok(receiver) = owner.getattr(intern!(py, "__self__")) {
            let class = receiver.cast_into::<PyType>().unwrap_or_else(|receiver| receiver.into_inner().get_type());
            names.add_class(&class)?;
        }
        names.add_type_parameters(owner)?;
        Ok(names)
    }

    fn add_class(&self, class: &Bound<'py, PyType>) -> PyResult<()> {
        for ancestor in class.mro().iter().collect::<Vec<_>>().iter().rev() {
            let ancestor = ancestor.cast::<PyType>()?;
            if ancestor.module()?.to_str()? != "builtins" {
                self.members.set_item(ancestor.name()?, ancestor)?;
                let members = ancestor.getattr(intern!(self.members.py(), "__dict__"))?;
                self.members.as_any().call_method1(intern!(self.members.py(), "update"), (members,))?;
            }
        }
        self.locals.set_item(class.name()?, class)
    }

    fn add_function(&mut self, function: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = function.py();
        self.globals = function.getattr(intern!(py, "__globals__"))?.cast_into::<PyDict>()?;
        if let Ok(cells) = function.getattr(intern!(py, "__closure__"))?.cast_into::<PyTuple>() {
            let code = function.getattr(intern!(py, "__code__"))?;
            let free = code.getattr(intern!(py, "co_freevars"))?.cast_into::<PyTuple>()?;
            for (name, cell) in free.iter().zip(cells.iter()) {
                // A cell is empty until the enclosing function assigns the variable.
                if let Ok(content) = cell.getattr(intern!(py, "cell_contents")) {
                    self.locals.set_item(name, content)?;
                }
            }
        }
        self.add_type_parameters(function)
    }

    fn add_module(&mut self, owner: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = owner.py();
        let Ok(name) = owner.getattr(intern!(py, "__module__")) else {
            return Ok(());
        };
        if let Some(globals) = module_names(&name)? {
            self.globals = globals;
        }
        Ok(())
    }

    fn add_type_parameters(&self, owner: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = owner.py();
        if let Ok(parameters) = owner.getattr(intern!(py, "__type_params__")) {
            for parameter in parameters.try_iter()? {
                let parameter = parameter?;
                self.locals.set_item(parameter.getattr(intern!(py, "__name__"))?, parameter)?;
            }
        }
        Ok(())
    }
}

/// The names a module defines, if it has been imported.
fn module_names<'py>(name: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = name.py();
    match loaded_module(py, name) {
        Ok(Some(module)) => Ok(module.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>().ok()),
        // A name that cannot be looked up belongs to no module.
        Ok(None) | Err(_) => Ok(None),
    }
}

/// The function in whose source an annotation was written, inside of wrappers, methods, classes and callable objects.
fn function_of<'py>(owner: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = owner.py();
    let mut current = owner.clone();
    // A chain of wrappers can be circular; this is more than any real one has.
    for _ in 0..64 {
        if let Ok(wrapped) = current.getattr(intern!(py, "__wrapped__")) {
            current = wrapped;
        } else if current.is_exact_instance_of::<PyFunction>() {
            return Ok(Some(current));
        } else if let Ok(function) = current.getattr(intern!(py, "__func__")) {
            current = function;
        } else if let Ok(class) = current.cast::<PyType>() {
            let constructor = class.getattr(intern!(py, "__init__"))?;
            let constructor = if constructor.is_exact_instance_of::<PyFunction>() {
                constructor
            } else {
                class.getattr(intern!(py, "__new__"))?
            };
            return Ok(constructor.is_exact_instance_of::<PyFunction>().then_some(constructor));
        } else if current.hasattr(intern!(py, "__globals__"))? {
            return Ok(Some(current));
        } else {
            match current.get_type().getattr(intern!(py, "__call__")) {
                Ok(call) if call.is_exact_instance_of::<PyFunction>() => current = call,
                _ => return Ok(None),
            }
        }
    }
    Ok(None)
}

/// Evaluates the annotation `text`, in the innermost scope first.
pub(super) fn resolve<'py>(
    py: Python<'py>,
    scopes: &mut [Scope<'py>],
    text: &Bound<'py, PyString>,
    module: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut missing = None;
    if let Some(globals) = module.map(module_names).transpose()?.flatten() {
        match evaluate(text, &globals, &PyDict::new(py)) {
            Err(error) if error.is_instance_of::<PyNameError>(py) => missing = Some(error),
            other => return other,
        }
    }
    for with_members in [false, true] {
        for scope in scopes.iter_mut().rev() {
            let names = scope.names()?;
            let locals = if with_members { &names.members } else { &names.locals };
            match evaluate(text, &names.globals, locals) {
                Err(error) if error.is_instance_of::<PyNameError>(py) => missing.get_or_insert(error),
                other => return other,
            };
        }
    }
    Err(missing.unwrap_or_else(|| PyNameError::new_err(format!("name '{text}' is not defined"))))
}

fn evaluate<'py>(
    text: &Bound<'py, PyString>,
    globals: &Bound<'py, PyDict>,
    locals: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = text.py();
    let builtins = import_module(py, "builtins")?;
    // Most annotations are a plain name, which needs no `eval`.
    if text.to_str().is_ok_and(is_name) {
        for names in [locals, globals] {
            if let Some(found) = names.get_item(text)? {
                return Ok(found);
            }
        }
        return builtins
            .getattr(text)
            .map_err(|_| PyNameError::new_err(format!("name '{}' is not defined", text.to_string_lossy())));
    }
    let trimmed = text.call_method0(intern!(py, "strip"))?;
    // `eval` adds `__builtins__` to the globals, which a module has anyway.
    builtins.call_method1(intern!(py, "eval"), (trimmed, globals, locals))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !matches!(text, "None" | "True" | "False")
}
