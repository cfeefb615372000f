//! The worker's side of a job: makes the call, iterates the generator, hands over what comes of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::{ffi, intern};

use super::guard::{self, Sent};
use super::job::{Call, Inner, Outcome, Reader};
use super::pool::Work;

impl Work for Inner {
    fn run(self: Arc<Self>, py: Python<'_>) {
        let Some(call) = self.state.with(py, |state| state.call.take()) else {
            return;
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| self.produce(py, call)))
            .unwrap_or_else(|panic| Outcome::Panicked(message(&*panic)));
        if self.shared.is_current() {
            self.finish(py, outcome);
        }
    }

    fn give_up(&self, py: Python<'_>) {
        self.abandon(py);
    }
}

impl Inner {
    /// Does the call, and all of a generator's steps.
    fn produce(&self, py: Python<'_>, call: Call) -> Outcome {
        let Call { callable, args, kwargs, context } = call;
        let inside = match context.enter(py) {
            Ok(inside) => inside,
            Err(error) => return Outcome::Raised(error.into_value(py).into_any()),
        };
        let result = guard::call(py, &callable, &args, kwargs.as_ref());
        guard::release(py, callable);
        guard::release(py, args);
        if let Some(kwargs) = kwargs {
            guard::release(py, kwargs);
        }
        let outcome = match result {
            Err(exception) => Outcome::Raised(exception),
            // SAFETY: a live object.
            Ok(value) if unsafe { ffi::PyGen_Check(value.as_ptr()) } != 0 => {
                let outcome = self.iterate(py, &value);
                guard::release(py, value);
                outcome
            }
            Ok(value) => Outcome::Value(value),
        };
        drop(inside);
        guard::release(py, context.into_object());
        outcome
    }

    fn iterate(&self, py: Python<'_>, generator: &Py<PyAny>) -> Outcome {
        loop {
            if self.state.with(py, |state| state.reader == Reader::Gone) {
                match guard::call_method(py, generator, intern!(py, "close"), None) {
                    Ok(nothing) => guard::release(py, nothing),
                    Err(exception) => guard::report(py, exception, generator),
                }
                return Outcome::Ended;
            }
            match guard::send(py, generator) {
                Sent::Yielded(chunk) => self.offer(py, chunk),
                Sent::Returned => return Outcome::Ended,
                Sent::Raised(exception) => return Outcome::Raised(exception),
            }
        }
    }

    /// Puts a chunk into the buffer, and waits for room if that filled it.
    fn offer(&self, py: Python<'_>, chunk: Py<PyAny>) {
        let mut chunk = Some(chunk);
        let (waiter, is_full) = self.state.with(py, |state| {
            if state.reader == Reader::Gone {
                return (None, false);
            }
            state.chunks.extend(chunk.take());
            state.parked = state.chunks.len() >= self.limit;
            (state.waiter.take(), state.parked)
        });
        if let Some(unwanted) = chunk {
            guard::release(py, unwanted);
        }
        if let Some(waiter) = waiter {
            self.port.post(py, waiter);
        }
        if is_full {
            py.detach(|| self.wait_for_room());
        }
    }

    /// Waits until half of the buffer is free, so that the producer is not woken for every single chunk.
    fn wait_for_room(&self) {
        self.shared.pool.hold(self.shared, true);
        self.room.wait();
        self.shared.pool.hold(self.shared, false);
    }

    fn finish(&self, py: Python<'_>, outcome: Outcome) {
        let mut outcome = Some(outcome);
        let (waiter, on_abandon) = self.state.with(py, |state| {
            if state.reader != Reader::Gone {
                state.outcome = outcome.take();
            }
            (state.waiter.take(), state.on_abandon.take())
        });
        if let Some(waiter) = waiter {
            self.port.post(py, waiter);
        }
        if let Some(Outcome::Value(object) | Outcome::Raised(object)) = outcome {
            guard::release(py, object);
        }
        if let Some(object) = on_abandon {
            guard::release(py, object);
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
