//! The native driver: the path of a call in a program without Python.

#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};
use toolcrib::Error;
use toolcrib::call::{ApprovalRequest, ChunkMode, ChunkRule, Code, EventKind, Kinds, ToolCall, ToolResponse};
use toolcrib::native::{NativeTool, ToolContext, ToolError, ToolStream, Toolkit, tools};
use toolcrib::policy::{Answer, AuditRecord, Choice, Decision, Pending, Permission, Policy};
use toolcrib::provider;
use toolcrib::registry::{Filter, Session, SessionLimits};

use super::Count;

/// A tool that counts how often it ran.
fn count(ran: &Arc<AtomicUsize>) -> NativeTool {
    let ran = ran.clone();
    NativeTool::streaming("count", "Counts.", move |_: ToolContext, count: Count| {
        ran.fetch_add(1, Ordering::SeqCst);
        stream::iter((1..=count.to).map(|number| Ok(number.to_string())))
    })
}

fn call(name: &str, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    ToolCall { id: Some("call-1".to_owned()), ..ToolCall::new(name, arguments) }
}

async fn all(stream: ToolStream) -> Vec<ToolResponse> {
    stream.collect().await
}

/// The text of each response, and the code of the last.
async fn read(stream: ToolStream) -> (Vec<String>, Option<Code>) {
    let responses = all(stream).await;
    (responses.iter().map(ToolResponse::text).collect(), responses.last().and_then(|response| response.code))
}

/// A toolkit with `count`, and how often that ran.
fn counting(permission: Permission) -> (Toolkit, Arc<AtomicUsize>) {
    let (toolkit, ran) = (Toolkit::new(), Arc::default());
    toolkit.register(count(&ran).with_permission(permission)).unwrap();
    (toolkit, ran)
}

