//! The Model Context Protocol: tools of other programs in a toolkit, and a toolkit as the server of other programs.
//!
//! Read it in this order:
//!
//! 1. `definition`: [`Definition`], a tool as a server defines it, and the digest by which a change is detected;
//! 2. [`server`]: a toolkit as a server.

mod definition;
pub mod server;

pub use definition::{Definition, Digest, InvalidDefinition};
