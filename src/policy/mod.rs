//! Who may do what: rules that allow a call, ask somebody about it, or deny it.

mod kind;

pub use kind::{Kind, Permission};
