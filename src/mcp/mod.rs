//! The Model Context Protocol: tools of other programs in a toolkit, and a toolkit as the server of other programs.
//!
//! Read it in this order:
//!
//! 1. `definition`: [`Definition`], a tool as a server defines it, and the digest by which a change is detected;
//! 2. `names`: [`provider_name`], the name under which a tool of a server is registered, and [`is_look_alike`];
//! 3. `trust`: [`flags`], warnings about a definition for its reviewer; [`OtherNames`]: the names that it may imitate or mention;
//! 4. [`lock`]: the file of reviewed definitions, and what changed since the review;
//! 5. `outline`: the weight and the parts of a message before it is parsed, for both sides;
//! 6. [`client`]: the connection to a server, and its tools as native tools;
//! 7. [`server`]: a toolkit as a server.

pub mod client;
mod definition;
pub mod lock;
mod names;
mod other_names;
mod outline;
pub mod server;
mod trust;

pub use definition::{Definition, Digest, InvalidDefinition};
pub use names::{is_look_alike, provider_name};
pub use other_names::OtherNames;
pub use trust::{Flag, FlagKind, flags};
