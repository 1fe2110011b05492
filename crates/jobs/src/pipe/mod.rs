//! Processes that speak over their standard streams and survive their gateway.
//!
//! A supervisor stands between the process and its gateways for every message. It reads only the
//! members of a message that decide where it goes ([`Members`]), and has one slot for each open
//! request. If a gateway is killed, the next one finds the process by its ID, attaches to a request,
//! and gets its newest progress, its open input requests and its response.
//!
//! - `handle`, `pipes`: the side of a gateway; `spec`: the process, and the reports of a supervisor.
//! - `wire`: the frames between them; `members`: the members of a message that are read.
//! - `supervise`, `run`: the supervisor; `serve`, `peers`: its gateways; `input`, `lines`, `stderr`:
//!   the streams of the process; `slots`, `bodies`, `seen`: open requests and their stored messages.
//!
//! The slots are in memory: if a supervisor is killed, its process ends, and a file of slots would
//! have no reader. All other state is in the folder, as for a job.

#[cfg(unix)]
mod bodies;
#[cfg(unix)]
mod handle;
#[cfg(unix)]
mod input;
#[cfg(unix)]
mod lines;
#[cfg(unix)]
mod long_line;
mod members;
#[cfg(unix)]
mod peers;
#[cfg(unix)]
mod pipes;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod seen;
#[cfg(unix)]
mod sender;
#[cfg(unix)]
mod serve;
#[cfg(unix)]
mod slots;
mod spec;
#[cfg(unix)]
mod stderr;
#[cfg(unix)]
mod supervise;
#[cfg(not(unix))]
mod unsupported;
#[cfg(unix)]
mod wire;

#[cfg(unix)]
pub use handle::{Pipe, PipeEvent};
pub use members::{Members, id_text};
#[cfg(unix)]
pub use pipes::Pipes;
#[cfg(unix)]
pub use sender::{PipeSender, Retention};
#[cfg(unix)]
pub(crate) use spec::StoredSpec;
pub use spec::{
    AttachState, Attached, CarriedInput, MESSAGE_BYTES, PipeHello, PipeInfo, PipeSpec, SlotState,
};
#[cfg(unix)]
pub(crate) use supervise::supervise;
#[cfg(not(unix))]
pub use unsupported::{Pipe, PipeEvent, PipeSender, Pipes, Retention};
