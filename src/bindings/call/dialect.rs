//! A request in the dialect of a provider, brought to the toolkit's own words before anything else looks at it.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use super::hush::Hush;
use super::start::{Refusal, block};
use super::state::{State, Step};
use crate::bindings::dialect;
use crate::bindings::tool::PyTool;
use crate::call::Answer;
use crate::schema::check::Problem;
use crate::schema::dialect::Dialect;

/// The path of the arguments as a whole, which could also be the name of a parameter.
const WHOLE: &str = "arguments";

/// A problem without the value of a secret. A path that does not begin with a parameter shows nothing.
fn redacted(tool: &PyTool, mut problem: Problem) -> Problem {
    let secrets = &*tool.traits.secrets;
    if !secrets.is_empty() {
        let properties = tool.schema.parameters().value().get("properties").and_then(Value::as_object);
        let properties = properties.filter(|_| problem.path != WHOLE);
        let problems = Hush { secrets, properties }.problems(vec![problem.clone()]);
        problem = problems.into_iter().next().unwrap_or(problem);
    }
    problem
}

impl State {
    /// The same call, to be translated when it starts.
    pub(super) fn in_dialect(self, dialect: Option<Dialect>) -> Self {
        if dialect.is_some() {
            self.rare().dialect.set(dialect);
        }
        self
    }

    /// Translates the request, which is a block of the toolkit's own from then on; gives the step that ends the call if it cannot be.
    ///
    /// # Safety
    /// The thread is attached; the phase is `Ready`.
    #[cold]
    pub(super) unsafe fn translate(&self, dialect: Dialect) -> Option<Step> {
        Python::attach(|py| {
            // SAFETY: as for the caller.
            let refusal = unsafe { self.translated(py, dialect) }.err()?;
            // SAFETY: as for the caller.
            Some(unsafe { self.refuse(refusal) })
        })
    }

    unsafe fn translated(&self, py: Python<'_>, dialect: Dialect) -> Result<(), Refusal> {
        // SAFETY: as for `translate`.
        let (name, input) = match unsafe { self.request(py) } {
            Ok((name, input)) => (name.to_owned(), input),
            // It is told of where the request is read in earnest.
            Err(Refusal::Answer(_)) => return Ok(()),
            Err(refusal) => return Err(refusal),
        };
        // SAFETY: a call that has not started has a toolkit.
        let toolkit = unsafe { self.toolkit(py) };
        let Some(tool) = toolkit.get().called(py, dialect, &name) else { return Ok(()) };
        let tool = tool.get();
        // SAFETY: as above. What may not be called is answered under the name that the model used.
        if unsafe { self.admitted_tool(py, &tool.name) }.is_err() || tool.check_extension().is_err() {
            return Ok(());
        }
        let told = tool.in_dialect(py, dialect, toolkit.get())?;
        let input = told.get().decoded(input.as_any())?.map_err(|problem| {
            let text = dialect::refusal(&tool.name, &redacted(tool, problem));
            Refusal::Answer(Answer::InvalidArguments { text })
        })?;
        let name = &*tool.name;
        let name = name.into_pyobject(py).map_err(PyErr::from)?.into_any();
        let translated = match self.call.bound(py).and_then(|call| call.cast_into::<PyDict>().ok()) {
            Some(call) => {
                let copy = call.copy()?;
                copy.set_item(intern!(py, "name"), name)?;
                copy.set_item(intern!(py, "input"), input)?;
                copy
            }
            None => block(&name, &input)?,
        };
        self.call.set(translated.into_any().into_ptr());
        Ok(())
    }
}
