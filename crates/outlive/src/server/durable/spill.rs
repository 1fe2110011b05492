//! Journals that the client does not carry: too large for its state, or with secrets in them. The
//! store keeps those, and the state says where.

use outlive_protocol::{InputRequired, Outcome, ProtocolError};
use outlive_tasks::JournalSnapshot;
use outlive_wire::RawJson;
use serde_json::value::to_raw_value;

use super::{Durability, random_id};
use crate::server::{Cx, core::Core};

/// A call that is about to end with questions, and has to give its journal to the store before.
pub(super) struct Spill {
    /// Where.
    pub(super) place: String,
    pub(super) journal: JournalSnapshot,
}

impl Spill {
    /// What of a journal goes to the store; the rest says which questions are open.
    pub(super) fn of(journal: &mut JournalSnapshot) -> Option<Self> {
        let spilled = JournalSnapshot {
            entries: std::mem::take(&mut journal.entries),
            segments: std::mem::take(&mut journal.segments),
            ..JournalSnapshot::default()
        };
        Some(Self { place: random_id()?, journal: spilled })
    }

    /// Ends the call when the store has it.
    pub(super) async fn end(self, cx: Cx, asked: InputRequired) -> Result<Outcome, ProtocolError> {
        let note = to_raw_value(&self.journal).map_err(ProtocolError::internal)?;
        let ttl = cx.core().profile.limits.request_state_ttl;
        cx.core().keep_journal(cx.call(), &self.place, note, ttl).await?;
        Ok(Outcome::InputRequired(Box::new(asked)))
    }
}

impl Durability {
    /// Reads back what the store has of the journal, if it has anything.
    pub(in crate::server) async fn fetch(&self, core: &Core) -> Result<(), ProtocolError> {
        let Some(place) = self.spilled() else { return Ok(()) };
        // Kept for as long as the state is good: if it is gone, so is the state.
        let kept: Option<RawJson> = core.kept_journal(&place).await?;
        let kept = kept.ok_or(ProtocolError::InvalidRequestState)?;
        let journal = serde_json::from_str(kept.get()).map_err(ProtocolError::internal)?;
        self.refill(journal);
        Ok(())
    }
}
