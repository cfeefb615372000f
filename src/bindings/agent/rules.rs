//! The rules of the ready-made loop: completion of the task, texts of the end, subjects of thoughts.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value};

use crate::agent::{
    COMPLETE_TASK, Completion, DUPLICATE_COMPLETION, Outcome, Termination, Thought, completion_text, run_description,
    unauthorized_text,
};
use crate::bindings::into_response::as_json;
use crate::bindings::json;

/// The rules of `complete_task` for one agent.
#[pyclass(name = "_AgentCompletion", module = "toolcrib._core", frozen)]
struct PyAgentCompletion(Completion);

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        _ => Map::new(),
    }
}

#[pymethods]
impl PyAgentCompletion {
    #[new]
    #[pyo3(signature = (name=None, description="", schema=None))]
    fn new(name: Option<&str>, description: &str, schema: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let Some(name) = name else { return Ok(Self(Completion::without_output())) };
        let schema = match schema {
            Some(schema) => json::value_from_python(schema)?,
            None => Value::Object(Map::new()),
        };
        Ok(Self(Completion::with_output(name, description, &schema)?))
    }

    /// The description of the tool.
    #[getter]
    fn description(&self) -> String {
        self.0.description()
    }

    /// The schema of the tool's parameters.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.0.parameters())
    }

    /// Decide about a call: None and the output, or the reason why it does not complete the task.
    fn check<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyDict>,
    ) -> PyResult<(Option<String>, Bound<'py, PyAny>)> {
        match self.0.check(&object(as_json(arguments))) {
            Ok(Some(output)) => Ok((None, json::to_python(py, &output)?)),
            Ok(None) => Ok((None, py.None().into_bound(py))),
            Err(problem) => Ok((Some(problem.to_string()), py.None().into_bound(py))),
        }
    }
}

/// The subject and the rest of a thought.
#[pyfunction]
fn _thought(text: &str) -> (String, String) {
    let thought = Thought::parse(text);
    (thought.subject.to_owned(), thought.description())
}

/// One line that describes a run to people.
#[pyfunction]
fn _run_description(agent: &str, inputs: &Bound<'_, PyAny>) -> String {
    run_description(agent, &object(as_json(inputs)))
}

/// The result of a run as text.
#[pyfunction]
fn _completion_text(output: &Bound<'_, PyAny>) -> String {
    if output.is_none() {
        return completion_text(None);
    }
    completion_text(Some(&as_json(output)))
}

fn termination(word: &str) -> PyResult<Termination> {
    Termination::parse(word).ok_or_else(|| PyValueError::new_err(format!("unknown termination `{word}`")))
}

/// The result of a run that ends without one, for a reason and the limit that was reached.
#[pyfunction]
#[pyo3(signature = (reason, limit=None))]
fn _final_text(reason: &str, limit: Option<f64>) -> PyResult<String> {
    Ok(termination(reason)?.final_text(limit))
}

/// True if a run that ends for a reason gets a recovery turn.
#[pyfunction]
fn _is_recoverable(reason: &str) -> PyResult<bool> {
    Ok(termination(reason)?.is_recoverable())
}

/// The text for the caller's model.
#[pyfunction]
fn _wrapped_result(agent: &str, reason: &str, is_recovered: bool, result: String) -> PyResult<String> {
    let outcome = Outcome { termination: termination(reason)?, is_recovered, result: Some(result) };
    Ok(outcome.wrapped(agent, ""))
}

/// The answer to a call of a tool that an agent does not have.
#[pyfunction]
fn _unauthorized_text(tool: &str) -> String {
    unauthorized_text(tool)
}

/// Adds the class and the functions, which only the package itself uses.
pub(super) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::bindings::add_internal::<PyAgentCompletion>(module)?;
    module.setattr("_COMPLETE_TASK", COMPLETE_TASK)?;
    module.setattr("_DUPLICATE_COMPLETION", DUPLICATE_COMPLETION)?;
    // Not by `add_function`, which adds the names to `__all__`.
    module.setattr("_thought", wrap_pyfunction!(_thought, module)?)?;
    module.setattr("_run_description", wrap_pyfunction!(_run_description, module)?)?;
    module.setattr("_completion_text", wrap_pyfunction!(_completion_text, module)?)?;
    module.setattr("_final_text", wrap_pyfunction!(_final_text, module)?)?;
    module.setattr("_is_recoverable", wrap_pyfunction!(_is_recoverable, module)?)?;
    module.setattr("_wrapped_result", wrap_pyfunction!(_wrapped_result, module)?)?;
    module.setattr("_unauthorized_text", wrap_pyfunction!(_unauthorized_text, module)?)
}
