//! The stages of a call, as the core's [`path`] asks for them in their order. Each is a file beside this one.

use pyo3::prelude::*;

use super::arguments::{BoundArguments, Unbound};
use super::permission::Arguments;
use super::python::attached;
use super::request::Request;
use super::session::count_call;
use super::state::{Early, State, Step};
use crate::bindings::budget::budgets_are_in_use;
use crate::bindings::tool::PyTool;
use crate::bindings::view::PyToolkitView;
use crate::call::Reply;
use crate::call::path::{self, Clearance, Driver};

/// A call under way as the driver of its stages. Nothing of this happens before its first step, so that a call that is dropped has
/// done nothing, and permission is decided at the moment the tool runs.
struct Stages<'a, 'py> {
    state: &'a State,
    py: Python<'py>,
}

#[allow(clippy::inline_always, reason = "each stage is called once, and belongs to the path of every call")]
impl<'a, 'py> Driver for Stages<'a, 'py> {
    type Request = Request<'py>;
    type Tool = Borrowed<'a, 'py, PyTool>;
    type Arguments = Arguments<'py>;
    type Permitted = BoundArguments<'py>;
    type Step = Step<'py>;
    type Early = Early<'py>;

    #[inline(always)]
    fn claim(&self) -> Result<(), Early<'py>> {
        match self.state.cold.get() {
            Some(cold) => self.state.claim_approval(self.py, cold),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn middleware(&self) -> Result<Option<Step<'py>>, Early<'py>> {
        if !self.state.has_layers(self.py) {
            return Ok(None);
        }
        let given = self.state.enter_middleware(self.py)?;
        Ok(given.map(|given| self.state.advance(self.py, given)))
    }

    #[inline(always)]
    fn request(&self) -> Result<Request<'py>, Early<'py>> {
        self.state.read_request(self.py)
    }

    #[inline(always)]
    fn admit(&self, request: &Request<'py>) -> Result<Self::Tool, Early<'py>> {
        let tool = self.state.admit(self.py, request).map_err(|early| request.unadmitted(early))?;
        if budgets_are_in_use() {
            self.state.open_budget(self.py, tool.get()); // of the result
        }
        Ok(tool)
    }

    #[inline(always)]
    fn deny_outright(&self, tool: &Self::Tool, request: &Request<'py>) -> Result<Clearance, Early<'py>> {
        self.state.deny_outright(self.py, tool, request)
    }

    #[inline(always)]
    fn arguments(
        &self,
        tool: &Self::Tool,
        request: Request<'py>,
        clearance: Clearance,
    ) -> Result<Arguments<'py>, Early<'py>> {
        let (state, py) = (self.state, self.py);
        if clearance == Clearance::Decide && state.is_approved(tool.get()) {
            return Ok(Arguments::Approved);
        }
        let arguments = state.certain_arguments(py, tool.get(), request)?;
        if state.single && tool.get().postprocess.is_some() {
            state.keep_block(py, &arguments);
        }
        match clearance {
            Clearance::Pass => state.bound(py, tool.get().plan.bind(&arguments, state)).map(Arguments::Bound),
            Clearance::Decide => attached(py, |py| state.check_arguments(py, tool, &arguments)),
        }
    }

    #[inline(always)]
    fn permission(&self, tool: &Self::Tool, arguments: Arguments<'py>) -> Result<BoundArguments<'py>, Early<'py>> {
        match arguments {
            Arguments::Bound(arguments) => Ok(arguments),
            other => attached(self.py, |py| self.state.decide(py, tool, other)),
        }
    }

    #[inline(always)]
    fn count(&self, tool: &Self::Tool) -> Result<(), Early<'py>> {
        match self.state.view.get(self.py) {
            Some(view) => count_call(view.get(), tool.get()),
            None => Ok(()),
        }
    }

    #[inline(always)]
    fn run(&self, tool: Self::Tool, arguments: BoundArguments<'py>) -> Step<'py> {
        match self.state.run(self.py, tool.get(), arguments) {
            Ok(given) => self.state.advance(self.py, given), // response, postprocess
            Err(early) => self.state.end_early(self.py, early),
        }
    }
}

impl State {
    /// The first step of a call, from its request to its first response.
    #[inline(always)]
    pub(super) fn first_step<'py>(&self, py: Python<'py>) -> Result<Step<'py>, Early<'py>> {
        path::begin(&Stages { state: self, py })
    }

    /// The rest of the path of a call that was waiting.
    pub(super) fn proceed<'py>(
        &self,
        py: Python<'py>,
        permitted: BoundArguments<'py>,
    ) -> Result<Step<'py>, Early<'py>> {
        path::proceed(&Stages { state: self, py }, self.tool(py), permitted)
    }

    /// The outcome of binding: arguments that do not fit are answered, what the developer's code raises is an error of the tool.
    #[inline(always)]
    pub(super) fn bound<'py>(
        &self,
        py: Python<'py>,
        bound: Result<BoundArguments<'py>, Unbound>,
    ) -> Result<BoundArguments<'py>, Early<'py>> {
        bound.map_err(|unbound| match unbound {
            Unbound::Refused(reply) => Early::Reply(reply),
            Unbound::Raised(error) => Early::Step(self.fail(py, *error)),
        })
    }

    /// True if middlewares run before the tool, or this is the call of one.
    #[inline(always)]
    fn has_layers(&self, py: Python<'_>) -> bool {
        self.toolkit.get(py).is_none_or(|toolkit| toolkit.get().has_middlewares(py))
    }

    /// Finds the tool and checks that its group and the view let it be called.
    #[inline(always)]
    fn admit<'py>(&self, py: Python<'py>, request: &Request<'py>) -> Result<Borrowed<'_, 'py, PyTool>, Early<'py>> {
        if let Some(tool) = self.tool.get(py) {
            request.name()?;
            return Ok(tool); // a tool that is called by itself
        }
        if let Some(toolkit) = self.toolkit.get(py).filter(|toolkit| toolkit.get().prepares_use()) {
            let name = request.name()?;
            attached(py, |py| toolkit.get().prepare_use(py, Some(name)))?;
        }
        let tool = match (self.view.get(py), self.toolkit.get(py)) {
            (None, Some(toolkit)) => {
                let name = request.name_object()?;
                match toolkit.get().recently_admitted(name) {
                    Some(tool) => tool,
                    None => attached(py, |_| toolkit.get().admit_named(name, request.name()?).map_err(Early::from))?,
                }
            }
            _ => self.find_admitted(py, request.name()?)?,
        };
        self.tool.set(tool);
        let tool = self.tool(py);
        if let Some(view) = self.view.get(py) {
            self.begin_attempt(view.get(), tool.get());
        }
        Ok(tool)
    }

    /// Finds the tool of a name and checks that it may be called.
    #[inline(always)]
    pub(super) fn find_admitted<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyTool>, Reply> {
        match (self.view.get(py), self.toolkit.get(py)) {
            (Some(view), _) => PyToolkitView::admit(&view, name),
            (None, Some(toolkit)) => toolkit.get().admit(py, name),
            (None, None) => Err(Reply::UnknownTool { name: name.to_owned(), similar: None }),
        }
    }
}
