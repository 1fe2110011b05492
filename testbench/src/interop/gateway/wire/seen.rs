//! A message on a connection.

use serde_json::Value;

/// Side of a connection that sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Sender {
    Client,
    Server,
}

/// A JSON-RPC message.
#[derive(Clone, Debug)]
pub(in super::super) struct Seen {
    pub(in super::super) sender: Sender,
    pub(in super::super) message: Value,
}
