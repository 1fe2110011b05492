//! One channel for everything: responses find their requests by id.

mod lines;
mod link;
mod mailbox;
mod sink;
mod slot;
mod state;

pub use link::PipeLink;
pub use mailbox::Mailbox;
pub use state::PipeLimits;
