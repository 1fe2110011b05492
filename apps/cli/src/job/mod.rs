//! Commands that outlive the server.
//!
//! A **job** is one run of a command. A small process of ours, the supervisor (`outlive __supervise`), starts it, keeps
//! what it prints, and writes down how it ended. The server only reads along: it may be killed, and the next one
//! finds the job by its id and reads on from any line.
//!
//! Everything that matters is in the job's folder (`folder.rs`), and survives all processes:
//!
//! ```text
//! <data>/server.pulse       touched by every server that is there, and knows that its store is
//! <data>/jobs/.ctl/…        the sockets of supervisors; the names are short, because those of sockets must be
//! <data>/jobs/<id>/
//!     spec.json             what to run
//!     lock                  held by the supervisor as long as it lives
//!     begun                 written before the command is started, and never taken back: at most one start
//!     child                 which process the command is
//!     ctl                   the name of the supervisor's socket
//!     out, err              what was printed: all that is within the limits, and the end
//!     events                input requests and gaps, each with its place in `out`
//!     asking                there while an input request waits for its response
//!     note                  whose job it is
//!     exit.json             how it ended; nothing changes after it
//! ```
//!
//! The socket only tells that there is something to read, and carries responses and the wish to end. Where a
//! supervisor is gone without having written `exit.json`, the job is *lost*: whoever finds it ends what is left of
//! the command, and writes that down.
//!
//! On systems without Unix sockets a command is a child of the server (`elsewhere`) and ends with it.

mod clock;
mod command;
mod control;
#[cfg(any(not(unix), test))]
#[cfg_attr(unix, allow(unreachable_pub, reason = "here it is only tested"))]
mod elsewhere;
mod error;
mod files;
#[cfg(unix)]
mod folder;
#[cfg(unix)]
mod handle;
mod inputs;
#[cfg(unix)]
mod jobs;
mod lines;
mod output;
mod pipes;
#[cfg(unix)]
mod processes;
mod pulse;
mod spec;
#[cfg(unix)]
mod supervisor;
#[cfg(unix)]
mod wire;

#[cfg(not(unix))]
pub use elsewhere::{Job, Jobs};
#[cfg(not(unix))]
pub(crate) use elsewhere::{SuperviseArgs, supervise};
#[cfg(unix)]
pub use handle::Job;
#[cfg(unix)]
pub use jobs::Jobs;

pub use control::{ControlMode, InputLine, Progress};
pub use error::{Error, Result};
pub use lines::{Line, Position};
pub use pulse::beat;
pub use spec::{Event, Exit, How, JobInfo, JobSpec, State, WaitsFor};
#[cfg(unix)]
pub(crate) use supervisor::{SuperviseArgs, supervise};

/// The name of the hidden command that supervises.
pub(crate) const SUPERVISE: &str = "__supervise";

/// The variable in a command's environment that says which job it is part of. It is different for every job.
pub const JOB_VARIABLE: &str = "OUTLIVE_JOB";

/// The longest line. What is longer comes in pieces of this length.
pub const MAX_LINE: usize = 64 << 10;
