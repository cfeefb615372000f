//! Whether a call may go to a tool: what is seen is what may be called.

use std::sync::Arc;

use super::{Group, Registry, Tool, View};

/// Why a call may not go to a tool.
#[derive(Debug, Clone)]
pub enum Denial {
    /// No tool has the name.
    Unknown,
    /// Its groups are switched off; this is one of them.
    Inactive(Arc<Group>),
    /// The view does not show it, or there is no such tool: who looks through a view is not told which.
    OutOfView,
}

impl<B> Registry<B> {
    /// Finds the tool of a call and sees whether it may be called, at all or through a view.
    ///
    /// # Errors
    ///
    /// The reason why not.
    #[inline]
    pub fn admit(&self, name: &str, view: Option<&View>) -> Result<&Tool<B>, Denial> {
        match (self.find(name), view) {
            (Some(tool), None) if tool.is_on() => Ok(tool),
            (Some(tool), None) => Err(Denial::Inactive(tool.group.clone())),
            (None, None) => Err(Denial::Unknown),
            (Some(tool), Some(view)) => view.admit(tool).map(|()| tool),
            (None, Some(_)) => Err(Denial::OutOfView),
        }
    }
}
