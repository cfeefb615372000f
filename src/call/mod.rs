//! What happens between a model's request and the answers to it.

mod answer;
mod behaviour;

pub use answer::{Answer, Code};
pub use behaviour::{ArgumentMode, ErrorMode, RunIn};
