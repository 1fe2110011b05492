//! Sink that writes several messages at once.

use std::{future::Future, io};

use bytes::Bytes;

use crate::messages::Sink;

/// A sink that writes several messages at once.
pub(super) trait BatchSink: Send {
    fn send_all(&mut self, batch: &mut Vec<Bytes>) -> impl Future<Output = io::Result<()>> + Send;
}

pub(super) struct OneByOne<S>(pub(super) S);

impl<S: Sink> BatchSink for OneByOne<S> {
    async fn send_all(&mut self, batch: &mut Vec<Bytes>) -> io::Result<()> {
        for message in batch.drain(..) {
            self.0.send(message).await?;
        }
        Ok(())
    }
}
