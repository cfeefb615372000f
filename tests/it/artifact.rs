//! Artifacts: versioned texts.

mod matching;
mod tools;
