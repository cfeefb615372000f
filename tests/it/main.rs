//! The core as a Rust program sees it, without Python.

mod answer;
mod approval;
mod audit;
mod background;
mod check;
mod dialect;
mod docstring;
mod event;
mod extend;
mod layers;
mod membership;
mod meta;
mod policy;
mod properties;
mod registry;
mod registry_history;
mod repair;
mod roles;
mod roster;
mod schema;
mod skill;
mod state;
mod store;
mod trace;
mod view;
mod wire;
