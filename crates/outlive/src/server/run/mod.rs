//! Layer 2: the state of one run.
//!
//! - `state`: journal, placement and rounds of a call; `placement`: inline, task or cleanup.
//! - `request_state`: what a client carries between rounds, sealed; `bound_args`: the arguments that
//!   it is valid for; `replay_policy`: what another handler revision may resume; `journal_offload`:
//!   journals that the store keeps for a client.
//! - `input`, `input_request_set`: input requests and responses; `client_request`: an input request
//!   that was sent to a legacy client; `completion_token`: what completes an external event.
//! - `limits`: how much a journal may have; `progress`: how far a task is.

pub(crate) mod bound_args;
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
