//! The budget of a result: the last stage of a response. The texts of a response are cut, and the whole text of the last one is kept
//! in a store before the response is delivered.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyNone, PyString, PyTuple};
use serde_json::Value;

use super::cold::Cold;
use super::python::attached;
use super::python::drive::{Sent, await_iter, send};
use super::state::{Phase, State, Step};
use super::task;
use crate::artifact::Artifacts;
use crate::bindings::budget::{PyResultBudget, budgets_are_in_use};
use crate::bindings::foreign_response::own;
use crate::bindings::into_response::{error_text, unicode};
use crate::bindings::native::future::{Conversion, PyNativeFuture};
use crate::bindings::once::intern;
use crate::bindings::response::{self, PyToolResponse};
use crate::bindings::tool::PyTool;
use crate::bindings::view::PyToolkitView;
use crate::bindings::{json, log_warning};
use crate::call::{ChunkMode, KeepWhole, ResultBudget, STRUCTURED_CONTENT, WholeText};
use crate::store::Store;

/// The tag of the tools that read whole results: what they give is not kept once more.
const ARTIFACT_TAG: &str = "artifact";

/// The tool that reads them.
const READING_TOOL: &str = "read_artifact";

impl State {
    /// Finds the budgets of a call. A bare value is not for a model, and is never cut.
    #[cold]
    pub(super) fn open_budget(&self, py: Python<'_>, tool: &PyTool) {
        if !self.bare {
            attached(py, |py| self.find_budgets(py, Some(tool)));
        }
    }

    /// The same for a call that ends before it has a tool.
    pub(super) fn open_budget_without_tool(&self, py: Python<'_>) {
        if budgets_are_in_use() && self.tool.get(py).is_none() {
            self.find_budgets(py, None);
        }
    }

    fn find_budgets(&self, py: Python<'_>, tool: Option<&PyTool>) {
        let toolkit = self.toolkit.get(py);
        let permissions = match (tool, &toolkit) {
            (Some(tool), _) => tool.permissions.bind(py),
            (None, Some(toolkit)) => toolkit.get().permissions(py),
            (None, None) => return,
        };
        let shared = Some(permissions.get()).filter(|permissions| permissions.has_budgets());
        let session = self.view.get(py).and_then(|view| PyToolkitView::session_object(&view));
        let mut budgets: Vec<Py<PyResultBudget>> = Vec::new();
        // The most specific one first: its store is used.
        budgets.extend(tool.and_then(|tool| tool.result_budget.as_ref()).map(|budget| budget.clone_ref(py)));
        if let (Some(shared), Some(tool)) = (shared, tool) {
            let groups = tool.seat.groups();
            budgets.extend(shared.group_budgets(py, groups.iter().map(|group| group.name())));
        }
        budgets.extend(session.and_then(|session| session.get().result_budget(py)));
        budgets.extend(shared.and_then(|shared| shared.result_budget(py)));
        if budgets.is_empty() {
            return;
        }
        match PyTuple::new(py, budgets) {
            Ok(budgets) => self.cold().budgets.set(budgets.into_any()),
            Err(error) => error.write_unraisable(py, None),
        }
    }

    /// A step whose response is within the budget of the call.
    #[cold]
    pub(super) fn within_budget<'py>(&self, py: Python<'py>, cold: &Cold, step: Step<'py>) -> Step<'py> {
        match step {
            Step::Chunk(response) => attached(py, |py| self.keep_or_cut(py, cold, response)),
            step => step,
        }
    }

    /// Keeps the whole text of the last response if it is too long, and cuts any other.
    fn keep_or_cut<'py>(&self, py: Python<'py>, cold: &Cold, response: Bound<'py, PyAny>) -> Step<'py> {
        let budgets = Budgets::of(py, cold);
        let Ok(own) = own(&response) else { return Step::Chunk(response) };
        if self.phase.get() == Phase::Done
            && let Some(store) = budgets.store.clone().or_else(|| self.toolkit_store(py))
            && let Some(whole) = self.whole_text(py, &own, &budgets.limit)
        {
            match keep(py, store, whole).and_then(await_iter) {
                Ok(keeping) => {
                    cold.keeping.set(keeping);
                    cold.uncut.set(response);
                    return self.step_keeping(py, cold, PyNone::get(py).as_any());
                }
                Err(error) => log_unkept(py, &error_text(py, &error)),
            }
        }
        Step::Chunk(cut_or_same(cold, response, &own, &budgets.limit, None))
    }

