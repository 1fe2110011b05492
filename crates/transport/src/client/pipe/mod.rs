//! Transport with one channel for all messages. Responses match their requests by ID.

mod lines;
mod link;
mod long_line;
mod mailbox;
mod sink;
mod slot;
mod state;

pub use link::PipeLink;
pub use mailbox::Mailbox;
pub use state::PipeLimits;
