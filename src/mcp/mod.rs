//! The Model Context Protocol: tools of other programs in a toolkit, and a toolkit as the server of other programs.
//!
//! Read it in this order:
//!
//! 1. `definition`: [`Definition`], a tool as a server defines it, and the digest by which a change is detected;
//! 2. [`client`]: the connection to a server, and its tools as native tools.

pub mod client;
mod definition;

pub use definition::{Definition, Digest, InvalidDefinition};
