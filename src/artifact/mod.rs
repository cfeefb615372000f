//! Artifacts: versioned texts that agents write together.
//!
//! Read in this order: `matching` (the place of a quotation in a text), with `fold` (look-alike letters) and `approximate`
//! (edit distance).

mod approximate;
mod fold;
mod matching;

pub use matching::{Match, MatchType, Mismatch, find};
