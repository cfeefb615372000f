//! Observers of a call: the check that there are none ([`gate`]), the span of tracers ([`span`]), and the events that
//! listeners of a toolkit get ([`events`]).

pub(super) mod events;
pub(super) mod gate;
pub(super) mod span;
