//! Durable execution: steps, input requests, external events, cleanup.
//!
//! The contexts are [`Durable`](super::Durable) and [`Task`](super::Task); the types here belong to
//! their methods.
//!
//! - `context`: [`Durable`](context::Durable) with steps, timers and partial results; `boundary`:
//!   checks before every step and wait; `recordable`: types that a step can record; `step_once`:
//!   steps that must not run twice; `capacity`: permits; `parking`: runs that stay in memory;
//!   `promotion`: entries that change, and those of a call that becomes a task; `replay`: recorded
//!   steps and replays, for handlers that run their work elsewhere.
//! - `elicit`, `raw_input`, `input_future`: input requests and responses; `external_event`: values that another
//!   system delivers; `rounds`: handlers that manage their rounds themselves.
//! - `emit`: [`Task`](emit::Task); `cleanup`: [`Cleanup`].

pub(crate) mod boundary;
pub(crate) mod capacity;
pub(crate) mod cleanup;
pub(crate) mod context;
pub(crate) mod elicit;
pub(crate) mod emit;
pub(crate) mod external_event;
pub(crate) mod input_future;
pub(crate) mod parking;
pub(crate) mod promotion;
pub(crate) mod raw_input;
pub(crate) mod recordable;
pub(crate) mod replay;
pub(crate) mod rounds;
pub(crate) mod step_once;

pub use super::{
    durable_error::DurableError,
    retry::{Attempt, Retry},
    run::{
        input::ElicitOutcome,
        input_request_set::{InputRequestSet, RoundOutcome},
        placement::CleanupReason,
        replay_policy::ResumePolicy,
    },
    secret::Secret,
};
pub use cleanup::{Cleanup, IntoCleanupResult};
pub use context::YieldToReplica;
pub use elicit::{Elicit, ElicitUrl, Roots, Sample};
pub use external_event::{CreateExternalEvent, ExternalEvent};
pub use outlive_tasks::{
    IntoKey, JournalError, Key,
    engine::{Capacity, Permit},
    store::Audience,
};
pub use parking::ParkGuard;
pub use promotion::{PromotionGuard, PromotionJournal};
pub use raw_input::RequestInput;
pub use recordable::Recordable;
pub use replay::{DropReason, StepOutcome, StepRecord};
pub use rounds::Round;
