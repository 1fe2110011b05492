//! Commands that outlive the process that started them.
//!
//! A **job** is one run of a command. A small process, the supervisor, starts the command, stores
//! its output and records its exit. A server only reads the files. If the server is killed, the
//! next server finds the job by its ID and continues reading at any line.
//!
//! The supervisor is the server's own program, started as `<program> __supervise <folder of the job>`
//! ([`SUPERVISE`]). Its `main` calls [`supervise_if_asked`].
//!
//! All state is in the job's folder (`folder.rs`), and survives every process:
//!
//! ```text
//! <data>/server.heartbeat   touched by every server that is alive and can reach its store
//! <data>/jobs/.ctl/…        sockets of supervisors, with short names, because socket paths are limited (`short_path`)
//! <data>/jobs/<id>/
//!     spec.json             job specification
//!     lock                  held by the supervisor while it is alive
//!     begun                 written before the command starts and never removed, so that it starts at most once
//!     child                 process of the command
//!     ctl                   name of the supervisor's socket
//!     out, err              output within the limits, including its end
//!     events                input requests, steps and gaps, with their position in `out`
//!     asking                exists while an input request waits for its response
//!     note                  the owner of the job
//!     exit.json             exit of the job; no file changes after it
//! ```
//!
//! The socket signals new output, and carries input responses and requests to end the job. If a
//! supervisor is gone without an `exit.json`, the job is *lost*: the process that finds it
//! terminates the remaining processes and records that.
//!
//! On systems without Unix sockets, a command is a child of the server (`unsupervised`) and ends
//! with it.
//!
//! A **pipe** is a process that speaks over its standard streams, such as an MCP server, and
//! survives its gateway ([`Pipes`]). Its supervisor is the same program in another mode (`pipe`),
//! with a folder under `<data>/pipes`: the files above, without `out` and `err`, and `overflow`, messages that are too much for the memory.
//!
//! [`Children`] is for processes that must not outlive their server, such as tool workers.

mod asked;
#[cfg(unix)]
mod children;
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
#[cfg(not(unix))]
mod no_children;
mod output;
mod pipe;
mod pipes;
#[cfg(unix)]
mod processes;
#[cfg(unix)]
mod program;
#[cfg(unix)]
mod ready;
mod reported;
#[cfg(unix)]
mod root;
#[cfg(unix)]
mod short_path;
#[cfg(unix)]
mod socket;
mod spec;
#[cfg(unix)]
mod supervisor;
#[cfg(any(not(unix), test))]
#[cfg_attr(unix, allow(unreachable_pub, reason = "used only by its tests on Unix"))]
mod unsupervised;
#[cfg(unix)]
mod wire;

#[cfg(unix)]
pub use children::{ChildMark, ChildProcesses, Children};
#[cfg(unix)]
pub use handle::Job;
#[cfg(unix)]
pub use jobs::Jobs;
#[cfg(not(unix))]
pub use no_children::{ChildMark, ChildProcesses, Children};
#[cfg(unix)]
pub use short_path::ShortPath;
#[cfg(unix)]
pub use supervisor::supervise;
#[cfg(not(unix))]
pub use unsupervised::{Job, Jobs, supervise};

pub use asked::{can_supervise, supervise_if_asked};
pub use control::{ControlMode, InputLine, Progress, StepLine};
pub use error::{Error, Result};
pub use heartbeat::record_heartbeat;
pub use line::{Line, MAX_LINE, Position};
pub use names::{JOB_VARIABLE, SUPERVISE};
pub use pipe::{
    AttachState, Attached, CarriedInput, MESSAGE_BYTES, Members, Pipe, PipeEvent, PipeHello,
    PipeInfo, PipeSender, PipeSpec, Pipes, Retention, SlotState, id_text,
};
pub use spec::{Event, Exit, How, JobInfo, JobSpec, State, WaitsFor};
