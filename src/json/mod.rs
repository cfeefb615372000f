//! JSON itself: nothing in here knows about schemas, tools or calls.
//!
//! Read in this order:
//!
//! - `node`: the value that schemas are built in;
//! - `text`: its compact text, and documents that are kept as text;
//! - `parse`: strict parsing that reports duplicate keys;
//! - `number`: exact decimals;
//! - `canonical`: one text for each value, for signatures and hashes;
//! - `invisible`: the characters that are escaped or removed wherever untrusted text is shown.

pub(crate) mod canonical;
pub mod invisible;
pub(crate) mod node;
pub(crate) mod number;
pub(crate) mod parse;
pub(crate) mod text;

pub use canonical::{canonical, hash};
pub use node::{Entries, Node};
pub use number::exact_number;
pub use text::Document;
