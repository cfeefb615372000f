//! Artifacts: versioned texts.

mod matching;