    /// The store of the toolkit, if the model can read the artifacts in it.
    fn toolkit_store(&self, py: Python<'_>) -> Option<Store> {
        let toolkit = self.toolkit.get(py)?;
        let store = toolkit.get().store(py)?;
        toolkit.get().find(py, READING_TOOL).map(|_| store.get().core().clone())
    }

    /// The whole text of a response that is too long, unless it is a part of another whole text.
    fn whole_text(
        &self,
        py: Python<'_>,
        response: &Bound<'_, PyToolResponse>,
        limit: &ResultBudget,
    ) -> Option<WholeText> {
        let tool = self.tool.get(py)?;
        if tool.get().seat.tags().iter().any(|tag| **tag == *ARTIFACT_TAG)
            || response::mode(response) != ChunkMode::Result
        {
            return None;
        }
        let texts = texts_of(response);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        limit.is_exceeded_by(&texts).then(|| WholeText {
            text: texts.join("\n"),
            tool: tool.get().name.to_string(),
            session: self.session(py).map(|session| session.id().to_string()),
        })
    }

    /// Goes on keeping the whole text. The response follows in any case.
    pub(super) fn step_keeping<'py>(&self, py: Python<'py>, cold: &Cold, value: &Bound<'py, PyAny>) -> Step<'py> {
        let Some(keeping) = cold.keeping.get(py) else { return Step::End };
        let whole = match send(&keeping, value) {
            Sent::Yielded(future) => return Step::Suspend(future),
            Sent::Returned(whole) => Some(whole),
            Sent::Raised(error) if task::is_cancellation(py, &error).unwrap_or(false) => {
                return self.give_up_keeping(py, cold, *error);
            }
            Sent::Raised(error) => {
                log_unkept(py, &error_text(py, &error));
                None
            }
        };
        cold.keeping.clear(py);
        let budgets = Budgets::of(py, cold);
        // The call is over, and its last response is cut once.
        cold.budgets.clear(py);
        let Some(response) = cold.uncut.take(py) else { return Step::End };
        let whole = whole.and_then(|whole| whole.extract::<String>().ok());
        match own(&response) {
            Ok(own) => Step::Chunk(cut_or_same(cold, response, &own, &budgets.limit, whole.as_deref())),
            Err(_) => Step::Chunk(response),
        }
    }

    /// Ends a call that was cancelled while its whole text was kept.
    pub(super) fn give_up_keeping<'py>(&self, py: Python<'py>, cold: &Cold, error: PyErr) -> Step<'py> {
        cold.keeping.clear(py);
        cold.uncut.clear(py);
        cold.budgets.clear(py);
        self.raise(py, error)
    }
}

/// The budgets of a call: the smallest, and the store of the most specific one that has one.
struct Budgets {
    limit: ResultBudget,
    store: Option<Store>,
}

impl Budgets {
    fn of(py: Python<'_>, cold: &Cold) -> Self {
        let budgets: Vec<Bound<'_, PyResultBudget>> =
            cold.budgets.get(py).and_then(|budgets| budgets.extract().ok()).unwrap_or_default();
        let limit = budgets.iter().map(|budget| budget.get().core(py)).reduce(ResultBudget::and);
        let store = budgets.iter().find_map(|budget| budget.get().store());
        Self { limit: limit.unwrap_or_default(), store: store.map(|store| store.get().core().clone()) }
    }
}

/// Starts to keep a text; the awaitable gives the call by which the model reads it, or None.
fn keep(py: Python<'_>, store: Store, whole: WholeText) -> PyResult<Bound<'_, PyAny>> {
    let kept = PyNativeFuture::spawn(py, async move {
        let kept = Artifacts::new(store).keep(whole).await;
        Box::new(move |py: Python<'_>| match kept {
            Ok(whole) => Ok(PyString::new(py, &whole).into_any().unbind()),
            Err(reason) => {
                log_unkept(py, &reason);
                Ok(py.None())
            }
        }) as Conversion
    })?;
    Ok(Bound::new(py, kept)?.into_any())
}

fn log_unkept(py: Python<'_>, reason: &str) {
    if let Err(error) = log_warning(py, &format!("the whole text of a result was not kept: {reason}")) {
        error.write_unraisable(py, None);
    }
}

