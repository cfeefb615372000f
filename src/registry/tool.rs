//! One thing a model can call.

use std::sync::Arc;

use super::Group;
use crate::schema::FunctionSchema;

/// A tool as the registry keeps it.
#[derive(Debug)]
pub struct Tool<B> {
    /// The name a model calls it by, unique in its toolkit.
    pub name: Box<str>,
    /// The group it belongs to.
    pub group: Arc<Group>,
    /// What the model is told.
    pub schema: Arc<FunctionSchema>,
    /// What runs when it is called.
    pub body: B,
}
