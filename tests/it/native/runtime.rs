//! The runtime for hosts without tokio.

#![allow(clippy::expect_used)]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use toolcrib::native::{Delivery, NativeTool, Runtime, ShutDown, Task, ToolContext};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Runs a tool, whose results come out of a channel.
fn spawn(runtime: &Runtime, tool: &NativeTool, ahead: usize) -> Result<(Task, mpsc::Receiver<Delivery>), ShutDown> {
    let (sender, receiver) = mpsc::channel();
    let deliver = move |delivery| drop(sender.send(delivery));
    Ok((runtime.spawn(tool.run(ToolContext::of(tool.name()), json!({})), ahead, deliver)?, receiver))
}

/// The text of the next response; none at the end.
fn next(deliveries: &mpsc::Receiver<Delivery>) -> Option<String> {
    match deliveries.recv_timeout(LONG).expect("a delivery") {
        Delivery::Item(item, _) => Some(item.expect("a response").text()),
        Delivery::End => None,
    }
}

/// Sends a message when it is dropped.
struct Ends(mpsc::Sender<()>);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

/// A tool that never ends, a receiver for its start, and one for the drop of its future.
fn endless() -> (NativeTool, mpsc::Receiver<()>, mpsc::Receiver<()>) {
    let (begins, began) = mpsc::channel();
    let (ends, ended) = mpsc::channel();
    let tool = NativeTool::new("endless", "", move |_: ToolContext, _: Value| {
        let (begins, ends) = (begins.clone(), Ends(ends.clone()));
        async move {
            let _ = begins.send(());
            tokio::time::sleep(Duration::from_secs(3600)).await;
            drop(ends);
            Ok("over")
        }
    });
    (tool, began, ended)
}

#[test]
fn a_tool_that_starts_quickly_may_have_its_result_in_the_thread_of_its_host() {
    let runtime = Runtime::start().unwrap();
    let tool = NativeTool::new("here", "", |_: ToolContext, _: Value| async move {
        Ok(std::thread::current().name().unwrap_or_default().to_owned())
    })
    .with_quick_start();
    assert!(tool.starts_quickly());
    let mut run = tool.run(ToolContext::of("here"), json!({}));

    let Poll::Ready(Some(item)) = runtime.poll_here(&mut run).expect("a runtime") else { panic!("not ready") };

    assert_eq!(item.expect("a response").text(), std::thread::current().name().unwrap_or_default());
}

#[test]
fn a_tool_that_was_polled_here_goes_on_in_the_runtime() {
    let runtime = Runtime::start().unwrap();
    let tool = NativeTool::new("late", "", |_: ToolContext, _: Value| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok("late")
    });
    let mut run = tool.run(ToolContext::of("late"), json!({}));
    assert!(runtime.poll_here(&mut run).expect("a runtime").is_pending());

    let (sender, deliveries) = mpsc::channel();
    let _task = runtime.spawn(run, 1, move |delivery| drop(sender.send(delivery))).expect("a runtime");

    assert_eq!(next(&deliveries).as_deref(), Some("late"));
}

#[test]
fn nothing_is_polled_after_the_shutdown() {
    let runtime = Runtime::start().unwrap();
    let (tool, began, _) = endless();
    let mut run = tool.run(ToolContext::of("endless"), json!({}));
    runtime.shut_down(LONG);

    let refused = runtime.poll_here(&mut run);

    assert_eq!(refused.err(), Some(ShutDown));
    assert!(began.try_recv().is_err());
}

#[test]
fn a_tool_runs_in_threads_of_the_runtime() {
    let runtime = Runtime::start().unwrap();
    let tool = NativeTool::new("late", "", |_: ToolContext, _: Value| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(std::thread::current().name().unwrap_or_default().to_owned())
    });

    let (_task, deliveries) = spawn(&runtime, &tool, 4).unwrap();

    assert_eq!(next(&deliveries).as_deref(), Some("toolcrib-native"));
    assert_eq!(next(&deliveries), None);
}

