//! Control channel: a command reports progress, requests input from its user, and records steps.
//!
//! - `message`: the messages, one JSON object per line.
//! - `channel`: the transport. A command writes requests to descriptor 3 and reads responses from
//!   descriptor 4. If descriptors cannot be passed (ssh, containers, Windows), it uses its standard
//!   streams, and each request carries the nonce of the run.
//! - `events`: the file in which a supervisor records requests in the order of the output.
//!
//! Only a process with descriptor 3 or the nonce can write a message. Other output of the command,
//! and arguments of a caller, are never parsed as messages.

mod channel;
mod events;
mod message;

pub use channel::ControlMode;
pub(super) use channel::{Channel, Descriptors, Nonce, Piece, RequestLines, StdoutLines};
pub(super) use events::{Events, Record, Records, What};
pub use message::{InputLine, Progress, StepLine};
pub(super) use message::{Message, Rejected, RejectedKind};
