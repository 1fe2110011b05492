//! Jobs on systems without Unix sockets: a command is a child of the server, and ends with it.
//!
//! The interface is the same. Output and exit are stored in the same files, so a job can be read
//! after it has ended. A job that another server started and did not finish is lost.

mod jobs;
mod run;
// The tests need a shell.
#[cfg(all(test, unix))]
mod tests;

pub use jobs::{Job, Jobs, supervise};
