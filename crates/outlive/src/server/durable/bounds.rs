//! How much a journal may hold: in memory, with the client, in the store.

use outlive_protocol::{Call, InputMode};
use outlive_tasks::JournalLimits;

use crate::server::{core::Core, tasks::Tasks};

/// Bytes of a journal that stays in memory while its call waits.
const IN_MEMORY: usize = 16 << 20;

/// How many blocks a call emits that is no task, at most, and of how many bytes.
const SEGMENTS: usize = 100_000;
const SEGMENT_BYTES: usize = 1 << 20;

/// What the journal of a call may hold.
pub(super) fn bounds(core: &Core, call: &Call) -> JournalLimits {
    let suspends = call.rules().input_mode == InputMode::RoundTrip;
    // What the client is not to carry goes to the store, where there is one.
    let leaves = suspends && core.tasks.is_none();
    JournalLimits {
        bytes: if leaves { carried(core) } else { IN_MEMORY },
        questions: core.profile.limits.max_open_inputs,
        leaves: leaves || (core.replays && core.tasks.is_none()),
        segments: SEGMENTS,
        segment_bytes: SEGMENT_BYTES,
    }
}

/// How much of a journal a client carries. Sealing adds a head, and a third for Base64.
pub(super) fn carried(core: &Core) -> usize {
    (core.profile.limits.max_request_state_bytes / 4 * 3).saturating_sub(512)
}

/// The journal of a task stays with its store.
pub(super) fn task_bounds(core: &Core) -> JournalLimits {
    let bytes = core.tasks.as_ref().map_or(IN_MEMORY, Tasks::journal_bytes);
    let (segments, segment_bytes) =
        core.tasks.as_ref().map_or((SEGMENTS, SEGMENT_BYTES), Tasks::segment_bounds);
    let questions = core.profile.limits.max_open_inputs;
    JournalLimits { bytes, questions, leaves: false, segments, segment_bytes }
}
