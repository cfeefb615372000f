//! The core as a Rust program sees it, without Python.

mod agent;
mod agent_run;
mod approval;
mod artifact;
mod audit;
mod background;
mod budget;
mod call_table;
mod check;
mod dialect;
mod docstring;
mod event;
mod extend;
#[cfg(unix)]
mod files;
mod invisible;
mod layers;
mod mcp_client;
mod mcp_lock;
mod mcp_server;
mod membership;
mod meta;
mod native;
mod permission;
mod policy;
#[cfg(target_os = "linux")]
mod process;
mod properties;
mod registry;
mod registry_history;
mod repair;
mod reply;
mod roles;
mod roster;
mod schema;
mod session;
mod skill;
mod state;
mod store;
mod tell;
mod tell_read;
mod text;
mod tool_result;
mod trace;
mod view;
mod wire;