#[test]
fn a_runtime_of_one_thread_runs_all_tools_in_it() {
    let runtime = Runtime::start_single().unwrap();
    let tool = NativeTool::new("late", "", |_: ToolContext, _: Value| async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(format!("{:?}", std::thread::current().id()))
    });

    let running: Vec<_> = (0..8).map(|_| spawn(&runtime, &tool, 4).unwrap()).collect();

    let threads: HashSet<_> = running.iter().map(|(_, deliveries)| next(deliveries)).collect();
    assert_eq!(threads.len(), 1);
}

#[test]
fn a_producer_waits_for_its_reader() {
    const AHEAD: usize = 4;
    let runtime = Runtime::start().unwrap();
    let made = Arc::new(AtomicUsize::new(0));
    let tool = {
        let made = made.clone();
        NativeTool::streaming("flood", "", move |_: ToolContext, _: Value| {
            let made = made.clone();
            stream::iter(0..1000).map(move |number| {
                made.fetch_add(1, Ordering::SeqCst);
                Ok(number.to_string())
            })
        })
    };

    let (_task, deliveries) = spawn(&runtime, &tool, AHEAD).unwrap();

    for read in 1..=1000 {
        assert_eq!(next(&deliveries), Some((read - 1).to_string()));
        // What is in the queue, and one that waits for room in it.
        assert!(made.load(Ordering::SeqCst) <= read + AHEAD + 1, "{} after {read}", made.load(Ordering::SeqCst));
    }
    assert_eq!(next(&deliveries), None);
}

#[test]
fn dropping_the_task_ends_the_tool() {
    let runtime = Runtime::start().unwrap();
    let (tool, began, ended) = endless();
    let (task, deliveries) = spawn(&runtime, &tool, 4).unwrap();
    began.recv_timeout(LONG).expect("the tool runs");

    drop(task);

    ended.recv_timeout(LONG).expect("the tool's future is dropped");
    assert!(deliveries.recv_timeout(LONG).is_err(), "nothing is delivered, not even an end");
}

#[test]
fn an_aborted_tool_is_dropped_before_its_deliveries_end() {
    let runtime = Runtime::start().unwrap();
    let (tool, began, ended) = endless();
    let (task, deliveries) = spawn(&runtime, &tool, 4).unwrap();
    began.recv_timeout(LONG).expect("the tool runs");

    task.abort();
    while deliveries.recv_timeout(LONG).is_ok() {}

    ended.try_recv().expect("the tool's future is dropped");
}

#[test]
fn shutting_down_ends_every_tool_and_refuses_new_ones() {
    let runtime = Runtime::start().unwrap();
    let (tool, began, ended) = endless();
    let (_task, deliveries) = spawn(&runtime, &tool, 4).unwrap();
    began.recv_timeout(LONG).expect("the tool runs");

    runtime.shut_down(LONG);

    ended.try_recv().expect("the tool's future is dropped before the runtime is down");
    assert!(deliveries.recv().is_err(), "nothing is delivered, not even an end");
    assert_eq!(spawn(&runtime, &tool, 4).err(), Some(ShutDown));
}

#[test]
fn a_tool_that_blocks_its_thread_does_not_hold_up_the_shutdown() {
    let runtime = Runtime::start().unwrap();
    let (begins, began) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(std::sync::Mutex::new(released));
    let tool = NativeTool::new("blocking", "", move |_: ToolContext, _: Value| {
        let (begins, released) = (begins.clone(), released.clone());
        async move {
            let _ = begins.send(());
            let _ = released.lock().map(|released| released.recv());
            Ok("over")
        }
    });
    let (_task, _deliveries) = spawn(&runtime, &tool, 4).unwrap();
    began.recv_timeout(LONG).expect("the tool runs");

    runtime.shut_down(Duration::from_millis(1));

    drop(release);
}
