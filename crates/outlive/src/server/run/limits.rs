//! How much a journal may hold: in memory, with the client, in the store.

use outlive_protocol::{Call, InputMode};
use outlive_tasks::JournalLimits;

use crate::server::env::{environment::Env, task_backend::TaskBackend};

/// Bytes of a journal that stays in memory while its call waits.
const IN_MEMORY: usize = 16 << 20;

/// How many blocks a call emits that is no task, at most, and of how many bytes.
const SEGMENTS: usize = 100_000;
const SEGMENT_BYTES: usize = 1 << 20;

/// What the journal of a call may hold.
pub(crate) fn inline(env: &Env, call: &Call) -> JournalLimits {
    let suspends = call.rules().input_mode == InputMode::RoundTrip;
    // What the client is not to carry goes to the store, where there is one.
    let leaves = suspends && env.tasks.is_none();
    JournalLimits {
        bytes: if leaves { carried(env) } else { IN_MEMORY },
        open_inputs: env.profile.limits.max_open_inputs,
        leaves: leaves || (env.replay_on_input && env.tasks.is_none()),
        segments: SEGMENTS,
        segment_bytes: SEGMENT_BYTES,
    }
}

/// How much of a journal a client carries. Sealing adds a head, and a third for Base64.
pub(crate) fn carried(env: &Env) -> usize {
    (env.profile.limits.max_request_state_bytes / 4 * 3).saturating_sub(512)
}

/// The journal of a task stays with its store.
pub(crate) fn task(env: &Env) -> JournalLimits {
    let bytes = env.tasks.as_ref().map_or(IN_MEMORY, TaskBackend::journal_bytes);
    let (segments, segment_bytes) =
        env.tasks.as_ref().map_or((SEGMENTS, SEGMENT_BYTES), TaskBackend::segment_bounds);
    let open_inputs = env.profile.limits.max_open_inputs;
    JournalLimits { bytes, open_inputs, leaves: false, segments, segment_bytes }
}
