//! Channel for the input requests that arrive on no call's own stream.

use tokio::sync::mpsc;

use super::open_inputs::RoutedEvent;

/// Creates a channel for the input requests of legacy servers that arrive on no call's own stream:
/// those on a pipe, over HTTP+SSE and on the standalone stream of a session.
///
/// Pass the sender to
/// [`ClientBuilder::input_channel`](crate::client::ClientBuilder::input_channel). When `capacity`
/// events wait to be read, the client rejects further input requests.
pub fn input_channel(capacity: usize) -> (InputSender, RoutedInputs) {
    let (sender, receiver) = mpsc::channel(capacity.max(1));
    (InputSender { sender }, RoutedInputs { receiver })
}

/// Sending side of [`input_channel`], which the client gets.
#[derive(Clone, Debug)]
pub struct InputSender {
    pub(crate) sender: mpsc::Sender<RoutedEvent>,
}

/// Input requests that arrive on no call's own stream, and their withdrawals.
#[derive(Debug)]
pub struct RoutedInputs {
    receiver: mpsc::Receiver<RoutedEvent>,
}

impl RoutedInputs {
    /// Returns the next event, or `None` after the client is dropped. Cancel safe.
    pub async fn next(&mut self) -> Option<RoutedEvent> {
        self.receiver.recv().await
    }
}
