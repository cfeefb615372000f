//! The rules of a sub-agent's run: lineage, budget, completion, end, thoughts.

#![allow(clippy::expect_used)]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use serde_json::{Map, Value, json};
use toolcrib::agent::{
    Activity, Budget, BudgetLimits, BudgetUse, Completion, Exhausted, Lineage, Outcome, Refusal, Termination, Thought,
    TreeLimits, activity_event, completion_text, failure_text, run_description, unauthorized_text,
};
use toolcrib::call::{Code, Reply};
use toolcrib::registry::{LimitReached, Session, SessionLimits};

fn path(lineage: &Lineage) -> Vec<String> {
    lineage.path().iter().map(ToString::to_string).collect()
}

fn entries(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(entries) => entries,
        other => panic!("{other} is not an object"),
    }
}

fn limits(depth: usize) -> TreeLimits {
    TreeLimits { depth, ..TreeLimits::default() }
}

fn budget(turns: u64, calls: u64, tokens: u64) -> BudgetLimits {
    BudgetLimits { turns: Some(turns), calls: Some(calls), tokens: Some(tokens) }
}

#[test]
fn a_lineage_names_the_callers_from_the_outermost_one() {
    let planner = Lineage::enter(None, "planner", limits(3)).expect("the first");
    let searcher = Lineage::enter(Some(&planner), "searcher", limits(3)).expect("the second");
    let reader = Lineage::enter(Some(&searcher), "reader", limits(3)).expect("the third");

    assert_eq!(path(&reader), ["planner", "searcher", "reader"]);
    assert_eq!((reader.depth(), &**reader.agent()), (3, "reader"));
    assert_eq!(reader.caller().map(|caller| &**caller.agent()), Some("searcher"));
}

#[test]
fn an_agent_is_not_called_by_itself_through_others() {
    let planner = Lineage::enter(None, "planner", limits(9)).expect("the first");
    let searcher = Lineage::enter(Some(&planner), "searcher", limits(9)).expect("the second");

    let refusal = Lineage::enter(Some(&searcher), "planner", limits(9)).expect_err("a cycle");

    assert!(matches!(&refusal, Refusal::Cycle { agent, .. } if **agent == *"planner"));
    let text =
        "Error: The agent 'planner' cannot be called by itself (planner → searcher → planner): do this part yourself.";
    assert_eq!(Reply::AgentRefused(refusal.clone()).text(), text);
    assert_eq!(Reply::AgentRefused(refusal).code(), Code::LimitExceeded);
}

#[test]
fn the_smaller_depth_of_caller_and_agent_applies() {
    let wide = Lineage::enter(None, "wide", limits(2)).expect("the first");
    let deep = Lineage::enter(Some(&wide), "deep", limits(9)).expect("the second");
    let narrow = Lineage::enter(None, "narrow", limits(9)).expect("the first");
    let leaf = Lineage::enter(Some(&narrow), "leaf", limits(1)).expect("the second");

    for (caller, limit) in [(&deep, 2), (&leaf, 2)] {
        let refused = Lineage::enter(Some(caller), "more", limits(9)).expect_err("too deep");

        assert!(matches!(refused, Refusal::TooDeep { limit: at, .. } if at == limit), "{refused}");
    }
    assert!(Lineage::enter(None, "none", limits(0)).is_err());
}

#[test]
fn all_runs_of_a_tree_share_the_budget_of_the_outermost_agent() {
    let outer = TreeLimits { depth: 9, budget: budget(3, 2, 100) };
    let planner = Lineage::enter(None, "planner", outer).expect("the first");
    let searcher = Lineage::enter(Some(&planner), "searcher", limits(9)).expect("the second");

    let turns = [&planner, &searcher, &searcher, &planner].map(|run| run.budget().take_turn());
    let calls = [&searcher, &planner, &searcher].map(|run| run.budget().take_call());

    assert_eq!(turns, [Ok(()), Ok(()), Ok(()), Err(Exhausted::Turns(3))]);
    assert_eq!(calls, [Ok(()), Ok(()), Err(Exhausted::Calls(2))]);
    assert_eq!(planner.budget().used(), BudgetUse { turns: 3, calls: 2, tokens: 0 });
}

