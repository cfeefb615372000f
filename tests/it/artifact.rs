//! Artifacts: versioned texts.

#![allow(clippy::unwrap_used)]

mod matching;
mod tools;
