//! The arguments of a call on their way into a Python function: [`plan`] is made at registration and used at each call,
//! [`accept`] decides whether arguments fit and builds objects from them,
//! [`spread`] is its general form for functions whose parameters do not map one to one to what the model sends,
//! [`value`] checks Python objects against the tool's schema.

mod accept;
mod plan;
mod spread;
mod value;

pub(super) use plan::{ArgumentNotes, BoundArguments, Unbound};
pub(crate) use plan::{Handling, Plan};
