//! The path of a call: its stages in their one order.
//!
//! A [`Driver`] carries the stages out, and cannot do it in another order: the stream of the bindings drives Python functions on
//! their event loop, `prepared` the tools whose arguments are JSON, and dry runs stop before anything has an effect. Nothing here
//! is decided twice: what a call may do is in `permission`, what its arguments are in `arguments`.

/// The verdict of the rules on a call before its arguments are known, unless they deny it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearance {
    /// The call may run with any arguments, and nothing is recorded.
    Pass,
    /// Rules, an approver or the audit log have to see the arguments.
    Decide,
}

/// The stages of one call. Each gives its result, or the early end of the call; none calls the next.
pub trait Driver {
    /// A request whose tool is named. Its arguments are as they were sent.
    type Request;
    /// The tool.
    type Tool;
    /// Arguments that fit.
    type Arguments;
    /// Arguments that may run.
    type Permitted;
    /// The first step of a tool that runs.
    type Step;
    /// The end of a call before its tool has run, or a wait.
    type Early;

    /// Uses up the pending value of a resumed call.
    ///
    /// # Errors
    ///
    /// The early end of the call.
    fn claim(&self) -> Result<(), Self::Early>;

    /// Enters the next layer around the tool, if there is one. A call that rules deny outright enters none.
    ///
    /// # Errors
    ///
    /// The early end of the call.
    fn middleware(&self) -> Result<Option<Self::Step>, Self::Early>;

    /// Reads a request in any wire format, or in text.
    ///
    /// # Errors
    ///
    /// The early end of the call, if no tool is named.
    fn request(&self) -> Result<Self::Request, Self::Early>;

    /// Finds the tool, and checks that its group and the view let it be called.
    ///
    /// # Errors
    ///
    /// The early end of the call.
    fn admit(&self, request: &Self::Request) -> Result<Self::Tool, Self::Early>;

    /// Denies and records a call that may not run whatever its arguments are.
    ///
    /// # Errors
    ///
    /// The early end of the call.
    fn deny_outright(&self, tool: &Self::Tool, request: &Self::Request) -> Result<Clearance, Self::Early>;

    /// Reads, repairs, coerces and checks the arguments.
    ///
    /// # Errors
    ///
    /// The early end of the call, if they do not fit.
    fn arguments(
        &self,
        tool: &Self::Tool,
        request: Self::Request,
        clearance: Clearance,
    ) -> Result<Self::Arguments, Self::Early>;

    /// Decides by the rules on arguments, and by an approver.
    ///
    /// # Errors
    ///
    /// The early end of the call, or its wait for an answer; a call that was waiting goes on with [`proceed`].
    fn permission(&self, tool: &Self::Tool, arguments: Self::Arguments) -> Result<Self::Permitted, Self::Early>;

    /// Counts the call in the limits of its session.
    ///
    /// # Errors
    ///
    /// The early end of the call.
    fn count(&self, tool: &Self::Tool) -> Result<(), Self::Early>;

    /// Runs the tool.
    fn run(&self, tool: Self::Tool, arguments: Self::Permitted) -> Self::Step;
}

/// Takes a call from its request to the first step of its tool.
///
/// # Errors
///
/// The early end of the call, or a wait.
#[inline(always)]
#[allow(
    clippy::inline_always,
    reason = "a driver's stages are each called once, and cost as much as a call of a function"
)]
pub fn begin<D: Driver>(call: &D) -> Result<D::Step, D::Early> {
    call.claim()?; // a resumed call uses up its pending value
    if let Some(step) = call.middleware()? {
        return Ok(step); // the next layer runs in place of the tool
    }
    let request = call.request()?; // any wire format → name, arguments as they were sent
    let tool = call.admit(&request)?; // registry, group, view
    let clearance = call.deny_outright(&tool, &request)?; // rules that need no arguments; recorded
    let arguments = call.arguments(&tool, request, clearance)?; // repair, coerce, check, build, bind
    let permitted = call.permission(&tool, arguments)?; // rules on arguments, approval; recorded
    proceed(call, tool, permitted)
}

/// The rest of the path, from arguments that are permitted.
///
/// # Errors
///
/// The early end of the call.
#[inline(always)]
#[allow(clippy::inline_always, reason = "as part of `begin`")]
pub fn proceed<D: Driver>(call: &D, tool: D::Tool, permitted: D::Permitted) -> Result<D::Step, D::Early> {
    call.count(&tool)?; // the limits of the session
    Ok(call.run(tool, permitted)) // loop, thread, process, native, sub-agent
}
