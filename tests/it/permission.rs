//! The path of a call up to the run of its tool, driven without Python: what is decided, recorded and emitted, and in which order.

#![allow(clippy::expect_used)]

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use toolcrib::call::repair::read;
use toolcrib::call::{
    ApprovalRequest, CallInfo, CheckedArguments, EventKind, Host, Next, Path, PermissionStage, Permissions, Profile,
    Reply, Standing, ToolCall, Unfit, Waiting,
};
use toolcrib::policy::{
    Answer, Approvals, AuditRecord, Choice, Decision, Key, Pending, Permission, Policy, Rule, ToolKind,
};
use toolcrib::registry::{BASIC, Registry, Tool};
use toolcrib::schema::check::Checker;
use toolcrib::schema::{FunctionSchema, Node};
use toolcrib::{Error, Result};

struct Body {
    checker: Checker,
    secrets: Box<[Box<str>]>,
    permission: Permission,
}

impl Profile for Body {
    fn checker(&self) -> &Checker {
        &self.checker
    }

    fn kind(&self) -> ToolKind {
        ToolKind::Edit
    }

    fn permission(&self) -> Permission {
        self.permission
    }

    fn secrets(&self) -> &[Box<str>] {
        &self.secrets
    }
}

fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "amount": {"type": "integer"},
            "pin": {"type": "string"},
            "note": {"type": "string", "default": "none"},
        },
        "required": ["to"],
    })
}

fn tool(registry: &Registry<Body>, permission: Permission) -> Tool<Body> {
    let Node::Object(function) = Node::from(json!({"description": "Pay.", "parameters": parameters()})) else {
        panic!("an object");
    };
    let body = Body {
        checker: Checker::compile(&parameters()).expect("a schema"),
        secrets: Box::new(["pin".into()]),
        permission,
    };
    let group = registry.group(BASIC).expect("the basic group");
    Tool::new("pay", group, Arc::new(FunctionSchema::new(&function, "pay")), body)
}

/// A program around the path: it keeps what was done, and answers as it is told to.
struct World {
    registry: Registry<Body>,
    permissions: Permissions,
    approvals: Arc<Approvals>,
    has_approver: bool,
    audit: Audit,
    standing: RefCell<Standing>,
    log: RefCell<Vec<String>>,
    nonces: Cell<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Audit {
    On,
    Broken,
}

impl World {
    fn new(permission: Permission, rules: &[Value]) -> Self {
        let mut registry = Registry::default();
        let tool = tool(&registry, permission);
        registry.insert(tool);
        let permissions = Permissions::default();
        permissions.set_audited(true);
        let rules: Vec<Rule> = rules.iter().map(|rule| Rule::from_value(rule).expect("a rule")).collect();
        if !rules.is_empty() {
            permissions.set_policy(Some(Arc::new(Policy::new(rules, Decision::Allow).expect("a policy"))));
        }
        Self {
            registry,
            permissions,
            approvals: Arc::new(Approvals::in_memory(Key::new([7; 32]))),
            has_approver: false,
            audit: Audit::On,
            standing: RefCell::new(Standing::Same),
            log: RefCell::default(),
            nonces: Cell::new(0),
        }
    }

    fn tool(&self) -> &Tool<Body> {
        self.registry.find("pay").expect("the tool")
    }

    fn path(&self) -> Path<'_, Body, Self> {
        Path { registry: &self.registry, view: None, permissions: &self.permissions, host: self }
    }

    fn stage<'a>(&'a self, call: &'a CallInfo) -> PermissionStage<'a, Tool<Body>, Self> {
        PermissionStage { tool: self.tool(), call, permissions: &self.permissions, host: self }
    }

    fn call(&self, arguments: Value) -> Next {
        self.path().prepare(&request(arguments), &call()).expect("no mistake of the developer").next
    }

