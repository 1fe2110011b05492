//! Layer 6: how a call is executed. [`execute`](execute::execute) is the only entry.
//!
//! - `plan`: inline, promoted or a task, decided once; `executable`: the handler, and what its
//!   registration says.
//! - `handler_run`: one run of a handler over its journal, in every placement; `sent_input`: its input
//!   requests on the stream of a legacy client.
//! - `promote`: how a call becomes a task; `task_run`: a call as the engine runs it; `task_reply`: a
//!   task as the outcome of a call.
//! - `idempotency`: calls that take effect once; `respond`: how the client gets its response.

pub(crate) mod executable;
pub(crate) mod execute;
pub(crate) mod handler_run;
pub(crate) mod idempotency;
pub(crate) mod plan;
pub(crate) mod promote;
pub(crate) mod respond;
pub(crate) mod sent_input;
pub(crate) mod task_reply;
pub(crate) mod task_run;
