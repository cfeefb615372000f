//! Registration: from a Python callable and its options to a tool.
//!
//! - `options` parses the options of a registration, and refuses or warns of those that are probably not meant;
//! - `callable` reads the callable: partials, signature, kind of result, a description of its own;
//! - `draft` puts all together, derives the schema and makes the [`PyTool`](super::tool::PyTool);
//! - `extension` rebuilds a tool with the fields of a pydantic model;
//! - `meta` keeps the schema of the tool that switches groups up to date.

mod callable;
mod draft;
mod extension;
mod meta;
mod options;

pub(crate) use callable::{
    CallKind, Callable, OwnSchema, Parameter, ParameterKind, SelfDescribing, Signature, kind_of,
};
pub(crate) use draft::{ToolDraft, no_presets, parse_namesake, random_suffix};
pub(crate) use extension::{Extension, ModelUse, check_model};
pub(crate) use meta::{META_TOOL, MetaTool, with_switches};
pub(crate) use options::{Behaviour, Confirmation, GivenOptions, ToolOptions, ToolTraits};
