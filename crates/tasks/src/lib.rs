//! What lets a handler go on where it stopped: the journal of its run.
//!
//! - [`Journal`]: what a run has recorded, asked and emitted, by name. A run that begins again
//!   over the same journal reads back what it finds there instead of doing it again.
//! - [`Key`]: the names.
//! - [`polling`]: which run this thread is polling, so that steps and questions know their own.
//! - [`Turns`]: when a run is parked, so that it can be dropped and begun again later.
//!
//! - [`store`]: where tasks are kept, and the contract that every store fulfils.
//! - [`engine`]: runs the tasks of a store.
//!
//! Nothing here knows a method of the protocol.

pub mod engine;
mod entry;
mod journal;
mod key;
mod misuse;
mod polled;
mod questions;
mod segment;
mod steps;
pub mod store;
mod turns;
mod unwritten;

pub use entry::{Entry, Failure, Unanswered};
pub use journal::{Bounds, Crash, Journal, Restored, Shed};
pub use key::{IntoKey, Key};
pub use misuse::Misuse;
pub use polled::{RunId, in_step, poll_as, polling, step_of};
pub use questions::{Asking, OpenQuestion};
pub use segment::Segment;
pub use steps::{Begun, Step, Waits};
pub use turns::{Turned, Turns};
pub use unwritten::Ticket;
