//! Layer 6: the execution of a call. [`execute`](execute::execute) is the only entry.
//!
//! - `plan`: decides whether a call runs inline, is promoted or starts as a task; `executable`: the
//!   handler and its execution policy.
//! - `handler_run`: one run of a handler over its journal; `sent_input`: input requests on the
//!   stream of a legacy client.
//! - `promote`: turns a call into a task; `task_run`: a call that the engine runs; `task_reply`: a
//!   task as the outcome of a call.
//! - `bridge`: calls of clients without tasks wait for their task; `round`: their later rounds;
//!   `join`: repeated calls.
//! - `gate`: calls that wait for approval before they start.
//! - `idempotency`: calls that take effect once; `respond`: the response mode of a call.

pub(crate) mod bridge;
pub(crate) mod executable;
pub(crate) mod execute;
pub(crate) mod gate;
pub(crate) mod handler_run;
pub(crate) mod idempotency;
pub(crate) mod join;
pub(crate) mod plan;
pub(crate) mod promote;
pub(crate) mod respond;
pub(crate) mod round;
pub(crate) mod sent_input;
pub(crate) mod task_reply;
pub(crate) mod task_run;
