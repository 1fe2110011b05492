//! What a client was doing when it was killed.

use crate::crash::oracle::{Event, Line};

/// What a client is doing when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// It has written nothing down.
    Before,
    /// The call is on its way, or at work, and there is no handle.
    Sent,
    /// It has a handle.
    Handle,
    /// Its user is being asked.
    Shown,
    /// The answer is written down.
    Answered,
    /// So is what came of it.
    End,
}

/// Whether the line says that the client showed an input request to its user.
pub(super) fn is_shown(line: &Line) -> bool {
    matches!(&line.event, Event::Other(event) if event.starts_with("shown "))
}
