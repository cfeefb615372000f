//! The core as a Rust program sees it, without Python.

mod answer;
mod check;
mod docstring;
mod layers;
mod registry;
mod registry_history;
mod schema;
