//! An MCP server with native tools, on standard input and output.
//!
//! ```text
//! cargo build --example mcp_server
//! npx @modelcontextprotocol/inspector target/debug/examples/mcp_server
//! ```

use std::io;
use std::time::Duration;

use futures_util::stream;
use tokio_util::sync::CancellationToken;
use toolcrib::mcp::server::{ServedToolkit, ServerIdentity, StdioServer};
use toolcrib::prelude::*;

/// The parameters of `launch`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Launch {
    /// The number to count down from.
    from: u32,
}

/// The result of `moon`.
#[derive(serde::Serialize, schemars::JsonSchema)]
struct Moon {
    /// The part of the moon that is lit, from 0 to 1.
    lit: f64,
}

/// A tool with a structured result.
fn moon() -> NativeTool {
    NativeTool::new("moon", "Looks at the moon.", |_: ToolContext, (): ()| async { Ok(Json(Moon { lit: 0.25 })) })
        .with_kind(ToolKind::Read)
        .with_output::<Moon>()
}

/// A tool that reports its progress.
fn launch() -> NativeTool {
    NativeTool::streaming("launch", "Counts down.", |_: ToolContext, launch: Launch| {
        stream::unfold(Some(launch.from), |left| async move {
            let left = left?;
            tokio::time::sleep(Duration::from_millis(100)).await;
            let text = if left == 0 { "lift-off".to_owned() } else { format!("{left} ") };
            Some((Ok::<_, ToolError>(text), left.checked_sub(1)))
        })
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let toolkit = Toolkit::new();
    for tool in [moon(), launch()] {
        toolkit.register(tool).map_err(io::Error::other)?;
    }
    let host = ServedToolkit::new(toolkit, ServerIdentity::new("space", "1.0.0"));
    StdioServer::open()?.serve(host, CancellationToken::new()).await
}