/// The response within its budget; the very object that was delivered, perhaps of another library's class, if it fits.
fn cut_or_same<'py>(
    cold: &Cold,
    delivered: Bound<'py, PyAny>,
    own: &Bound<'py, PyToolResponse>,
    limit: &ResultBudget,
    whole: Option<&str>,
) -> Bound<'py, PyAny> {
    let cut = cut(cold, own, limit, whole);
    if cut.is(own) { delivered } else { cut }
}

/// The response within its budget; the response itself if it fits. `whole` is the call by which the model reads the whole text.
fn cut<'py>(
    cold: &Cold,
    response: &Bound<'py, PyToolResponse>,
    limit: &ResultBudget,
    whole: Option<&str>,
) -> Bound<'py, PyAny> {
    let (py, texts) = (response.py(), texts_of(response));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    // A counter is Python code, which must not run while something is borrowed.
    let mut spending = cold.spending.take();
    let cut = spending.cut(limit, &texts, response::mode(response), whole);
    cold.spending.replace(spending);
    let made = || {
        let (texts, report) = cut.map(|cut| (cut.texts, cut.report)).unzip();
        let mut made = response.clone().into_any();
        let structured = structured_of(response)?.and_then(|structured| limit.cut_structured(&structured, whole));
        let (structured, of_structured) = structured.unzip();
        if let Some(report) = report.or(of_structured) {
            made =
                response::with_metadata(&made, intern!(py, "budget"), &json::to_python(py, &report.to_value(whole))?)?;
        }
        if let Some(texts) = texts {
            made.setattr(intern!(py, "content"), with_texts(response, texts)?)?;
        }
        if let Some(structured) = structured {
            made = response::with_metadata(&made, intern!(py, STRUCTURED_CONTENT), &json::to_python(py, &structured)?)?;
        }
        Ok(made)
    };
    made().unwrap_or_else(|error: PyErr| {
        error.write_unraisable(py, Some(response));
        response.clone().into_any()
    })
}

/// The structured content of an MCP server, which is in the metadata.
fn structured_of(response: &Bound<'_, PyToolResponse>) -> PyResult<Option<Value>> {
    if response::mode(response) == ChunkMode::Progress {
        return Ok(None);
    }
    let metadata = response.getattr(intern!(response.py(), "metadata"))?;
    let Ok(metadata) = metadata.cast::<PyDict>() else { return Ok(None) };
    let structured = metadata.get_item(intern!(response.py(), STRUCTURED_CONTENT))?;
    // What is not JSON does not come from a server.
    Ok(structured.and_then(|structured| json::value_from_python(&structured).ok()))
}

/// The texts of the blocks that are text.
fn texts_of(response: &Bound<'_, PyToolResponse>) -> Vec<String> {
    let content = response::content(response);
    if let Ok(text) = content.cast::<PyString>() {
        return vec![unicode(text).into_owned()];
    }
    let blocks = content.try_iter().into_iter().flatten().flatten();
    blocks.filter_map(|block| text_of(&block).map(|text| unicode(&text).into_owned())).collect()
}

/// The text of a block that is text.
fn text_of<'py>(block: &Bound<'py, PyAny>) -> Option<Bound<'py, PyString>> {
    let (py, block) = (block.py(), block.cast::<PyDict>().ok()?);
    let kind = block.get_item(intern!(py, "type")).ok()??;
    let is_text = kind.cast::<PyString>().is_ok_and(|kind| kind.to_str().is_ok_and(|kind| kind == "text"));
    block.get_item(intern!(py, "text")).ok()?.filter(|_| is_text)?.cast_into().ok()
}

/// The content of a response with other texts; blocks without one are left out.
fn with_texts<'py>(response: &Bound<'py, PyToolResponse>, texts: Vec<Option<String>>) -> PyResult<Bound<'py, PyAny>> {
    let (py, content) = (response.py(), response::content(response));
    let mut texts = texts.into_iter();
    if content.is_instance_of::<PyString>() {
        return Ok(PyString::new(py, &texts.next().flatten().unwrap_or_default()).into_any());
    }
    let blocks = PyList::empty(py);
    for block in content.try_iter()? {
        let block = block?;
        if text_of(&block).is_none() {
            blocks.append(block)?;
        } else if let Some(text) = texts.next().flatten() {
            let copy = block.cast::<PyDict>()?.copy()?;
            copy.set_item(intern!(py, "text"), text)?;
            blocks.append(copy)?;
        }
    }
    Ok(blocks.into_any())
}
