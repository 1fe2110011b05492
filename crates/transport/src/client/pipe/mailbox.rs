//! Where messages for one request wait until they are read.

use std::{
    future::poll_fn,
    sync::{Arc, Weak},
};

use outlive_protocol::Incoming;

use super::{slot::Slot, state::PipeState};

/// The messages for one request. Dropping it forgets the request.
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

    /// The next message, or `None` when the pipe has closed. Can be dropped while it waits.
    pub async fn next(&mut self) -> Option<Incoming> {
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
