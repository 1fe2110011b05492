//! The control channel: how a command reports its progress and requests input from its user.
//!
//! - `message`: what the two sides write, one JSON object per line.
//! - `channel`: where they write it. A command writes requests to descriptor 3 and reads responses from descriptor 4.
//!   Where descriptors cannot be passed (ssh, containers, Windows), it uses its standard streams, and each request carries
//!   a nonce of the run.
//! - `events`: the file in which a supervisor records what has to be read in the order of the output.
//!
//! Nothing that a command prints, and nothing that a caller gives it, is read as a message: who does not hold descriptor 3
//! or does not know the nonce cannot write one.

mod channel;
mod events;
mod message;

pub use channel::ControlMode;
pub(super) use channel::{Channel, Descriptors, Nonce, Piece, RequestLines, StdoutLines};
pub(super) use events::{Events, Record, Records, What};
pub use message::{InputLine, Progress};
pub(super) use message::{Message, Rejected, RejectedKind};