#[tokio::test]
async fn a_call_streams_its_responses() {
    let (toolkit, ran) = counting(Permission::Auto);

    assert_eq!(
        read(toolkit.call(call("count", json!({"to": 3})))).await,
        (vec!["1".into(), "2".into(), "3".into(), "123".into()], None)
    );
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_last_response_is_the_whole_result_and_only_it_is_last() {
    let (toolkit, _) = counting(Permission::Auto);

    let responses = all(toolkit.call(call("count", json!({"to": 2})))).await;

    let marks: Vec<_> = responses.iter().map(|response| (response.mode, response.stream, response.is_last)).collect();
    let chunk = (ChunkMode::Addition, true, false);
    assert_eq!(marks, [chunk, chunk, (ChunkMode::Result, true, true)]);
}

#[tokio::test]
async fn items_replace_the_result_if_the_tool_says_so() {
    let toolkit = Toolkit::new();
    toolkit.register(count(&Arc::default()).with_chunks(ChunkRule::Replace)).unwrap();

    assert_eq!(
        read(toolkit.call(call("count", json!({"to": 2})))).await.0,
        ["1".to_owned(), "2".to_owned(), "2".to_owned()]
    );
}

#[tokio::test]
async fn a_response_says_itself_what_it_is() {
    let toolkit = Toolkit::new();
    let tool = NativeTool::streaming("mixed", "", |_: ToolContext, _: Value| {
        let of = |mode, text: &str| Ok::<_, ToolError>(ToolResponse { mode, ..ToolResponse::from(text) });
        stream::iter([
            of(ChunkMode::Result, "draft"),
            of(ChunkMode::Progress, "50 %"),
            of(ChunkMode::Result, "a"),
            of(ChunkMode::Addition, "b"),
        ])
    });
    toolkit.register(tool).unwrap();

    let responses = all(toolkit.call(call("mixed", json!({})))).await;

    assert_eq!(responses.last().map(ToolResponse::text), Some("ab".to_owned()));
}

#[tokio::test]
async fn a_result_that_ends_its_stream_is_delivered_once() {
    let toolkit = Toolkit::new();
    for (name, reports) in [("silent", 0), ("reporting", 1)] {
        let tool = NativeTool::streaming(name, "", move |_: ToolContext, _: Value| {
            let report = Ok(ToolResponse { mode: ChunkMode::Progress, ..ToolResponse::from("50 %") });
            let result = Ok::<_, ToolError>(ToolResponse::from("result").ending_stream());
            stream::iter(vec![report; reports].into_iter().chain([result])).chain(stream::pending())
        });
        toolkit.register(tool).unwrap();
    }

    let silent = all(toolkit.call(call("silent", json!({})))).await;
    let reporting = all(toolkit.call(call("reporting", json!({})))).await;

    let marks = |response: &ToolResponse| (response.text(), response.mode, response.stream, response.is_last);
    assert_eq!(silent.iter().map(marks).collect::<Vec<_>>(), [("result".into(), ChunkMode::Result, false, true)]);
    assert_eq!(
        reporting.iter().map(marks).collect::<Vec<_>>(),
        [("50 %".into(), ChunkMode::Progress, true, false), ("result".into(), ChunkMode::Result, true, true)]
    );
}

#[tokio::test]
async fn an_interrupted_stream_repeats_its_result_so_far() {
    let toolkit = Toolkit::new();
    let tool = NativeTool::streaming("slow", "", |_: ToolContext, _: Value| {
        stream::iter(["a", "b"]).map(Ok::<_, ToolError>).chain(stream::pending())
    });
    toolkit.register(tool).unwrap();
    let mut stream = toolkit.call(call("slow", json!({})));
    stream.next().await.unwrap();
    stream.next().await.unwrap();

    stream.cancellation().cancel();
    let responses = all(stream).await;

    assert_eq!(responses.len(), 1);
    assert!(responses[0].text().starts_with("ab\n<system-info>"), "{}", responses[0].text());
    assert!(responses[0].is_last && responses[0].stream);
}

#[tokio::test]
async fn a_stream_without_responses_gives_an_empty_one() {
    let (toolkit, _) = counting(Permission::Auto);

    assert_eq!(all(toolkit.call(call("count", json!({"to": 0})))).await, [ToolResponse::default()]);
}

#[tokio::test]
async fn nothing_runs_before_the_stream_is_polled() {
    let (toolkit, ran) = counting(Permission::Auto);

    drop(toolkit.call(call("count", json!({"to": 3}))));

    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_its_response() {
    let (toolkit, ran) = counting(Permission::Auto);
    toolkit.create_group("off", "Switched off.", false).unwrap();
    toolkit.register_in("off", NativeTool::new("hidden", "", |_: ToolContext, _: Value| async { Ok("") })).unwrap();
    let unreadable =
        provider::read(&json!({"type": "tool_use", "id": "1", "name": "count", "input": 3}), None).unwrap();

    for (request, code) in [
        (call("nothing", json!({})), Code::UnknownTool),
        (call("hidden", json!({})), Code::InactiveGroup),
        (call("count", json!({})), Code::InvalidArguments),
        (call("count", json!({"to": -1})), Code::InvalidArguments),
        (call("count", json!({"to": 1, "from": 2})), Code::InvalidArguments),
        (call("count", json!({"to": 5_000_000_000_u64})), Code::InvalidArguments),
        (unreadable, Code::BadCall),
    ] {
        let (texts, found) = read(toolkit.call(request)).await;
        assert_eq!((texts.len(), found), (1, Some(code)), "{texts:?}");
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn arguments_are_coerced_and_repaired_and_the_response_says_so() {
    let (toolkit, _) = counting(Permission::Auto);
    let request = json!({"type": "function", "function": {"name": "count", "arguments": "{'to': \"2\",}"}});

    let responses = all(toolkit.call(provider::read(&request, None).unwrap())).await;

    assert_eq!(responses.iter().map(ToolResponse::text).collect::<Vec<_>>(), ["1", "2", "12"]);
    let repairs = responses[0].metadata.as_ref().unwrap()["repairs"].as_array().unwrap();
    assert!(repairs.iter().any(|repair| repair["what"] == "coerced" && repair["at"] == "to"), "{repairs:?}");
    assert_eq!(responses[1].metadata, None);
}

#[tokio::test]
async fn errors_and_panics_are_responses() {
    let toolkit = Toolkit::new();
    let failing = NativeTool::streaming("failing", "", |_: ToolContext, _: Value| {
        stream::iter([Ok("one"), Err(ToolError::new("broken"))])
    });
    let panicking = NativeTool::new("panicking", "", |_: ToolContext, arguments: Value| async move {
        assert!(arguments.is_null(), "oh no");
        Ok(())
    });
    toolkit.register(failing).unwrap();
    toolkit.register(panicking).unwrap();

    let failed = read(toolkit.call(call("failing", json!({})))).await;
    let panicked = read(toolkit.call(call("panicking", json!({})))).await;

    assert_eq!(failed, (vec!["one".into(), "Error: broken".into()], Some(Code::Failed)));
    assert_eq!(panicked, (vec!["Error: the tool failed internally: oh no".into()], Some(Code::Failed)));
}

#[tokio::test]
async fn an_approver_is_asked_and_its_answer_counts() {
    for (choice, code, runs) in
        [(Choice::Once, None, 1), (Choice::No, Some(Code::Denied), 0), (Choice::Cancel, Some(Code::Cancelled), 0)]
    {
        let (toolkit, ran) = counting(Permission::Confirm);
        let asked: Arc<Mutex<Vec<ApprovalRequest>>> = Arc::default();
        let toolkit = {
            let asked = asked.clone();
            toolkit.with_approver(move |request| {
                asked.lock().unwrap().push(request);
                async move { choice }
            })
        };

        let (_, found) = read(toolkit.call(call("count", json!({"to": "2"})))).await;

        assert_eq!((found, ran.load(Ordering::SeqCst)), (code, runs), "{choice:?}");
        let asked = asked.lock().unwrap();
        assert_eq!((asked.len(), &*asked[0].tool, &asked[0].arguments), (1, "count", &json!({"to": 2})));
        assert_eq!(asked[0].call_id, "call-1");
    }
}

#[tokio::test]
async fn an_approval_for_the_run_is_asked_for_once() {
    let (toolkit, ran) = counting(Permission::Confirm);
    let questions = Arc::new(AtomicUsize::new(0));
    let toolkit = {
        let questions = questions.clone();
        toolkit.with_approver(move |_| {
            questions.fetch_add(1, Ordering::SeqCst);
            async { Choice::Run }
        })
    };

    for _ in 0..3 {
        assert_eq!(read(toolkit.call(call("count", json!({"to": 1})))).await.1, None);
    }

    assert_eq!((questions.load(Ordering::SeqCst), ran.load(Ordering::SeqCst)), (1, 3));
}

#[tokio::test]
async fn an_approver_may_change_the_arguments_which_are_checked_again() {
    let edited = |to: Value| Answer { edited: json!({"to": to}).as_object().cloned(), ..Choice::Once.into() };
    for (answer, texts, code) in [(edited(json!(1)), 2, None), (edited(json!("many")), 1, Some(Code::Denied))] {
        let (toolkit, _) = counting(Permission::Confirm);
        let toolkit = toolkit.with_approver(move |_| {
            let answer = answer.clone();
            async move { answer }
        });

        let (said, found) = read(toolkit.call(call("count", json!({"to": 3})))).await;

        assert_eq!((said.len(), found), (texts, code), "{said:?}");
    }
}

#[tokio::test]
async fn an_approver_that_panics_has_said_no() {
    for at_once in [true, false] {
        let (toolkit, ran) = counting(Permission::Confirm);
        let toolkit = toolkit.with_approver(move |_| {
            assert!(!at_once, "at once");
            async move {
                assert!(at_once, "later");
                Choice::Once
            }
        });

        assert_eq!(read(toolkit.call(call("count", json!({"to": 1})))).await.1, Some(Code::Denied));
        assert_eq!(ran.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn a_tool_that_was_replaced_while_its_approver_was_asked_does_not_run() {
    let (toolkit, ran) = counting(Permission::Confirm);
    let other = Arc::new(AtomicUsize::new(0));
    let toolkit = {
        let (kit, other) = (toolkit.clone(), other.clone());
        toolkit.with_approver(move |_| {
            kit.remove("count");
            kit.register(count(&other)).unwrap();
            async { Choice::Once }
        })
    };

    let (_, code) = read(toolkit.call(call("count", json!({"to": 1})))).await;

    assert_eq!(code, Some(Code::Denied));
    assert_eq!((ran.load(Ordering::SeqCst), other.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test]
async fn cancelling_one_question_cancels_all_that_wait() {
    let (toolkit, ran) = counting(Permission::Confirm);
    let toolkit = toolkit.with_approver(|request: ApprovalRequest| async move {
        if request.arguments["to"] == 1 {
            return Choice::Cancel;
        }
        std::future::pending().await
    });
    let mut waiting = toolkit.call(call("count", json!({"to": 2})));
    assert!(waiting.next().now_or_never().is_none());

    let (_, first) = read(toolkit.call(call("count", json!({"to": 1})))).await;
    let (_, second) = read(waiting).await;

    assert_eq!((first, second), (Some(Code::Cancelled), Some(Code::Cancelled)));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

fn in_session(toolkit: &Toolkit, id: &str, limits: SessionLimits) -> (Toolkit, Arc<Session>) {
    let session = Arc::new(Session::new(id, limits));
    (toolkit.session(session.clone(), None), session)
}

#[tokio::test]
async fn a_session_limits_its_calls_and_no_others() {
    let (toolkit, ran) = counting(Permission::Auto);
    let limits = SessionLimits { calls: Some(2), ..SessionLimits::default() };
    let (limited, session) = in_session(&toolkit, "s1", limits);

    let mut codes = Vec::new();
    for kit in [&limited, &limited, &limited, &toolkit] {
        codes.push(read(kit.call(call("count", json!({"to": 1})))).await.1);
    }

    assert_eq!(codes, [None, None, Some(Code::LimitExceeded), None]);
    assert_eq!((ran.load(Ordering::SeqCst), session.usage().calls), (3, 2));
}

#[tokio::test]
async fn a_tool_that_fails_too_often_in_a_session_says_so() {
    let toolkit = Toolkit::new();
    let fail = |_: ToolContext, _: Count| async { Err::<String, _>(ToolError::new("no")) };
    toolkit.register(NativeTool::new("fail", "Fails.", fail)).unwrap();
    let limits = SessionLimits { retries: Some(0), ..SessionLimits::default() };
    let (limited, _) = in_session(&toolkit, "s1", limits);

    let first = read(limited.call(call("fail", json!({"to": 1})))).await;
    let second = read(limited.call(call("fail", json!({"to": 1})))).await;

    assert_eq!((first.1, second.1), (Some(Code::Failed), Some(Code::LimitExceeded)));
    assert!(first.0[0].contains("failed once and may not be called again"), "{first:?}");
}

#[tokio::test]
async fn an_answer_for_the_run_or_to_cancel_all_is_for_its_session() {
    let (toolkit, ran) = counting(Permission::Confirm);
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let toolkit = toolkit.with_approver(move |request: ApprovalRequest| {
        seen.lock().unwrap().push(request.session.as_deref().map(str::to_owned));
        async move { if request.arguments["to"] == 9 { Choice::Cancel } else { Choice::Run } }
    });
    let (ann, _) = in_session(&toolkit, "ann", SessionLimits::default());
    let (bob, session) = in_session(&toolkit, "bob", SessionLimits::default());

    for kit in [&ann, &ann, &bob] {
        assert_eq!(read(kit.call(call("count", json!({"to": 1})))).await.1, None);
    }
    session.end_run();
    assert_eq!(read(bob.call(call("count", json!({"to": 9})))).await.1, Some(Code::Cancelled));

    assert_eq!(*asked.lock().unwrap(), ["ann", "bob", "bob"].map(|id| Some(id.to_owned())));
    assert_eq!(ran.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_pending_call_is_resumed_in_its_session_only() {
    let (toolkit, ran) = counting(Permission::Confirm);
    let (ann, _) = in_session(&toolkit, "ann", SessionLimits::default());
    let response = all(ann.call(call("count", json!({"to": 1})))).await.remove(0);
    let pending = Pending::from_value(&response.metadata.unwrap()["pending"]).unwrap();

    let (texts, code) = read(toolkit.resume(pending.clone(), Choice::Once)).await;
    let (again, _) = in_session(&toolkit, "ann", SessionLimits::default());
    let resumed = read(again.resume(pending, Choice::Once)).await;

    assert_eq!(code, Some(Code::Denied));
    assert!(texts[0].contains("belongs to session `ann`"), "{texts:?}");
    assert_eq!((resumed.1, ran.load(Ordering::SeqCst)), (None, 1));
}

#[tokio::test]
async fn without_an_approver_a_call_is_pending_and_can_be_resumed_once() {
    let (toolkit, ran) = counting(Permission::Confirm);

    let pending = all(toolkit.call(call("count", json!({"to": 2})))).await.remove(0);
    assert_eq!((pending.code, ran.load(Ordering::SeqCst)), (Some(Code::Pending), 0));
    let pending = Pending::from_value(&pending.metadata.unwrap()["pending"]).unwrap();
    let resumed = read(toolkit.resume(pending.clone(), Choice::Once)).await;
    let again = read(toolkit.resume(pending.clone(), Choice::Once)).await;
    let altered = Pending { arguments: json!({"to": 3}), ..pending };
    let forged = read(toolkit.resume(altered, Choice::Once)).await;

    assert_eq!(resumed, (vec!["1".into(), "2".into(), "12".into()], None));
    assert_eq!((again.1, forged.1), (Some(Code::Denied), Some(Code::Denied)));
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_policy_decides_before_the_tool_runs() {
    let (toolkit, ran) = counting(Permission::Auto);
    let toolkit = toolkit.with_policy(Policy::new(Vec::new(), Decision::Deny).unwrap());

    assert_eq!(read(toolkit.call(call("count", json!({"to": 2})))).await.1, Some(Code::Denied));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn decisions_are_recorded_and_what_cannot_be_recorded_does_not_run() {
    let recorded: Arc<Mutex<Vec<String>>> = Arc::default();
    let (toolkit, ran) = counting(Permission::Auto);
    let toolkit = {
        let recorded = recorded.clone();
        toolkit.with_audit(move |record: &AuditRecord<'_>| {
            recorded.lock().unwrap().push(record.tool.to_owned());
            if recorded.lock().unwrap().len() > 1 {
                return Err(Error::MissingFile { path: "audit".to_owned() });
            }
            Ok(())
        })
    };

    let first = read(toolkit.call(call("count", json!({"to": 1})))).await;
    let second = read(toolkit.call(call("count", json!({"to": 1})))).await;

    assert_eq!((first.1, second.1), (None, Some(Code::Denied)));
    assert_eq!(*recorded.lock().unwrap(), ["count", "count"]);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_view_lists_and_calls_only_what_it_sees() {
    let (toolkit, _) = counting(Permission::Auto);
    toolkit.create_group("time", "Time.", true).unwrap();
    toolkit.register_in("time", tools::wait()).unwrap();
    let names = |toolkit: &Toolkit| -> Vec<String> {
        toolkit.schemas().iter().map(|schema| schema["function"]["name"].as_str().unwrap().to_owned()).collect()
    };

    let view = toolkit.view(Some("ann"), Filter::of_groups(["time"]));

    assert_eq!((names(&toolkit), names(&view)), (vec!["count".into(), "wait".into()], vec!["wait".into()]));
    assert_eq!(read(view.call(call("count", json!({"to": 1})))).await.1, Some(Code::ToolNotAvailable));
    assert_eq!(read(view.call(call("wait", json!({"seconds": 0})))).await.1, None);
    toolkit.set_active("time", false).unwrap();
    assert!(names(&view).is_empty());
}

#[tokio::test]
async fn names_are_unique_and_groups_are_known() {
    let (toolkit, ran) = counting(Permission::Auto);

    assert_eq!(toolkit.register(count(&ran)), Err(Error::DuplicateTool { name: "count".to_owned() }));
    assert_eq!(toolkit.register_in("x", count(&ran)), Err(Error::UnknownGroup { name: "x".to_owned() }));
    assert_eq!(toolkit.set_active("x", true), Err(Error::UnknownGroup { name: "x".to_owned() }));
    assert!(toolkit.remove("count").is_some() && toolkit.remove("count").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_too_long_is_ended() {
    let toolkit = Toolkit::new();
    toolkit.register(tools::wait().with_timeout(Duration::from_millis(2500))).unwrap();

    let (texts, code) = read(toolkit.call(call("wait", json!({"seconds": 60, "every": 1})))).await;

    assert_eq!(code, Some(Code::Timeout));
    assert_eq!(texts[..2], ["Waited 1 of 60 seconds.", "Waited 2 of 60 seconds."]);
    assert_eq!(texts[2], "Error: The tool 'wait' did not finish within 2.5 seconds.");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_says_so_and_ends_its_tool() {
    let seen: Arc<Mutex<Option<ToolContext>>> = Arc::default();
    let toolkit = Toolkit::new();
    let tool = {
        let seen = seen.clone();
        NativeTool::new("sleep", "", move |context: ToolContext, _: Value| {
            *seen.lock().unwrap() = Some(context);
            async {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Ok("slept")
            }
        })
    };
    toolkit.register(tool).unwrap();
    let mut stream = toolkit.call(call("sleep", json!({})));
    assert!(stream.next().now_or_never().is_none());

    stream.cancellation().cancel();
    let responses = all(stream).await;

    assert_eq!((responses.len(), responses[0].is_interrupted, responses[0].code), (1, true, Some(Code::Interrupted)));
    let context = seen.lock().unwrap().take().unwrap();
    assert!(context.cancellation.is_cancelled());
    assert_eq!((&*context.tool, context.call_id.as_deref()), ("sleep", Some("call-1")));
}

#[tokio::test]
async fn a_tool_that_never_waits_is_cancelled_too() {
    let toolkit = Toolkit::new();
    let flood =
        NativeTool::streaming("flood", "", |_: ToolContext, _: Value| stream::repeat("more").map(Ok::<_, ToolError>));
    toolkit.register(flood).unwrap();

    let mut stream = toolkit.call(call("flood", json!({})));
    stream.next().await.unwrap();
    stream.cancellation().cancel();

    assert_eq!(read(stream).await.1, Some(Code::Interrupted));
}

#[tokio::test]
async fn a_call_that_waits_for_approval_is_cancelled_without_running() {
    let (toolkit, ran) = counting(Permission::Confirm);
    let toolkit = toolkit.with_approver(|_| std::future::pending::<Choice>());
    let mut stream = toolkit.call(call("count", json!({"to": 1})));
    assert!(stream.next().now_or_never().is_none());

    stream.cancellation().cancel();

    assert_eq!(read(stream).await.1, Some(Code::Interrupted));
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn listeners_receive_the_events_of_a_call_from_its_start_to_its_end() {
    let (toolkit, _) = counting(Permission::Auto);
    let listener = toolkit.events().listen(Kinds::ALL, 100, None);

    read(toolkit.call(call("count", json!({"to": 2})))).await;

    let mut received = Vec::new();
    while let Some(event) = listener.take() {
        received.push((event.kind, event.call.to_string()));
    }
    let kinds: Vec<EventKind> = received.iter().map(|(kind, _)| *kind).collect();
    let chunks = [EventKind::Chunk; 3];
    assert_eq!(kinds, [&[EventKind::CallStart], &chunks[..], &[EventKind::CallEnd]].concat());
    assert!(received.iter().all(|(_, call)| call == "call-1"));
}

#[tokio::test]
async fn calls_run_side_by_side_on_any_thread() {
    let (toolkit, ran) = counting(Permission::Auto);
    let calls = (0..200).map(|number| {
        let stream = toolkit.call(call("count", json!({"to": number % 5})));
        tokio::spawn(async move { read(stream).await.0.len() })
    });

    for (number, call) in calls.enumerate() {
        assert_eq!(call.await.unwrap(), number % 5 + 1);
    }
    assert_eq!(ran.load(Ordering::SeqCst), 200);
}

#[tokio::test]
async fn a_quarantined_tool_runs_again_once_it_is_accepted() {
    let (toolkit, ran) = counting(Permission::Auto);
    toolkit.quarantine("count", "it has changed").unwrap();

    let refused = read(toolkit.call(call("count", json!({"to": 1})))).await;
    let (schemas, quarantined) = (toolkit.schemas(), toolkit.quarantined());
    toolkit.accept("count").unwrap();
    let accepted = read(toolkit.call(call("count", json!({"to": 1})))).await;

    assert_eq!(refused.0, ["Error: The tool 'count' is quarantined and did not run: it has changed"]);
    assert_eq!(refused.1, Some(Code::Denied));
    assert_eq!((schemas.len(), quarantined), (0, vec![("count".to_owned(), "it has changed".to_owned())]));
    assert_eq!(accepted.1, None);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}
