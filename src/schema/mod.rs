//! Tool schemas: built from types and docstrings, used to check arguments, and encoded for model providers.
//!
//! Read in this order:
//!
//! - `types`: the types of parameters and their limits;
//! - `build`, with `emit` (one type) and `definitions` (named types): the JSON Schema of a tool's parameters;
//! - `function`: the schema of a whole tool; `extend`: its extension by the fields of a model;
//! - `normalize`: the order of keys, equality and titles;
//! - `view`: the keywords of a JSON Schema that several readers need; `shape`: the parts that it declares;
//! - [`docstring`]: descriptions from Python docstrings;
//! - [`check`]: validation and coercion of arguments;
//! - [`dialect`]: the subsets of JSON Schema that providers accept.

pub(crate) mod build;
pub mod check;
pub(crate) mod definitions;
pub mod dialect;
pub mod docstring;
mod emit;
pub mod extend;
mod function;
pub(crate) mod normalize;
pub(crate) mod shape;
mod types;
pub(crate) mod view;

pub use build::{Definition, Definitions, Parameter, build};
pub use extend::extend;
pub use function::{FunctionSchema, check_name};
pub use normalize::remove_titles;
pub use types::{ArrayKind, ExtraFields, Field, Limit, Presence, RecordType, Refusal, StdlibType, StringFormat, Type};

pub use crate::json::{Document, Entries, Node};
