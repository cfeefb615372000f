//! How large a value is, and how much work it may cause.

use std::cell::Cell;

use super::{
    problem::{Found, Problem, ValuePath},
    subject::{Kind, Subject},
};

/// How deep an argument may be.
const DEPTH: usize = 128;
/// How many values an argument may have inside.
const VALUES: usize = 5_000_000;

/// The work that is left: a multiple of the size of the value that causes it, whatever its shape.
pub(super) struct Work(Cell<usize>);

impl Work {
    pub(super) fn for_value<S: Subject>(value: &S) -> Work {
        Work(Cell::new(20_000 + 16 * size(value)))
    }

    /// Takes what it costs to look at a value so many times; no more is done once it is used up.
    pub(super) fn take<S: Subject>(&self, times: usize, value: &S) -> bool {
        let left = self.0.get().checked_sub(times * size(value));
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Whether something is left.
    pub(super) fn is_left(&self) -> bool {
        self.0.get() > 0
    }
}

/// The problem with a value that is too deep or too large to be looked at, for example because it contains itself.
pub(super) fn excess<S: Subject>(value: &S) -> Option<Problem> {
    let mut left = VALUES;
    let expected = match measure(value, DEPTH, &mut left) {
        Ok(()) => return None,
        Err(Excess::Deep) => format!("at most {DEPTH} levels of nesting"),
        Err(Excess::Many) => format!("at most {VALUES} values"),
    };
    Some(Problem { path: ValuePath::default(), expected: expected.into(), found: Found::Fixed("more") })
}

/// How many values there are inside, itself included.
fn size<S: Subject>(value: &S) -> usize {
    let mut left = VALUES;
    match measure(value, DEPTH, &mut left) {
        Ok(()) => VALUES - left,
        Err(_) => VALUES,
    }
}

enum Excess {
    Deep,
    Many,
}

/// Recursion that ends at the depth it is there to measure.
fn measure<S: Subject>(value: &S, depth: usize, left: &mut usize) -> Result<(), Excess> {
    *left = left.checked_sub(1).ok_or(Excess::Many)?;
    let kind = value.kind();
    if !matches!(kind, Kind::Array | Kind::Object) {
        return Ok(());
    }
    let depth = depth.checked_sub(1).ok_or(Excess::Deep)?;
    let mut result = Ok(());
    let mut inside = |value: &S| {
        result = measure(value, depth, left);
        result.is_ok()
    };
    if kind == Kind::Array {
        value.every_item(inside);
    } else {
        value.every_entry(|_, value| inside(value));
    }
    result
}
