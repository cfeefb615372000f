//! A native toolkit as an MCP server: calls by real clients, and requests that must not pass.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod calls;
mod connection;
mod http;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream;
use serde_json::{Value, json};
use toolcrib::mcp::server::{ServedToolkit, ServerIdentity};
use toolcrib::native::{LogLevel, Question};
use toolcrib::prelude::*;

/// Time after which a test has failed.
const DEADLINE: Duration = Duration::from_secs(30);

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Total {
    total: i64,
}

/// The tool `sleep`, as others see it.
#[derive(Clone, Default)]
struct Sleeper {
    started: Arc<AtomicBool>,
    cancelled: Arc<AtomicBool>,
}

impl Sleeper {
    async fn has_started(&self) {
        until(|| self.started.load(Ordering::SeqCst)).await;
    }

    async fn was_cancelled(&self) {
        until(|| self.cancelled.load(Ordering::SeqCst)).await;
    }
}

/// A call of `sleep`, which is cancelled when it is dropped.
struct Sleep(Sleeper);

impl Drop for Sleep {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
    }
}

/// A toolkit with a tool of each kind.
fn toolkit() -> (Toolkit, Sleeper) {
    let sleeper = Sleeper::default();
    let sleeping = sleeper.clone();
    let toolkit = Toolkit::new();
    toolkit.create_group("extra", "More tools.", false).unwrap();
    let add = NativeTool::new("add", "Adds two numbers.", |_: ToolContext, Sum { a, b }: Sum| async move {
        Ok(Json(Total { total: a + b }))
    });
    let count = NativeTool::streaming("count", "Counts to three.", |_: ToolContext, (): ()| {
        stream::iter(1..=3).map(|number| Ok::<_, ToolError>(format!("{number}")))
    });
    let sleep = NativeTool::new("sleep", "Never ends.", move |_: ToolContext, (): ()| {
        let sleep = Sleep(sleeping.clone());
        async move {
            sleep.0.started.store(true, Ordering::SeqCst);
            std::future::pending::<Result<String, ToolError>>().await
        }
    });
    let fail = NativeTool::new("fail", "Fails.", |_: ToolContext, (): ()| async {
        Err::<String, _>(ToolError::new("the disk is full"))
    });
    let ask = NativeTool::new("ask", "Asks the user.", |context: ToolContext, (): ()| async move {
        let question = Question::User { text: "How many?".to_owned(), schema: json!({"type": "integer"}) };
        match context.ask(question).await {
            Ok(answer) => Ok(format!("got {answer}")),
            Err(reason) => Ok(format!("no answer: {reason}")),
        }
    });
    let sample = NativeTool::new("sample", "Asks a model.", |context: ToolContext, (): ()| async move {
        let message = json!({"role": "user", "content": {"type": "text", "text": "A rhyme?"}});
        let request = json!({"messages": [message], "maxTokens": 10});
        match context.ask(Question::Model { request }).await {
            Ok(answer) => Ok(answer["content"]["text"].to_string()),
            Err(reason) => Ok(format!("no answer: {reason}")),
        }
    });
    let mutter = NativeTool::new("mutter", "Logs.", |context: ToolContext, (): ()| async move {
        for level in LogLevel::ALL {
            context.log(level, format!("at {}", level.as_str()));
        }
        Ok(context.trace.map(|trace| trace.traceparent().to_owned()).unwrap_or_default())
    });
    let hidden = NativeTool::new("hidden", "Is in a group.", |_: ToolContext, (): ()| async { Ok("seen") });
    let guarded = NativeTool::new("guarded", "Needs approval.", |_: ToolContext, (): ()| async { Ok("ran") });
    toolkit.register(add.with_kind(ToolKind::Read).with_output::<Total>()).unwrap();
    for tool in [count, sleep, fail, ask, sample, mutter, guarded.with_permission(Permission::Confirm)] {
        toolkit.register(tool).unwrap();
    }
    toolkit.register_in("extra", hidden).unwrap();
    (toolkit, sleeper)
}

fn host(toolkit: &Toolkit) -> ServedToolkit {
    let identity =
        ServerIdentity { instructions: Some("Add things.".to_owned()), ..ServerIdentity::new("sums", "1.2.3") };
    ServedToolkit::new(toolkit.clone(), identity)
}

/// Waits until a condition holds.
async fn until(mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.expect("the condition holds in time");
}

/// The request that begins a session.
fn initialize() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    })
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

use futures_util::StreamExt as _;
