//! The worker's side of a job: makes the call, iterates the generator, hands over what comes of it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::{ffi, intern};

use super::guard::{self, Sent};
use super::job::{Call, Inner, Outcome, Reader, State};
use super::lock;
use super::pool::Work;

impl Work for Inner {
    fn run(self: Arc<Self>, py: Python<'_>) {
        let Some(call) = lock(&self.state).call.take() else {
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
    fn produce(self: &Arc<Self>, py: Python<'_>, call: Call) -> Outcome {
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

    fn iterate(self: &Arc<Self>, py: Python<'_>, generator: &Py<PyAny>) -> Outcome {
        loop {
            if lock(&self.state).reader == Reader::Gone {
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
    fn offer(self: &Arc<Self>, py: Python<'_>, chunk: Py<PyAny>) {
        let (post, full) = {
            let mut state = lock(&self.state);
            if state.reader == Reader::Gone {
                drop(state);
                return guard::release(py, chunk);
            }
            state.chunks.push_back(chunk);
            (state.wants_post(), state.chunks.len() >= self.limit)
        };
        if post {
            self.post(py);
        }
        if full {
            py.detach(|| self.wait_for_room());
        }
    }

    /// Waits until half of the buffer is free, so that the producer is not woken for every single chunk.
    fn wait_for_room(&self) {
        self.shared.pool.hold(self.shared, true);
        {
            let mut state = lock(&self.state);
            state.parked = true;
            while state.chunks.len() > self.limit / 2 && state.reader != Reader::Gone {
                state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.parked = false;
        }
        self.shared.pool.hold(self.shared, false);
    }

    fn finish(self: &Arc<Self>, py: Python<'_>, outcome: Outcome) {
        let (post, unwanted, on_abandon) = {
            let mut state = lock(&self.state);
            let on_abandon = state.on_abandon.take();
            if state.reader == Reader::Gone {
                (false, Some(outcome), on_abandon)
            } else {
                state.outcome = Some(outcome);
                (state.wants_post(), None, on_abandon)
            }
        };
        if post {
            self.post(py);
        }
        if let Some(Outcome::Value(object) | Outcome::Raised(object)) = unwanted {
            guard::release(py, object);
        }
        if let Some(object) = on_abandon {
            guard::release(py, object);
        }
    }

    fn post(self: &Arc<Self>, py: Python<'_>) {
        let this: Weak<Inner> = Arc::downgrade(self);
        self.port.post(py, this);
    }
}

impl State {
    /// Whether the loop has to be told, which it is once.
    fn wants_post(&mut self) -> bool {
        self.waiter.is_some() && !std::mem::replace(&mut self.posted, true)
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