    fn would(&self, arguments: Value) -> &'static str {
        self.path().outlook(&request(arguments), &call()).would
    }

    fn answer(&self, waiting: Waiting, answer: Answer) -> Next {
        self.stage(&call()).answer(waiting, answer).expect("no mistake of the developer")
    }

    fn took(&self) -> Vec<String> {
        std::mem::take(&mut self.log.borrow_mut())
    }

    fn asked(&self, arguments: Value) -> (ApprovalRequest, Waiting) {
        match self.call(arguments) {
            Next::Ask(asked) => *asked,
            next => panic!("not asked: {next:?}"),
        }
    }

    fn pended(&self, arguments: Value) -> Pending {
        match self.call(arguments) {
            Next::Pend(pending) => *pending,
            next => panic!("not pending: {next:?}"),
        }
    }

    /// Resumes a pending call, through both of its steps.
    fn resume(&self, pending: &Pending, answer: Answer) -> Result<Next> {
        let call = CallInfo::resuming(pending.clone(), answer, None);
        let resumption = call.resumption.as_ref().expect("a resumption");
        let stage = self.stage(&call);
        match stage.claim(resumption)? {
            Some(next) => Ok(next),
            None => stage.resume(resumption),
        }
    }
}

fn call() -> CallInfo {
    CallInfo::new("call_1", Some("pay"), None)
}

fn request(arguments: Value) -> ToolCall {
    match arguments {
        Value::Object(arguments) => ToolCall::new("pay", arguments),
        _ => panic!("an object"),
    }
}

impl Host for World {
    type Error = Error;

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn nonce(&self) -> Result<[u8; 16]> {
        self.nonces.set(self.nonces.get() + 1);
        Ok([self.nonces.get(); 16])
    }

    fn has_approver(&self) -> bool {
        self.has_approver
    }

    fn approvals(&self) -> Result<(Arc<Approvals>, Duration)> {
        Ok((self.approvals.clone(), Duration::from_secs(60)))
    }

    fn record(&self, record: &AuditRecord<'_>) -> Result<(), String> {
        if self.audit == Audit::Broken {
            return Err("the disk is full".to_owned());
        }
        let record = record.to_value();
        let word = |field: &str| record[field].as_str().unwrap_or("-").to_owned();
        let (decision, by, answer, outcome) = (word("decision"), word("answered_by"), word("answer"), word("outcome"));
        self.log.borrow_mut().push(format!("record {decision} {by} {answer} {outcome} {}", record["arguments"]));
        Ok(())
    }

    fn wants(&self, _: EventKind) -> bool {
        true
    }

    fn emit(&self, kind: EventKind, data: Value) {
        let about = if kind == EventKind::PermissionResult { &data["decision"] } else { &data["arguments"] };
        self.log.borrow_mut().push(format!("{} {about}", kind.as_str()));
    }

    fn check(&self, edited: &Map<String, Value>) -> Result<Result<CheckedArguments, Unfit>> {
        Ok(self.tool().check_edited(edited))
    }

    fn complete(&self, sent: &Value) -> Result<CheckedArguments> {
        Ok(self.tool().complete(sent))
    }

    fn find_again(&self) -> Standing {
        self.standing.borrow().clone()
    }

    fn policy_to_extend(&self) -> Arc<Policy> {
        self.permissions.policy().unwrap_or_default()
    }

    fn cancel_questions(&self) {
        self.log.borrow_mut().push("cancel questions".to_owned());
    }

    fn warn(&self, text: &str) {
        self.log.borrow_mut().push(format!("warn {text}"));
    }
}

fn denial(next: &Next) -> &str {
    match next {
        Next::Respond(Reply::Denied { reason, .. }) => reason,
        next => panic!("not denied: {next:?}"),
    }
}

fn run(next: Next) -> CheckedArguments {
    match next {
        Next::Run(arguments) => arguments,
        next => panic!("does not run: {next:?}"),
    }
}

fn ask_rule() -> Value {
    json!({"tool": "pay", "decision": "ask", "id": "r"})
}

fn deny_rule() -> Value {
    json!({"tool": "pay", "decision": "deny", "id": "r", "arguments": {"note": "none"}, "reason": "never"})
}

