//! Tasks in the background: ids, texts, and the board, for any sequence of events.

use std::time::Duration;

use proptest::prelude::*;
use toolcrib::call::{Board, Limits, Notice, task_id};

const ID: &str = "8TZU7JGAeceK5MpbaUfy3Q";

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn an_id_is_what_shortuuid_makes_of_the_bits() {
    assert_eq!(task_id(0), "2222222222222222222222");
    assert_eq!(task_id(123_456_789), "22222222222222222DheQb");
    assert_eq!(task_id(u128::MAX), "oZEq7ovRbLq6UnGMPwc8B5");
}

#[test]
fn a_notice_has_a_fixed_text_and_a_code_if_it_is_a_refusal() {
    let table = [
        (
            Notice::Started { tool: "look".to_owned() },
            None,
            "<system-reminder>Tool 'look' is executing asynchronously. Task ID: 8TZU7JGAeceK5MpbaUfy3Q. \
             Use view_task('8TZU7JGAeceK5MpbaUfy3Q') to check status, \
             wait_task('8TZU7JGAeceK5MpbaUfy3Q') to wait for completion, \
             or cancel_task('8TZU7JGAeceK5MpbaUfy3Q') to cancel the task.</system-reminder>",
        ),
        (Notice::Running, Some("task_running"), "Task 8TZU7JGAeceK5MpbaUfy3Q is still running."),
        (
            Notice::StillRunning { seconds: "0.5".to_owned() },
            Some("task_running"),
            "Task 8TZU7JGAeceK5MpbaUfy3Q is still running after waiting for 0.5 seconds.",
        ),
        (Notice::Cancelled, None, "Task 8TZU7JGAeceK5MpbaUfy3Q has been cancelled."),
        (Notice::CancelledMeanwhile, Some("interrupted"), "Task 8TZU7JGAeceK5MpbaUfy3Q has been cancelled."),
        (
            Notice::Completed,
            Some("task_finished"),
            "Task 8TZU7JGAeceK5MpbaUfy3Q has already completed and cannot be cancelled.",
        ),
        (
            Notice::LoopClosed,
            Some("failed"),
            "Error during async execution: the event loop was closed before the tool had finished.",
        ),
        (
            Notice::Unknown,
            Some("unknown_task"),
            "InvalidTaskIdError: Cannot find async task with ID 8TZU7JGAeceK5MpbaUfy3Q.",
        ),
    ];

    for (notice, code, text) in table {
        assert_eq!((notice.code().map(toolcrib::call::Code::as_str), notice.text(ID).as_str()), (code, text));
    }
}

#[test]
fn a_result_is_fetched_once() {
    let mut board = Board::default();
    board.start("a", 1);

    assert_eq!(board.fetch("a"), Err(Notice::Running));
    assert_eq!(board.finish("a", "done", seconds(0)), (Some(1), vec![]));
    assert_eq!(board.cancel("a"), Err(Notice::Completed));
    assert_eq!(board.fetch("a"), Ok("done"));
    assert_eq!(board.fetch("a"), Err(Notice::Unknown));
}

#[test]
fn a_cancelled_task_leaves_without_a_result() {
    let mut board = Board::default();
    board.start("a", 1);

    assert_eq!(board.cancel("a"), Ok(&1));
    assert_eq!(board.cancel("a"), Err(Notice::Unknown));
    assert_eq!(board.leaving().collect::<Vec<_>>(), [("a", &1)]);
    assert_eq!(board.finish("a", "late", seconds(0)), (Some(1), vec!["late"]));
    assert_eq!(board.leaving().count(), 0);
    assert_eq!(board.fetch("a"), Err(Notice::Unknown));
}

#[test]
fn the_result_of_a_cancelled_task_can_be_kept() {
    let mut board = Board::default();
    board.keep_cancelled();
    board.start("a", 1);

    assert_eq!(board.cancel("a"), Ok(&1));
    assert_eq!(board.fetch("a"), Err(Notice::Unknown));
    assert_eq!(board.finish("a", "late", seconds(0)), (Some(1), vec![]));
    assert_eq!(board.fetch("a"), Ok("late"));
    assert_eq!(board.finish("a", "again", seconds(0)), (None, vec!["again"]));
    assert_eq!(board.fetch("a"), Err(Notice::Unknown));
}

