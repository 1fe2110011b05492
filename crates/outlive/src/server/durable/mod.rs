//! Layer 5: the contexts that handlers take.
//!
//! - `context`: [`Durable`](context::Durable): steps, timers and partial results; `boundary`: what
//!   every step and wait checks first; `recordable`: what a step records; `step_once`: steps that
//!   must not be repeated; `capacity`: permits.
//! - `elicit`, `input_future`: input requests and their responses; `external_event`: values that
//!   another system delivers; `rounds`: the explicit style.
//! - `emit`: [`Task`](emit::Task); `cleanup`: [`Cleanup`](cleanup::Cleanup).

pub(crate) mod boundary;
pub(crate) mod capacity;
pub(crate) mod cleanup;
pub(crate) mod context;
pub(crate) mod elicit;
pub(crate) mod emit;
pub(crate) mod external_event;
pub(crate) mod input_future;
pub(crate) mod recordable;
pub(crate) mod rounds;
pub(crate) mod step_once;
