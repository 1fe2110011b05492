//! Layer 2: the state of one run.
//!
//! - `state`: journal, placement and rounds of a call; `placement`: inline, task or cleanup.
//! - `request_state`: the sealed state that a client holds between rounds; `bound_args`: the
//!   arguments that the state is valid for; `replay_policy`: which journals a handler revision
//!   accepts; `journal_offload`: journals in the store that are too large for a request state.
//! - `input`, `input_request_set`: input requests and responses; `client_request`: an input request
//!   that was sent to a legacy client; `completion_token`: the token of an external event;
//!   `answer_token`: the token of an answer link.
//! - `bridged`: the identity of a call whose client has no tasks.
//! - `limits`: limits of a journal; `progress`: the progress of a task.

pub(crate) mod answer_token;
pub(crate) mod bound_args;
pub(crate) mod bridged;
pub(crate) mod client_request;
pub(crate) mod completion_token;
pub(crate) mod input;
pub(crate) mod input_request_set;
pub(crate) mod journal_offload;
pub(crate) mod limits;
pub(crate) mod placement;
pub(crate) mod progress;
pub(crate) mod replay_policy;
pub(crate) mod request_state;
pub(crate) mod state;
