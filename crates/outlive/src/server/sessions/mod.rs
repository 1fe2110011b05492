//! Legacy sessions that all replicas on one store know.
//!
//! - `notes`: sessions as notes of the store: what is kept, under which key, and how it ends.
//! - `replies`: answers of clients that come to another replica than the one that has asked.

mod notes;
mod replies;

pub(super) use notes::{MaxBytes, SessionNotes, remembered};
