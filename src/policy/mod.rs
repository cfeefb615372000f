//! Who may do what: rules that allow a call, ask somebody about it, or deny it.

mod canonical;
mod decimal;
mod kind;

pub use canonical::{canonical, hash};
pub use kind::{Kind, Permission};