#[test]
fn a_call_that_no_rule_is_about_runs_with_coerced_arguments_and_is_recorded() {
    let world = World::new(Permission::Auto, &[]);

    let arguments = run(world.call(json!({"to": "ann", "amount": "5", "pin": "1"})));

    assert_eq!(arguments.sent, json!({"to": "ann", "amount": 5, "pin": "1"}));
    assert_eq!(world.took(), [r#"record allow - - run {"to":"ann","amount":5,"pin":"***","note":"none"}"#]);
}

#[test]
fn a_rule_sees_the_default_of_an_argument_that_was_not_sent() {
    let world = World::new(Permission::Auto, &[deny_rule()]);

    assert_eq!(denial(&world.call(json!({"to": "ann"}))), "never");
    run(world.call(json!({"to": "ann", "note": "gift"})));
}

#[test]
fn wrong_requests_end_before_the_rules_are_asked() {
    let world = World::new(Permission::Auto, &[]);

    let unknown = world.path().prepare(&ToolCall::new("nope", Map::new()), &call()).expect("a reply").next;
    let unfit = world.call(json!({"amount": 1}));

    assert!(matches!(unknown, Next::Respond(Reply::UnknownTool { .. })));
    assert!(matches!(unfit, Next::Respond(Reply::InvalidArguments { .. })));
    assert!(world.took().is_empty());
}

#[test]
fn a_rule_denies_a_tool_also_if_the_arguments_cannot_be_read() {
    let world = World::new(Permission::Auto, &[json!({"tool": "pay", "decision": "deny", "reason": "never"})]);
    let unreadable = ToolCall::with_arguments("pay", read("not JSON"));
    let cut_off = ToolCall::with_arguments("pay", read(r#"{"to": "ann""#));

    for (request, shown) in [(unreadable, "null"), (cut_off, r#"{"to":"ann"}"#)] {
        let next = world.path().prepare(&request, &call()).expect("no mistake of the developer").next;

        assert_eq!(denial(&next), "never");
        assert_eq!(world.took(), [format!("record deny - - denied {shown}"), r#"permission_result "deny""#.to_owned()]);
        assert_eq!(world.path().outlook(&request, &call()).would, "deny");
        assert!(world.took().is_empty());
    }
}

#[test]
fn a_request_that_cannot_be_read_and_names_no_tool_is_answered_with_the_reason() {
    let world = World::new(Permission::Auto, &[]);
    let unreadable = ToolCall::with_arguments("nope", read("not JSON"));

    let next = world.path().prepare(&unreadable, &call()).expect("no mistake of the developer").next;

    assert!(matches!(next, Next::Respond(Reply::BadCall { .. })), "{next:?}");
}

#[test]
fn a_decision_that_cannot_be_recorded_is_a_no() {
    let mut world = World::new(Permission::Auto, &[]);
    world.audit = Audit::Broken;

    let next = world.call(json!({"to": "ann"}));

    assert_eq!(denial(&next), "the decision could not be recorded");
    let took = world.took();
    assert!(took[0].starts_with("warn the decision about a call of 'pay'"), "{took:?}");
}

#[test]
fn nothing_runs_unasked_without_an_approver() {
    let world = World::new(Permission::Confirm, &[]);
    world.permissions.set_headless(true);

    let next = world.call(json!({"to": "ann"}));

    assert!(denial(&next).contains("no approver is available"));
    assert_eq!(world.took()[0], r#"record ask headless - denied {"to":"ann","note":"none"}"#);
}

#[test]
fn a_dry_run_says_what_the_call_does_and_leaves_no_trace() {
    let confirm = World::new(Permission::Confirm, &[]);
    let mut asking = World::new(Permission::Confirm, &[]);
    asking.has_approver = true;
    let headless = World::new(Permission::Confirm, &[]);
    headless.permissions.set_headless(true);
    let denied = World::new(Permission::Auto, &[deny_rule()]);
    let plain = World::new(Permission::Auto, &[]);

    for (world, would) in
        [(&confirm, "pending"), (&asking, "ask"), (&headless, "deny"), (&denied, "deny"), (&plain, "run")]
    {
        assert_eq!(world.would(json!({"to": "ann"})), would);
        assert!(world.took().is_empty());
        let is = match world.call(json!({"to": "ann"})) {
            Next::Run(_) => "run",
            Next::Ask(_) => "ask",
            Next::Pend(_) => "pending",
            Next::Respond(_) => "deny",
            Next::Wait(_) => "wait",
        };
        assert_eq!(is, would);
    }
    assert_eq!(plain.would(json!({"amount": 1})), "refuse");
}

#[test]
fn an_approver_sees_no_secret_and_a_yes_runs_with_it() {
    let mut world = World::new(Permission::Confirm, &[]);
    world.has_approver = true;

    let (request, waiting) = world.asked(json!({"to": "ann", "pin": "1234"}));
    let next = world.answer(waiting, Choice::Once.into());

    assert_eq!(request.arguments, json!({"to": "ann", "pin": "***", "note": "none"}));
    assert_eq!(run(next).sent, json!({"to": "ann", "pin": "1234"}));
    assert_eq!(
        world.took(),
        [
            r#"permission_request {"to":"ann","pin":"***","note":"none"}"#,
            r#"record ask approver once run {"to":"ann","pin":"***","note":"none"}"#,
            r#"permission_result "allow""#,
        ]
    );
}

#[test]
fn an_answer_for_the_run_is_asked_for_once() {
    let mut world = World::new(Permission::Confirm, &[]);
    world.has_approver = true;

    let (_, waiting) = world.asked(json!({"to": "ann"}));
    run(world.answer(waiting, Choice::Run.into()));
    world.took();

    run(world.call(json!({"to": "bob"})));
    assert_eq!(world.took(), [r#"record ask grant run run {"to":"bob","note":"none"}"#]);
    world.permissions.grants().forget();
    world.asked(json!({"to": "bob"}));
}

#[test]
fn an_answer_for_always_becomes_a_rule() {
    let mut world = World::new(Permission::Auto, &[ask_rule()]);
    world.has_approver = true;

    let (_, waiting) = world.asked(json!({"to": "ann"}));
    run(world.answer(waiting, Choice::Always.into()));

    run(world.call(json!({"to": "bob"})));
}

#[test]
fn a_no_and_nonsense_keep_the_call_from_running() {
    let mut world = World::new(Permission::Confirm, &[]);
    world.has_approver = true;

    let (_, waiting) = world.asked(json!({"to": "ann"}));
    let next = world.answer(waiting.clone(), Answer::no("too much"));
    let silent = world.answer(waiting, Choice::No.into());

    assert_eq!(denial(&next), "too much");
    assert_eq!(denial(&silent), "the approver declined it");
}

#[test]
fn cancelling_one_question_cancels_those_that_wait_but_not_later_ones() {
    let mut world = World::new(Permission::Confirm, &[]);
    world.has_approver = true;
    let (_, first) = world.asked(json!({"to": "ann"}));
    let (_, second) = world.asked(json!({"to": "bob"}));
    world.took();

    let cancelled = world.answer(first, Choice::Cancel.into());
    let late_yes = world.answer(second, Choice::Once.into());

    assert!(matches!(cancelled, Next::Respond(Reply::Cancelled { .. })));
    assert!(matches!(late_yes, Next::Respond(Reply::Cancelled { .. })));
    assert_eq!(world.took().iter().filter(|line| *line == "cancel questions").count(), 1);
    let (_, later) = world.asked(json!({"to": "eve"}));
    run(world.answer(later, Choice::Once.into()));
}

fn edited(arguments: &Value) -> Answer {
    Answer { edited: arguments.as_object().cloned(), ..Choice::Once.into() }
}

#[test]
fn edited_arguments_are_checked_and_decided_about_again() {
    let rule =
        json!({"tool": "pay", "decision": "deny", "id": "d", "arguments": {"to": "eve"}, "reason": "not to eve"});
    let mut world = World::new(Permission::Confirm, &[rule]);
    world.has_approver = true;
    let (_, waiting) = world.asked(json!({"to": "ann", "pin": "1234"}));

    let kept = run(world.answer(waiting.clone(), edited(&json!({"to": "bob", "pin": "***"}))));
    let unfit = world.answer(waiting.clone(), edited(&json!({"to": "bob", "amount": "x"})));
    let denied = world.answer(waiting, edited(&json!({"to": "eve"})));

    assert_eq!(kept.sent, json!({"to": "bob", "pin": "1234"}));
    assert!(denial(&unfit).starts_with("it was approved with other arguments, which do not fit"));
    assert_eq!(denial(&denied), "not to eve");
}

#[test]
fn a_tool_that_was_replaced_or_left_meanwhile_does_not_run() {
    let mut world = World::new(Permission::Confirm, &[]);
    world.has_approver = true;
    let (_, waiting) = world.asked(json!({"to": "ann"}));

    *world.standing.borrow_mut() = Standing::Replaced;
    let replaced = world.answer(waiting.clone(), Choice::Once.into());
    *world.standing.borrow_mut() = Standing::Gone(Reply::UnknownTool { name: "pay".to_owned(), similar: None });
    let gone = world.answer(waiting, Choice::Once.into());

    assert!(denial(&replaced).contains("the tool was replaced"));
    assert!(matches!(gone, Next::Respond(Reply::UnknownTool { .. })));
}

#[test]
fn a_pending_call_is_resumed_once() {
    let world = World::new(Permission::Confirm, &[]);
    let pending = world.pended(json!({"to": "ann", "pin": "1"}));
    world.took();

    let next = world.resume(&pending, Choice::Once.into()).expect("a first use");
    let again = world.resume(&pending, Choice::Once.into());

    assert_eq!(run(next).sent, json!({"to": "ann", "pin": "1"}));
    assert!(matches!(again, Err(Error::UsedPending { .. })));
    assert_eq!(world.took()[0], r#"record ask resume once run {"to":"ann","pin":"***","note":"none"}"#);
}

#[test]
fn a_pending_call_that_is_declined_is_used_up() {
    let world = World::new(Permission::Confirm, &[]);
    let (one, other) = (world.pended(json!({"to": "ann"})), world.pended(json!({"to": "bob"})));

    let no = world.resume(&one, Choice::No.into()).expect("an answer");
    let cancel = world.resume(&other, Choice::Cancel.into()).expect("an answer");

    assert_eq!(denial(&no), "the approver declined it");
    assert!(matches!(cancel, Next::Respond(Reply::Cancelled { .. })));
    assert!(matches!(world.resume(&one, Choice::Once.into()), Err(Error::UsedPending { .. })));
}

#[test]
fn an_edit_that_does_not_fit_leaves_the_pending_call_as_it_is() {
    let world = World::new(Permission::Confirm, &[]);
    let pending = world.pended(json!({"to": "ann"}));

    let wrong = world.resume(&pending, edited(&json!({"amount": "x"})));
    let right = world.resume(&pending, edited(&json!({"to": "bob"}))).expect("still to be answered");

    assert!(matches!(wrong, Err(Error::InvalidAnswer { .. })));
    assert_eq!(run(right).sent, json!({"to": "bob"}));
}

#[test]
fn a_rule_that_came_meanwhile_is_stronger_than_an_approval() {
    let world = World::new(Permission::Confirm, &[]);
    let pending = world.pended(json!({"to": "ann"}));

    world.permissions.set_policy(Some(Arc::new(
        Policy::new(vec![Rule::from_value(&deny_rule()).expect("a rule")], Decision::Allow).expect("a policy"),
    )));

    assert_eq!(denial(&world.resume(&pending, Choice::Once.into()).expect("an answer")), "never");
}

#[test]
fn arguments_too_deep_to_be_kept_are_answered() {
    let mut deep = json!({});
    for _ in 0..124 {
        deep = json!({ "a": deep });
    }
    let world = World::new(Permission::Confirm, &[]);
    let call = call();
    let judged = CheckedArguments { sent: deep.clone(), whole: deep };

    let next = world.stage(&call).decide(judged).expect("no mistake of the developer");

    assert!(denial(&next).contains("at most 120 levels deep"), "{next:?}");
    assert!(world.took()[0].starts_with("record ask unwritable arguments - denied"));
}

#[test]
fn an_approval_without_a_folder_ends_at_a_fork() {
    let world = World::new(Permission::Confirm, &[]);
    let pending = world.pended(json!({"to": "ann"}));

    let forked = Approvals::renewed(&world.approvals, Key::new([8; 32]));
    let child = World { approvals: Arc::new(forked), ..World::new(Permission::Confirm, &[]) };

    assert!(matches!(child.resume(&pending, Choice::Once.into()), Err(Error::OtherProcess { .. })));
    let own = child.pended(json!({"to": "ann"}));
    run(child.resume(&own, Choice::Once.into()).expect("its own"));
    assert!(matches!(world.resume(&own, Choice::Once.into()), Err(Error::OtherKey { .. })));
}
