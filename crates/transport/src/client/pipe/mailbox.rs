//! Queue of the messages for one request.

use std::{
    future::poll_fn,
    sync::{Arc, Weak},
};

use outlive_protocol::Incoming;

use super::{slot::Slot, state::PipeState};
use crate::client::TransportError;

/// Receiver of the messages for one request. Dropping it removes the request from the pipe.
#[derive(Debug)]
pub struct Mailbox {
    id: u64,
    slot: Arc<Slot>,
    pipe: Weak<PipeState>,
}

impl Mailbox {
    pub(super) fn new(id: u64, slot: Arc<Slot>, pipe: Weak<PipeState>) -> Self {
        Self { id, slot, pipe }
    }

    /// Returns the next message. Cancel-safe.
    ///
    /// # Errors
    ///
    /// If the pipe is closed, or the response exceeds the limit of a message.
    pub async fn next(&mut self) -> Result<Incoming, TransportError> {
        poll_fn(|cx| self.slot.poll_next(cx)).await
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.upgrade() {
            pipe.forget(self.id);
        }
    }
}
