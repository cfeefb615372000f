//! The arguments of a call, held to the tool's parameters as Python objects, in place.

mod form;
mod subject;

use std::sync::Arc;

use pyo3::{Borrowed, prelude::*, types::PyDict};

use crate::schema::check::{Checker, Mode, Problem};
use crate::schema::{Document, Node};
use form::PyForm;

/// What the arguments of one tool are held to, compiled once.
#[derive(Debug)]
pub(crate) struct Arguments {
    checker: Checker<PyForm>,
}

impl Arguments {
    /// Compiles the parameters of a tool, which `document` holds too. `eager` also compiles what is only needed for unusual values, to learn whether a schema that
    /// was supplied is one.
    pub(crate) fn compile(parameters: &Node, document: Arc<Document>, eager: bool) -> crate::Result<Arguments> {
        let checker = Checker::share(parameters, document);
        if eager {
            checker.prepare()?;
        }
        Ok(Arguments { checker })
    }

    /// Which of the parameters that can be checked one by one has this name. If there are any such, arguments fit as soon
    /// as every one is named, every required one is there, and [`accepts`](Arguments::accepts) holds for each.
    pub(crate) fn position(&self, parameter: &str) -> Option<usize> {
        self.checker.fields()?.iter().position(|field| *field.name == *parameter)
    }

    /// Whether the schema requires a parameter.
    pub(crate) fn requires(&self, position: usize) -> bool {
        self.checker.fields().is_some_and(|fields| fields[position].required)
    }

    /// Whether a value certainly fits the parameter at a position; if not, [`settle`](Arguments::settle) knows.
    #[inline]
    pub(crate) fn accepts(&self, position: Option<usize>, value: Borrowed<'_, '_, PyAny>) -> bool {
        match (self.checker.fields(), position) {
            (Some(fields), Some(position)) => fields[position].quick.accepts(&*value),
            _ => false,
        }
    }

    /// Decides about what a model sent: the same dict if it fits as it is, a changed copy, or all that is wrong with it. A name in
    /// `hidden` does not exist for the model.
    pub(crate) fn settle<'py>(
        &self,
        input: &Bound<'py, PyDict>,
        mode: Mode,
        hidden: &[&str],
    ) -> PyResult<Result<Bound<'py, PyDict>, Vec<Problem>>> {
        Ok(match self.checker.settle(input.as_any(), mode, hidden) {
            Ok(None) => Ok(input.clone()),
            Ok(Some(changed)) => Ok(changed.cast_into::<PyDict>()?),
            Err(problems) => Err(problems),
        })
    }
}
