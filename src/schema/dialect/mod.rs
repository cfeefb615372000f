//! What a provider accepts of JSON Schema, and the way back: how the arguments of a tool are told in its dialect, and how what a
//! model sends in that dialect becomes what the tool expects.
//!
//! Two families. A *light* dialect takes JSON Schema nearly as it is (`light`). A *narrow* one has no word for much of it, so
//! that maps, tuples, unions and what may be left out are encoded in what it has (`encoder`). Both give a [`Codec`], by which
//! arguments come back to their original shape.

mod array;
pub mod codec;
mod definition;
mod encoder;
mod form;
mod light;
mod listed;
mod measure;
mod merge;
mod names;
mod piece;
mod record;
mod rules;
mod scalar;
mod standalone;
mod union;
mod walk;
mod words;

use serde_json::Value;

pub use codec::Codec;
pub(crate) use encoder::encode;
pub(crate) use light::{Light, encode as encode_light};
pub(crate) use names::{in_full, renamed, safe};
pub(crate) use rules::Rules;
pub(crate) use words::joined;

/// The parameters of a tool in a dialect.
#[derive(Debug)]
pub struct Encoded {
    /// What the model is shown.
    pub schema: Value,
    /// How arguments come back.
    pub codec: Codec,
    /// What the dialect has no word for.
    pub report: Vec<Loss>,
}

/// Something that a schema says and the provider cannot hold a model to. Arguments are checked against the original schema all the
/// same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Where, for example `items[].price`; empty for the arguments as a whole.
    pub path: String,
    /// What is lost: a keyword, or a word such as `recursion`.
    pub what: String,
    /// How the model is told of it instead.
    pub instead: String,
}