#[test]
fn tokens_that_are_used_up_end_turns_and_calls() {
    let shared = Budget::new(budget(9, 9, 100));

    shared.add_tokens(99);
    assert_eq!((shared.take_turn(), shared.take_call()), (Ok(()), Ok(())));
    shared.add_tokens(u64::MAX);

    assert_eq!((shared.take_turn(), shared.take_call()), (Err(Exhausted::Tokens(100)), Err(Exhausted::Tokens(100))));
    let text = Exhausted::Tokens(100).to_string();
    assert_eq!(text, "The total budget of 100 tokens for this agent and its sub-agents is used up.");
}

#[test]
fn threads_never_take_more_than_there_is() {
    let shared = Arc::new(Budget::new(budget(100, 100, 100)));
    let takers: Vec<_> = (0..4)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || (0..100).filter(|_| shared.take_call().is_ok()).count())
        })
        .collect();

    let taken: usize = takers.into_iter().map(|taker| taker.join().expect("no panic")).sum();

    assert_eq!((taken, shared.used().calls), (100, 100));
}

#[test]
fn the_calls_of_a_session_count_for_its_tree() {
    let limits = TreeLimits { depth: 1, budget: budget(9, 1, 50) };
    let lineage = Lineage::enter(None, "finder", limits).expect("the first");
    let session = Session::new("s", SessionLimits::default()).of_agent(lineage.clone());

    assert_eq!(session.count_call(), Ok(()));
    assert_eq!(session.count_call(), Err(LimitReached::Budget(Exhausted::Calls(1))));
    assert_eq!(session.usage().calls, 1);

    session.add_tokens(50);
    assert_eq!(session.may_call("x"), Err(LimitReached::Budget(Exhausted::Tokens(50))));
    assert_eq!(lineage.budget().used(), BudgetUse { turns: 0, calls: 1, tokens: 50 });
}

#[test]
fn a_task_is_completed_by_an_output_that_fits() {
    let schema = json!({"type": "object", "properties": {"birds": {"type": "integer"}}, "required": ["birds"]});
    let completion = Completion::with_output("report", "The findings.", &schema).expect("a valid schema");

    let outcome = |value: Value| completion.check(&entries(value)).map_err(|problem| problem.to_string());

    assert_eq!(outcome(json!({"report": {"birds": 2}})), Ok(Some(json!({"birds": 2}))));
    assert_eq!(outcome(json!({"report": {"birds": "2"}, "more": 1})), Ok(Some(json!({"birds": 2}))));
    assert_eq!(outcome(json!({})), Err("Missing required argument 'report' for completion.".to_owned()));
    let invalid = outcome(json!({"report": {"birds": "two"}})).expect_err("not an integer");
    assert!(invalid.starts_with("Output validation failed: "), "{invalid}");
    assert!(invalid.contains("report.birds"), "{invalid}");
    assert_eq!(completion.parameters()["required"], json!(["report"]));
}

#[test]
fn references_in_an_output_schema_find_their_definitions() {
    let schema = json!({"$ref": "#/$defs/Bird", "$defs": {"Bird": {"type": "object", "required": ["name"]}}});

    let completion = Completion::with_output("bird", "", &schema).expect("a valid schema");

    assert!(completion.check(&entries(json!({"bird": {"name": "wren"}}))).is_ok());
    assert!(completion.check(&entries(json!({"bird": {}}))).is_err());
}

#[test]
fn a_task_without_output_is_completed_with_a_text_or_without_one() {
    let completion = Completion::without_output();

    assert_eq!(completion.check(&entries(json!({"result": "two birds"}))), Ok(Some(json!("two birds"))));
    assert_eq!(completion.check(&entries(json!({"result": "  "}))), Ok(None));
    assert_eq!(completion.check(&Map::new()), Ok(None));
    assert!(Completion::with_output("x", "", &json!({"type": "nonsense"})).is_err());
}

