//! Commands that outlive the process that started them.
//!
//! A **job** is one run of a command. A small process, the supervisor, starts the command, stores its output and records
//! its exit. A server only reads along: it may be killed, and the next server finds the job by its id and continues
//! reading from any line.
//!
//! The supervisor is the server's own program, started as `<program> __supervise <folder of the job>`
//! ([`SUPERVISE`]). Its `main` calls [`supervise`].
//!
//! All that matters is in the job's folder (`folder.rs`), and survives all processes:
//!
//! ```text
//! <data>/server.heartbeat   touched by every server that is alive and can reach its store
//! <data>/jobs/.ctl/…        the sockets of supervisors; names are short, because socket paths must be
//! <data>/jobs/<id>/
//!     spec.json             what to run
//!     lock                  held by the supervisor as long as it lives
//!     begun                 written before the command starts and never removed: at most one start
//!     child                 which process the command is
//!     ctl                   the name of the supervisor's socket
//!     out, err              the output: all that is within the limits, and the end
//!     events                input requests and gaps, each with its position in `out`
//!     asking                exists while an input request waits for its response
//!     note                  the owner of the job
//!     exit.json             how the job ended; nothing changes after it
//! ```
//!
//! The socket only signals that there is something to read, and carries input responses and the request to end. If a
//! supervisor is gone without an `exit.json`, the job is *lost*: the process that finds it ends what is left of the
//! command and records that.
//!
//! On systems without Unix sockets a command is a child of the server (`unsupervised`) and ends with it.

mod clock;
mod command;
mod control;
mod error;
mod files;
#[cfg(unix)]
mod folder;
#[cfg(unix)]
mod handle;
mod heartbeat;
mod inputs;
#[cfg(unix)]
mod jobs;
mod line;
mod lines;
mod names;
mod output;
mod pipes;
#[cfg(unix)]
mod processes;
mod spec;
#[cfg(unix)]
mod supervisor;
#[cfg(any(not(unix), test))]
#[cfg_attr(unix, allow(unreachable_pub, reason = "on Unix only its tests use it"))]
mod unsupervised;
#[cfg(unix)]
mod wire;

#[cfg(unix)]
pub use handle::Job;
#[cfg(unix)]
pub use jobs::Jobs;
#[cfg(unix)]
pub use supervisor::supervise;
#[cfg(not(unix))]
pub use unsupervised::{Job, Jobs, supervise};

pub use control::{ControlMode, InputLine, Progress};
pub use error::{Error, Result};
pub use heartbeat::record_heartbeat;
pub use line::{Line, MAX_LINE, Position};
pub use names::{JOB_VARIABLE, SUPERVISE};
pub use spec::{Event, Exit, How, JobInfo, JobSpec, State, WaitsFor};
