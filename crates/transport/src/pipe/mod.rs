//! What all pipes share: one connection, both eras on it, messages in and messages out.

mod connection;
mod outbox;
mod split;

pub(crate) use connection::Pipe;
#[cfg(feature = "server")]
pub(crate) use outbox::Unread;
pub(crate) use split::{Piece, Splitter};
