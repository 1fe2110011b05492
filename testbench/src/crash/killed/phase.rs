//! The phase of a client at its kill.

use crate::crash::oracle::{Event, Line};

/// The phase of a client at its kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// The client has saved nothing.
    Before,
    /// The call is sent or running, without a handle.
    Sent,
    /// The client has a handle.
    Handle,
    /// The client shows an input request.
    Shown,
    /// The input response is saved.
    Answered,
    /// The result is saved.
    End,
}

/// Whether the line says that the client showed an input request to its user.
pub(super) fn is_shown(line: &Line) -> bool {
    matches!(&line.event, Event::Other(event) if event.starts_with("shown "))
}
