//! The MCP client against scripted servers (`tests/data/mcp/scripted_server.py`), which behave well and badly.

#![allow(clippy::unwrap_used)]

mod calls;
mod example;
mod heavy;
mod http;
mod life;
mod lists;
mod misbehaviour;
mod questions;
mod unreadable;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use toolcrib::call::{ChunkMode, ToolResponse};
use toolcrib::mcp::Definition;
use toolcrib::mcp::client::{CallOptions, Client, ClientOptions, CommandTarget, HttpTarget, Target};
use toolcrib::native::{NativeTool, ToolContext};

pub(crate) const VERSIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

fn python() -> String {
    std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn script() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp/scripted_server.py");
    path.to_str().unwrap().to_owned()
}

/// The target of a scripted server: a mode, and further arguments.
pub(crate) fn target(arguments: &[&str]) -> CommandTarget {
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    CommandTarget { args: [script()].into_iter().chain(arguments).collect(), ..CommandTarget::new(python()) }
}

pub(crate) fn client_with(target: impl Into<AnyTarget>, options: ClientOptions) -> Client {
    Client::new("scripted", target.into().0, options).unwrap()
}

pub(crate) struct AnyTarget(Target);

impl From<CommandTarget> for AnyTarget {
    fn from(target: CommandTarget) -> Self {
        Self(Target::Command(target))
    }
}

impl From<HttpTarget> for AnyTarget {
    fn from(target: HttpTarget) -> Self {
        Self(Target::Http(target))
    }
}

/// Options with a deadline for calls that a test waits for.
pub(crate) fn options(call_timeout: Duration) -> ClientOptions {
    ClientOptions { call_timeout, ..ClientOptions::default() }
}

/// A client that is connected to a scripted server over standard input and output.
pub(crate) async fn connected(arguments: &[&str]) -> Client {
    let client = client_with(target(arguments), options(Duration::from_secs(30)));
    client.connect().await.unwrap();
    client
}

pub(crate) fn arguments(value: Value) -> Map<String, Value> {
    let Value::Object(arguments) = value else { panic!("{value}") };
    arguments
}

/// All responses of a call.
pub(crate) async fn responses(client: &Client, tool: &str, value: Value) -> Vec<ToolResponse> {
    let call = client.call(tool, ToolContext::of(tool), arguments(value), CallOptions::default());
    call.map(Result::unwrap).collect().await
}

/// The last response of a call.
pub(crate) async fn call(client: &Client, tool: &str, value: Value) -> ToolResponse {
    responses(client, tool, value).await.pop().unwrap()
}

/// The last response of a native tool.
pub(crate) async fn run(tool: &NativeTool, value: Value) -> ToolResponse {
    let responses: Vec<_> = tool.run(ToolContext::of(tool.name()), value).map(Result::unwrap).collect().await;
    responses.into_iter().last().unwrap()
}

pub(crate) async fn definition(client: &Client, tool: &str) -> Arc<Definition> {
    client.list_tools().await.unwrap();
    client.known(tool).unwrap()
}

/// The structured content of a response.
pub(crate) fn structured(response: &ToolResponse) -> &Value {
    &response.metadata.as_ref().unwrap()["structured_content"]
}

/// True if a process exists and is not a zombie.
pub(crate) fn is_running(pid: i64) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    status.is_ok_and(|status| !status.rsplit(") ").next().unwrap_or_default().starts_with('Z'))
}

/// Waits until a condition holds, for at most 20 seconds.
pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..2000 {
        if condition() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Held by tests that measure memory or need much of it.
static MEMORY: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Runs a test that measures memory in a process of its own, because the others run beside it in this one. None here, where it has
/// passed then.
pub(crate) async fn alone() -> Option<tokio::sync::MutexGuard<'static, ()>> {
    const ALONE: &str = "TOOLCRIB_TEST_ALONE";
    let guard = MEMORY.lock().await;
    if std::env::var_os(ALONE).is_some() {
        return Some(guard);
    }
    let thread = std::thread::current();
    let name = thread.name().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args([name, "--exact", "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    None
}

/// Resident memory of this process, in bytes.
pub(crate) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    status.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// A scripted server that speaks streamable HTTP, ended when it is dropped.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) port: u16,
}

impl HttpServer {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(python());
        command.arg(script()).args(arguments).stdout(Stdio::piped()).stderr(Stdio::null());
        if !arguments.contains(&"--http") {
            command.args(["--http", "0"]);
        }
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().rsplit(' ').next().unwrap().parse().unwrap();
        Self { child, port }
    }

    pub(crate) fn target(&self) -> HttpTarget {
        HttpTarget::new(format!("http://127.0.0.1:{}/mcp", self.port))
    }

    pub(crate) async fn client(&self) -> Client {
        let client = client_with(self.target(), options(Duration::from_secs(30)));
        client.connect().await.unwrap();
        client
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_server_is_greeted_in_its_version() {
    for version in VERSIONS {
        let client = connected(&["well", "--protocol", version]).await;

        let info = client.server_info().unwrap();
        let sum = call(&client, "add", json!({"a": 2, "b": 40})).await;

        assert_eq!((info.name.as_str(), info.protocol_version.as_str()), ("scripted", version));
        assert_eq!(info.title.as_deref(), Some("Scripted server"), "{version}");
        assert_eq!(info.instructions.as_deref(), Some("Follow the script."));
        assert_eq!((sum.text().as_str(), structured(&sum)), ("42", &json!({"sum": 42})), "{version}");
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn progress_comes_before_the_result_and_in_order() {
    for version in VERSIONS {
        let client = connected(&["well", "--protocol", version]).await;

        let all = responses(&client, "progress", json!({"n": 50})).await;

        assert_eq!(all.len(), 51, "{version}");
        let (last, reports) = all.split_last().unwrap();
        for (at, report) in reports.iter().enumerate() {
            assert!(report.mode == ChunkMode::Progress && report.stream && !report.is_last);
            let progress = &report.metadata.as_ref().unwrap()["progress"];
            assert_eq!((&progress["done"], &progress["total"]), (&json!(at + 1), &json!(50)));
        }
        assert_eq!((reports[0].text().as_str(), reports[1].text().as_str()), ("begun", "2 of 50"));
        assert_eq!((last.text().as_str(), last.mode), ("50 done", ChunkMode::Result));
    }
}
