//! One run of a native tool: results, errors, panics, and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use serde::Serialize;
use serde_json::{Value, json};
use toolcrib::call::{Code, ToolResponse};
use toolcrib::native::{Failure, Json, NativeTool, ToolContext, ToolError};

use super::Count;

type Item = Result<ToolResponse, Failure>;

async fn all(tool: &NativeTool, arguments: Value) -> Vec<Item> {
    tool.run(ToolContext::of(tool.name()), arguments).collect().await
}

fn texts(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| item.as_ref().map_or_else(|failure| format!("{failure:?}"), ToolResponse::text)).collect()
}

#[derive(Serialize)]
struct Weather {
    degrees: i32,
}

#[tokio::test]
async fn text_stays_text_and_a_value_is_kept_beside_its_text() {
    let text = NativeTool::new("text", "", |_: ToolContext, _: Value| async move { Ok("plain") });
    let value =
        NativeTool::new("value", "", |_: ToolContext, _: Value| async move { Ok(Json(Weather { degrees: 21 })) });
    let nothing = NativeTool::new("nothing", "", |_: ToolContext, (): ()| async move { Ok(()) });

    assert_eq!(texts(&all(&text, json!({})).await), ["plain"]);
    let responses = all(&value, json!({})).await;
    assert_eq!(texts(&responses), [r#"{"degrees":21}"#]);
    assert_eq!(responses[0].as_ref().unwrap().metadata, Some(json!({"value": {"degrees": 21}})));
    assert_eq!(texts(&all(&nothing, json!({})).await), ["null"]);
}

#[tokio::test]
async fn a_stream_gives_one_response_for_each_item() {
    let tool = NativeTool::streaming("count", "", |_: ToolContext, count: Count| {
        stream::iter((1..=count.to).map(|number| Ok(number.to_string())))
    });

    assert_eq!(texts(&all(&tool, json!({"to": 3})).await), ["1", "2", "3"]);
    assert!(all(&tool, json!({"to": 0})).await.is_empty());
}

#[tokio::test]
async fn an_error_is_a_failure_with_its_sources_and_ends_the_run() {
    #[derive(Debug, thiserror::Error)]
    #[error("cannot count")]
    struct Outer(#[source] std::num::ParseIntError);

    let returned = NativeTool::new("returned", "", |_: ToolContext, _: Value| async move {
        "x".parse::<u8>().map_err(Outer)?;
        Ok("not reached")
    });
    let streamed = NativeTool::streaming("streamed", "", |_: ToolContext, _: Value| {
        stream::iter([Ok("one"), Err(ToolError::new("broken")), Ok("not reached")])
    });

    let failure = Failure::Returned(ToolError::new("cannot count: invalid digit found in string"));
    assert_eq!(all(&returned, json!({})).await, [Err(failure.clone())]);
    assert_eq!(
        (failure.reply("returned").code(), failure.reply("returned").text()),
        (Code::Failed, "Error: cannot count: invalid digit found in string".to_owned())
    );
    let items = all(&streamed, json!({})).await;
    assert_eq!(items.len(), 2);
    assert_eq!(items[1], Err(Failure::Returned(ToolError::new("broken"))));
}

#[tokio::test]
async fn a_panic_is_a_failure_wherever_it_happens() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }
    let at_once = NativeTool::new("at_once", "", |_: ToolContext, count: Count| {
        assert!(count.to > 100, "at once");
        async move { Ok("not reached") }
    });
    let later = NativeTool::new("later", "", |_: ToolContext, count: Count| async move {
        tokio::task::yield_now().await;
        assert!(count.to > 100, "later {}", count.to);
        Ok("not reached")
    });
    let streamed = NativeTool::streaming("streamed", "", |_: ToolContext, count: Count| {
        stream::iter(0..count.to).map(|number| if number == 1 { panic!("second") } else { Ok(number.to_string()) })
    });
    let dropped = NativeTool::streaming("dropped", "", |_: ToolContext, _: Count| {
        let bomb = Bomb;
        stream::iter([Ok("fine")]).inspect(move |_| {
            let _ = &bomb;
        })
    });

    for (tool, expected) in [
        (&at_once, vec![r#"Panicked("at once")"#]),
        (&later, vec![r#"Panicked("later 3")"#]),
        (&streamed, vec!["0", r#"Panicked("second")"#]),
        (&dropped, vec!["fine", r#"Panicked("in a destructor")"#]),
    ] {
        assert_eq!(texts(&all(tool, json!({"to": 3})).await), expected, "{}", tool.name());
    }
    let reply = Failure::Panicked("at once".to_owned()).reply("at_once");
    assert_eq!((reply.code(), reply.text().as_str()), (Code::Failed, "Error: the tool failed internally: at once"));
}

#[tokio::test]
async fn arguments_that_only_the_schema_takes_are_refused() {
    let ran = Arc::new(AtomicBool::new(false));
    let tool = {
        let ran = ran.clone();
        NativeTool::new("count", "", move |_: ToolContext, count: Count| {
            ran.store(true, Ordering::SeqCst);
            async move { Ok(count.to.to_string()) }
        })
    };

    let items = all(&tool, json!({"to": 5_000_000_000_u64})).await;

    let [Err(failure @ Failure::Arguments(_))] = &items[..] else { panic!("{items:?}") };
    assert_eq!(failure.reply("count").code(), Code::InvalidArguments);
    assert!(failure.reply("count").text().starts_with("Error: Invalid arguments for tool 'count': "));
    assert!(!ran.load(Ordering::SeqCst));
}

#[tokio::test]
async fn dropping_a_run_drops_the_tool_and_cancels_its_token() {
    struct Ends(Arc<AtomicUsize>);
    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let ended = Arc::new(AtomicUsize::new(0));
    let tool = {
        let ended = ended.clone();
        NativeTool::new("sleep", "", move |_: ToolContext, _: Value| {
            let ends = Ends(ended.clone());
            async move {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                drop(ends);
                Ok("slept")
            }
        })
    };
    let context = ToolContext::of("sleep");
    let token = context.cancellation.clone();

    let mut run = tool.run(context, json!({}));
    assert!(run.next().now_or_never().is_none());
    assert_eq!((ended.load(Ordering::SeqCst), token.is_cancelled()), (0, false));
    drop(run);

    assert_eq!((ended.load(Ordering::SeqCst), token.is_cancelled()), (1, true));
}