#[test]
fn the_oldest_results_make_room() {
    let mut board = Board::default();
    let _ = board.limit(Limits { count: 2, age: seconds(10) }, seconds(0));
    for id in ["a", "b", "c"] {
        board.start(id, ());
    }

    let dropped: Vec<&str> = ["a", "b", "c"].iter().flat_map(|id| board.finish(id, *id, seconds(0)).1).collect();

    assert_eq!(dropped, ["a"]);
    assert_eq!(board.finished().map(|(id, _)| id).collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn a_result_goes_when_it_is_older_than_the_limit() {
    let mut board = Board::default();
    let _ = board.limit(Limits { count: 2, age: seconds(10) }, seconds(0));
    board.start("a", ());
    board.finish("a", "done", seconds(5));

    assert_eq!(board.sweep(seconds(15)), Vec::<&str>::new());
    assert_eq!(board.sweep(seconds(16)), ["done"]);
    assert_eq!(board.fetch("a"), Err(Notice::Unknown));
}

#[derive(Debug, Clone)]
enum Event {
    Start,
    Finish(usize),
    Fetch(usize),
    Cancel(usize),
    Forget(usize),
    Limit(usize, u64),
    Tick(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Start),
        4 => any::<usize>().prop_map(Event::Finish),
        2 => any::<usize>().prop_map(Event::Fetch),
        1 => any::<usize>().prop_map(Event::Cancel),
        1 => any::<usize>().prop_map(Event::Forget),
        1 => (0..6_usize, 0..20_u64).prop_map(|(count, age)| Event::Limit(count, age)),
        2 => (0..9_u64).prop_map(Event::Tick),
    ]
}

/// What a simple model remembers of a task.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Was {
    Running,
    Leaving,
    Finished(Duration),
    Gone,
}

proptest! {
    #[test]
    fn for_any_history_the_bounds_hold_and_no_answer_is_anothers(events in prop::collection::vec(event(), 0..120)) {
        let mut board: Board<usize, usize> = Board::default();
        let mut limits = Limits::default();
        let mut now = seconds(0);
        let mut tasks: Vec<Was> = Vec::new();
        let id = |task: usize| task_id(task as u128);

        for event in events {
            let pick = |index: usize| if tasks.is_empty() { None } else { Some(index % tasks.len()) };
            let mut dropped = Vec::new();
            match event {
                Event::Start => {
                    board.start(&id(tasks.len()), tasks.len());
                    tasks.push(Was::Running);
                }
                Event::Finish(index) => if let Some(task) = pick(index) {
                    let (found, left) = board.finish(&id(task), task, now);
                    prop_assert_eq!(found, matches!(tasks[task], Was::Running | Was::Leaving).then_some(task));
                    match tasks[task] {
                        Was::Running => (tasks[task], dropped) = (Was::Finished(now), left),
                        Was::Leaving => tasks[task] = Was::Gone,
                        Was::Finished(_) | Was::Gone => prop_assert_eq!(left, [task]),
                    }
                },
                Event::Fetch(index) => if let Some(task) = pick(index) {
                    let expected = match tasks[task] {
                        Was::Running => Err(Notice::Running),
                        Was::Finished(_) => Ok(task),
                        Was::Leaving | Was::Gone => Err(Notice::Unknown),
                    };
                    prop_assert_eq!(board.fetch(&id(task)), expected);
                    if matches!(tasks[task], Was::Finished(_)) {
                        tasks[task] = Was::Gone;
                    }
                },
                Event::Cancel(index) => if let Some(task) = pick(index) {
                    let expected = match tasks[task] {
                        Was::Running => Ok(&task),
                        Was::Finished(_) => Err(Notice::Completed),
                        Was::Leaving | Was::Gone => Err(Notice::Unknown),
                    };
                    prop_assert_eq!(board.cancel(&id(task)), expected);
                    if tasks[task] == Was::Running {
                        tasks[task] = Was::Leaving;
                    }
                },
                Event::Forget(index) => if let Some(task) = pick(index) {
                    let is_there = matches!(tasks[task], Was::Running | Was::Leaving);
                    prop_assert_eq!(board.forget(&id(task)), is_there.then_some(task));
                    if is_there {
                        tasks[task] = Was::Gone;
                    }
                },
                Event::Limit(count, age) => {
                    limits = Limits { count, age: seconds(age) };
                    dropped = board.limit(limits, now);
                }
                Event::Tick(by) => {
                    now += seconds(by);
                    dropped = board.sweep(now);
                }
            }
            for task in dropped {
                prop_assert!(matches!(tasks[task], Was::Finished(_)));
                tasks[task] = Was::Gone;
            }

            prop_assert!(board.finished().count() <= limits.count);
            for (task, was) in tasks.iter().enumerate() {
                let name = id(task);
                let is_finished = board.finished().any(|(other, result)| other == name && *result == task);
                prop_assert_eq!(board.task(&name).copied(), (*was == Was::Running).then_some(task));
                prop_assert_eq!(board.leaving().any(|(other, _)| other == name), *was == Was::Leaving);
                prop_assert_eq!(is_finished, matches!(was, Was::Finished(_)));
                if let Was::Finished(then) = was {
                    prop_assert!(now <= *then + limits.age);
                }
            }
        }
    }
}
