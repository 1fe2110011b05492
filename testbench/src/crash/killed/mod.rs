//! `cargo xtask killed-clients`: clients that are killed at any moment of a task, and the processes
//! that go on in their place.
//!
//! Each run is one call of a tool that works, asks its user, and works on. Its client is killed with
//! `kill -9` after a part of the time that a run takes; another process goes on with what was saved. Where
//! the kill fell is read from what the first process has left: its notebook, its outcome, and its lines
//! in the oracle. Then every result must be there, every step done once, and no question answered
//! twice. A second leg does the same at a server that knows no keys: there a call that was killed before its
//! answer may have been done, and has to be reported as such.

mod campaign;
mod judge;
mod phase;

pub(crate) use campaign::run;
