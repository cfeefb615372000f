//! A toolkit as an MCP server: its tools for the clients of other programs, over stdio and streamable HTTP.
//!
//! Read it in this order:
//!
//! 1. `host`: [`ToolHost`] and [`ClientTools`], the tools behind a server, and the [`ServedCall`] that they receive;
//! 2. `toolkit`: [`ServedToolkit`], the host for a native toolkit;
//! 3. `handler`: the methods of the protocol, one handler for each client;
//! 4. `call`: one `tools/call`, from its first response to its result, with progress and cancellation;
//! 5. `question`: questions of tools as elicitation and sampling, in both forms that the protocol has had; `log`: their log
//!    messages as notifications;
//! 6. `listing`: the tools in the form of the protocol, cached until they change;
//! 7. `requests`: the open requests of a client, their limits and their end with it;
//! 8. `stdio`: [`StdioServer`], one client on standard input and output; `frames` has the frames and their errors;
//! 9. `http`: [`HttpServer`], many clients over HTTP; `guard` has the checks before a request is read, `connections`, `sessions` and
//!    `body` the limits of each and the end of those that are idle.
//!
//! ```no_run
//! use tokio_util::sync::CancellationToken;
//! use toolcrib::mcp::server::{ServedToolkit, ServerIdentity, StdioServer};
//! use toolcrib::prelude::*;
//!
//! # async fn serve() -> std::io::Result<()> {
//! let toolkit = Toolkit::new();
//! let host = ServedToolkit::new(toolkit, ServerIdentity::new("weather", "1.0.0"));
//! StdioServer::open()?.serve(host, CancellationToken::new()).await
//! # }
//! ```

mod body;
mod call;
mod connections;
mod frames;
mod guard;
mod handler;
mod host;
mod http;
mod listing;
mod log;
mod question;
mod requests;
mod sessions;
mod stdio;
mod toolkit;

pub use host::{Client, ClientAbilities, ClientTools, ServedCall, ServerIdentity, ToolHost};
pub use http::{HttpOptions, HttpServer};
pub use stdio::{StdioServer, serve_connection};
pub use toolkit::ServedToolkit;