#[test]
fn results_are_written_as_text() {
    assert_eq!(completion_text(None), "Task completed successfully.");
    assert_eq!(completion_text(Some(&json!("two birds"))), "two birds");
    assert_eq!(completion_text(Some(&json!({"birds": 2}))), "{\n  \"birds\": 2\n}");
}

#[test]
fn an_interruption_stays_in_the_result_of_a_recovered_run() {
    let result = Some("one bird".to_owned());
    let recovered = Outcome { termination: Termination::MaxTurns, is_recovered: true, result: result.clone() };
    let complete = Outcome { termination: Termination::Goal, is_recovered: false, result };
    let stopped = Outcome { termination: Termination::Aborted, is_recovered: false, result: None };

    assert_eq!([&recovered, &complete, &stopped].map(Outcome::is_complete), [true, true, false]);
    assert_eq!(complete.wrapped("f", ""), "Subagent 'f' finished.\nTermination Reason: GOAL\nResult:\none bird");
    let text = recovered.wrapped("f", "");
    assert!(text.contains("Termination Reason: MAX_TURNS (interrupted: "), "{text}");
    assert!(stopped.wrapped("f", "stopped").ends_with("Result:\nstopped"));
}

#[test]
fn every_end_has_its_text() {
    let cases = [
        (Termination::Timeout, Some(10.0), "Agent timed out after 10 minutes."),
        (Termination::Timeout, Some(0.5), "Agent timed out after 0.5 minutes."),
        (Termination::MaxTurns, Some(30.0), "Agent reached max turns limit (30)."),
        (Termination::MaxTokens, Some(5000.0), "Agent reached max tokens limit (5000)."),
        (Termination::Aborted, None, "Agent execution was terminated before completion."),
    ];

    for (termination, limit, text) in cases {
        assert_eq!(termination.final_text(limit), text);
    }
    assert_eq!(failure_text("f", "no model"), "Subagent 'f' failed. Error: no model");
    assert_eq!(unauthorized_text("rm"), "Unauthorized tool call: 'rm' is not available to this agent.");
    assert_eq!(Reply::AgentTimeout { seconds: 600.0 }.text(), "Agent timed out after 10 minutes.");
    let recoverable = Termination::ALL.into_iter().filter(|reason| reason.is_recoverable());
    assert_eq!(
        recoverable.map(Termination::as_str).collect::<Vec<_>>(),
        ["TIMEOUT", "MAX_TURNS", "ERROR_NO_COMPLETE_TASK_CALL"]
    );
}

#[test]
fn a_run_is_described_in_a_bounded_line() {
    let inputs = entries(json!({"objective": "find birds", "depth": 2}));
    let long = entries(json!({"text": "é".repeat(1000), "more": "x".repeat(1000), "rest": vec!["y"; 1000]}));

    assert_eq!(run_description("f", &inputs), "Running subagent 'f' with inputs: { objective: find birds, depth: 2 }");
    let text = run_description("f", &long);
    assert!(text.contains(&format!("text: {}, more: x", "é".repeat(50))), "{text}");
    assert!(text.chars().count() <= 200);
}

#[test]
fn an_event_has_its_agent_and_the_path_to_it() {
    let data = entries(json!({"text": "Planning"}));

    let event = activity_event("THOUGHT_CHUNK", &["a".into(), "b".into()], &data);

    assert_eq!(event, json!({"agent": "b", "path": ["a", "b"], "type": "THOUGHT_CHUNK", "data": {"text": "Planning"}}));
    assert_eq!(Activity::ThoughtChunk.text(&data), "🤖💭 Planning");
}

#[test]
fn the_subject_of_a_thought_is_its_first_text_in_bold() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gemini_cases.json");
    let cases: Value = serde_json::from_str(&fs::read_to_string(file).expect("the cases")).expect("JSON");

    for case in cases["thought"].as_array().expect("a list") {
        let thought = Thought::parse(case["text"].as_str().expect("a text"));

        let result = json!({"subject": thought.subject, "description": thought.description()});
        assert_eq!(result, case["result"], "{case}");
    }
}
