//! The server side of pipes: one connection that carries messages of both eras.

mod connection;
mod outbox;
mod split;

pub(crate) use connection::Pipe;
pub(crate) use outbox::Unread;
pub(crate) use split::{Piece, Splitter};
