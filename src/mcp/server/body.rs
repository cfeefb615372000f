//! The bodies of HTTP: those of requests within their limits, and those of responses that keep something until they are sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest body of a request, in bytes.
pub(super) const LARGEST_BODY: usize = 4 * 1024 * 1024;
/// The part of a body that is refused, and that is read and discarded, in bytes.
const LARGEST_DISCARDED: usize = 64 * 1024 * 1024;
/// The size of a body that is always accepted, in bytes: the number of connections limits the sum of them.
const SMALL_BODY: usize = 16 * 1024;
/// The most bytes of all larger bodies and their values together, from their first byte to the end of their requests.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The body of a response.
pub(super) type HttpBody = BoxBody<Bytes, Infallible>;

/// The room for the bodies of all requests together.
pub(super) struct BodyBudget(Arc<Semaphore>);

/// The share of a body in the room, which is returned when its last clone is dropped.
#[derive(Clone, Default)]
pub(super) struct BodyShare {
    _taken: Option<Arc<OwnedSemaphorePermit>>,
}

/// The reason why there is no body.
#[derive(Debug)]
pub(super) enum BodyError {
    /// It ends too early.
    Incomplete,
    /// It is larger than any may be.
    TooLarge,
    /// Other bodies take the room.
    NoRoom,
}

impl BodyBudget {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MOST_BYTES)))
    }

    /// Reads a body.
    ///
    /// The rest of a body that is refused is discarded up to a limit, because a client that is still sending does not see the answer.
    ///
    /// # Errors
    ///
    /// See [`BodyError`].
    pub(super) async fn read(&self, mut body: Incoming) -> Result<(Bytes, BodyShare), BodyError> {
        let (mut read, mut size) = (Vec::new(), 0);
        let mut taken: Option<OwnedSemaphorePermit> = None;
        let mut refused = None;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| BodyError::Incomplete)?.into_data() else { continue };
            size += data.len();
            if refused.is_none() {
                refused = self.take(&mut taken, size).err();
            }
            if refused.is_none() {
                read.extend_from_slice(&data);
            } else {
                (read, taken) = (Vec::new(), None);
                if size > LARGEST_DISCARDED {
                    break;
                }
            }
        }
        match refused {
            Some(reason) => Err(reason),
            None => Ok((read.into(), BodyShare { _taken: taken.map(Arc::new) })),
        }
    }

    /// Takes the room for a body that has grown to this size.
    fn take(&self, taken: &mut Option<OwnedSemaphorePermit>, size: usize) -> Result<(), BodyError> {
        if size > LARGEST_BODY { Err(BodyError::TooLarge) } else { self.grow(taken, size) }
    }

    /// Takes the room for the values of a body, by their weight.
    pub(super) fn take_values(&self, weight: usize) -> Result<BodyShare, BodyError> {
        let mut taken = None;
        self.grow(&mut taken, weight)?;
        Ok(BodyShare { _taken: taken.map(Arc::new) })
    }

    fn grow(&self, taken: &mut Option<OwnedSemaphorePermit>, size: usize) -> Result<(), BodyError> {
        let has = taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if size <= SMALL_BODY || size <= has {
            return Ok(());
        }
        // It is smaller than the room, or there is none.
        let more = u32::try_from(size - has).unwrap_or(u32::MAX);
        let more = self.0.clone().try_acquire_many_owned(more).map_err(|_| BodyError::NoRoom)?;
        match taken {
            Some(taken) => taken.merge(more),
            None => *taken = Some(more),
        }
        Ok(())
    }
}

/// A body that keeps a value until it is sent, or the client is gone.
pub(super) struct KeepingBody<T> {
    body: HttpBody,
    _kept: T,
}

impl<T: Send + Sync + Unpin + 'static> KeepingBody<T> {
    pub(super) fn boxed(body: HttpBody, kept: T) -> HttpBody {
        BodyExt::boxed(Self { body, _kept: kept })
    }
}

impl<T: Unpin> Body for KeepingBody<T> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bodies_share_the_room_and_small_ones_always_fit() {
        let budget = BodyBudget::new();
        let large: Vec<_> = (0..MOST_BYTES / LARGEST_BODY)
            .map(|_| {
                let mut taken = None;
                budget.take(&mut taken, SMALL_BODY).unwrap();
                budget.take(&mut taken, SMALL_BODY + 1).unwrap();
                budget.take(&mut taken, LARGEST_BODY).unwrap();
                taken
            })
            .collect();

        assert!(matches!(budget.take(&mut None, SMALL_BODY + 1), Err(BodyError::NoRoom)));
        assert!(matches!(budget.take(&mut None, LARGEST_BODY + 1), Err(BodyError::TooLarge)));
        budget.take(&mut None, SMALL_BODY).unwrap();
        drop(large);
        budget.take(&mut None, LARGEST_BODY).unwrap();
    }
}
