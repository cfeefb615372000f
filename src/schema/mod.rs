//! What the model is told about a tool, and what its arguments are held to.

pub mod build;
pub mod check;
pub mod defs;
pub mod dialect;
pub mod docstring;
pub mod extend;
mod function;
pub mod limit;
mod node;
pub mod order;
pub(crate) mod strict;
pub mod title;
pub mod tree;
pub mod types;
mod write;

pub use build::{Built, Definition, Definitions, build};
pub use extend::extend;
pub use function::FunctionSchema;
pub use limit::Limit;
pub use title::remove_titles;
pub use tree::{Document, Entries, Node};
pub use types::{ArrayKind, Field, Format, Others, Presence, Record, Refusal, Type};
