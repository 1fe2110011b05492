//! Offloads journals to the store if they are too large for a request state or contain secrets. The
//! request state then contains the key of the stored journal.

use outlive_protocol::{Call, InputRequired, Outcome, ProtocolError};
use outlive_tasks::JournalSnapshot;
use serde_json::value::to_raw_value;

use crate::server::{
    env::{environment::Env, task_error::unavailable},
    random::random_id,
    run::state::RunState,
};

/// A journal that is stored before its call suspends.
pub(crate) struct JournalOffload {
    /// ID of the stored journal.
    pub(crate) place: String,
    journal: JournalSnapshot,
}

impl JournalOffload {
    /// Moves entries and segments out of a journal. The rest, with the open input requests, stays
    /// in the request state.
    pub(crate) fn of(journal: &mut JournalSnapshot) -> Option<Self> {
        let offloaded = JournalSnapshot::default()
            .entries(std::mem::take(&mut journal.entries))
            .segments(std::mem::take(&mut journal.segments));
        Some(Self { place: random_id()?, journal: offloaded })
    }

    /// Stores the journal, then suspends the call.
    pub(crate) async fn suspend(
        self,
        env: &Env,
        call: &Call,
        required: InputRequired,
    ) -> Result<Outcome, ProtocolError> {
        let journal = to_raw_value(&self.journal).map_err(ProtocolError::internal)?;
        let ttl = env.profile.limits.request_state_ttl;
        let tasks = env.tasks()?;
        let (store, charge) = (tasks.engine().store(), tasks.charge(call.principal()));
        let kept = store.put_if_absent(&place(&self.place), journal, ttl, Some(&charge)).await;
        kept.map(drop).map_err(|error| tasks.refused(call, &error))?;
        Ok(Outcome::InputRequired(Box::new(required)))
    }
}

/// Reads the offloaded journal of a run, if there is one.
pub(crate) async fn fetch(env: &Env, run: &RunState) -> Result<(), ProtocolError> {
    let Some(offloaded) = run.offloaded() else { return Ok(()) };
    let kept = env.tasks()?.engine().store().get_value(&place(&offloaded)).await;
    // The stored journal has the TTL of the request state, so a missing journal means an expired
    // state.
    let kept = kept.map_err(|error| unavailable(&error))?;
    let kept = kept.ok_or(ProtocolError::InvalidRequestState)?;
    run.refill(serde_json::from_str(kept.get()).map_err(ProtocolError::internal)?);
    Ok(())
}

fn place(id: &str) -> String {
    format!("journal/{id}")
}
