//! Tasks of a server: configuration, policies, and the protocol methods on tasks.
//!
//! The private modules implement the methods. They do not depend on tools.
//!
//! - `methods`: `tasks/get`, `tasks/update`, `tasks/cancel`; `list`: `tasks/list` and
//!   `dev.outlive/tasks/list`; `result`: `tasks/result`.
//! - `lookup`: finds the task of a request; `view`: a stored task as clients see it.
//! - `inputs`: input requests and progress on the stream of a client that waits for a task.
//! - `attendance`: a request that waits for the task of a bridged call; `attending`: the store write
//!   that starts the wait; `pending_result`: the response while the task runs.
//! - `segments`: partial results; `watch`: for clients that follow a task; `streaming`: as
//!   responses to the call that created the task.

pub(crate) mod attendance;
pub(crate) mod attending;
pub(crate) mod inputs;
pub(crate) mod list;
pub(crate) mod lookup;
pub(crate) mod methods;
pub(crate) mod pending_result;
pub(crate) mod result;
pub(crate) mod segments;
pub(crate) mod streaming;
pub(crate) mod view;
pub(crate) mod watch;

pub use super::{
    config::{ResponseMode, TaskConfig},
    policy::{OnCrash, TaskPolicy},
};
pub use outlive_protocol::CompletionOutcome;
pub use outlive_tasks::engine::EngineConfig;
