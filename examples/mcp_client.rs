//! A client of any MCP server: connects, lists the tools, and calls one.
//!
//!     cargo run --example mcp_client -- TARGET [TOOL [ARGUMENTS]]
//!
//! TARGET is a command line or a URL, ARGUMENTS a JSON object:
//!
//!     cargo run --example mcp_client -- "npx -y @modelcontextprotocol/server-everything" echo '{"message": "hello"}'
//!     cargo run --example mcp_client -- http://127.0.0.1:8000/mcp
//!
//! The tool is called as an agent would: through a toolkit, with a policy and a user who answers the questions of the server.

use std::error::Error;
use std::io::{self, Write};

use futures_util::StreamExt;
use serde_json::Value;
use toolcrib::mcp::client::{CallOptions, Client, ClientOptions, Target};
use toolcrib::native::{Asker, Question, Unanswered};
use toolcrib::prelude::{ChunkMode, ToolCall, ToolResponse, Toolkit};

/// Asks the person at the terminal. An empty line declines.
async fn ask(question: Question) -> Result<Value, Unanswered> {
    let Question::User { text, schema } = question else { return Err(Unanswered::NotSupported) };
    println!("? {text}\n  answer with JSON for {schema}");
    print!("> ");
    let mut line = String::new();
    let read = io::stdout().flush().and_then(|()| io::stdin().read_line(&mut line));
    match read {
        Ok(_) if line.trim().is_empty() => Err(Unanswered::Declined),
        Ok(_) => serde_json::from_str(&line).map_err(|error| Unanswered::Failed(error.to_string())),
        Err(error) => Err(Unanswered::Failed(error.to_string())),
    }
}

/// Connects to a server, lists its tools, and calls one. Returns the last response.
pub(crate) async fn run(
    target: &str,
    tool: Option<&str>,
    arguments: &str,
) -> Result<Option<ToolResponse>, Box<dyn Error>> {
    let client = Client::new("server", Target::parse(target)?, ClientOptions::default())?;
    let server = client.connect().await?;
    println!("{} {} speaks {}", server.name, server.version, server.protocol_version);

    let toolkit = Toolkit::new().with_asker(Asker::new(ask));
    let listed = client.list_tools().await?;
    for definition in &listed.tools {
        let title = definition.description.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
        println!("- {}: {title}", definition.name);
        toolkit.register(client.tool(&definition.name, definition.clone(), CallOptions::default()))?;
    }
    for problem in &listed.problems {
        println!("- skipped {:?}: {}", problem.tool, problem.reason);
    }

    let mut last = None;
    if let Some(tool) = tool {
        let Value::Object(arguments) = serde_json::from_str(arguments)? else {
            return Err("ARGUMENTS must be an object".into());
        };
        let mut responses = toolkit.call(ToolCall::new(tool, arguments));
        while let Some(response) = responses.next().await {
            let sign = if response.mode == ChunkMode::Progress { "…" } else { "=" };
            println!("{sign} {}", response.text());
            last = Some(response);
        }
    }
    client.close().await?;
    Ok(last)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (target, tool, arguments) = match words[..] {
        [target] => (target, None, "{}"),
        [target, tool] => (target, Some(tool), "{}"),
        [target, tool, arguments] => (target, Some(tool), arguments),
        _ => return Err("usage: mcp_client TARGET [TOOL [ARGUMENTS]]".into()),
    };
    run(target, tool, arguments).await.map(drop)
}
