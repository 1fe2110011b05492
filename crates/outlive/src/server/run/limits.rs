//! Limits of a journal: in memory, in a request state, in the store.

use outlive_protocol::{Call, InputMode};
use outlive_tasks::JournalLimits;

use crate::server::env::{environment::Env, task_backend::TaskBackend};

/// Maximum bytes of a journal that stays in memory while its call waits.
const IN_MEMORY: usize = 16 << 20;

/// Maximum number of segments of an inline call, and maximum bytes of each.
const SEGMENTS: usize = 100_000;
const SEGMENT_BYTES: usize = 1 << 20;

/// Returns the limits of the journal of an inline call.
pub(crate) fn inline(env: &Env, call: &Call) -> JournalLimits {
    let suspends = call.rules().input_mode == InputMode::RoundTrip;
    // With a store, a journal that is too large for the request state is offloaded.
    let leaves = suspends && env.tasks.is_none();
    JournalLimits {
        bytes: if leaves { carried(env) } else { IN_MEMORY },
        open_inputs: env.profile.limits.max_open_inputs,
        leaves: leaves || (env.replay_on_input && env.tasks.is_none()),
        segments: SEGMENTS,
        segment_bytes: SEGMENT_BYTES,
    }
}

/// Returns the maximum bytes of a journal in a request state. Sealing adds a header, and Base64 a
/// third.
pub(crate) fn carried(env: &Env) -> usize {
    (env.profile.limits.max_request_state_bytes / 4 * 3).saturating_sub(512)
}

/// Returns the limits of the journal of a task.
pub(crate) fn task(env: &Env) -> JournalLimits {
    let bytes = env.tasks.as_ref().map_or(IN_MEMORY, TaskBackend::journal_bytes);
    let (segments, segment_bytes) =
        env.tasks.as_ref().map_or((SEGMENTS, SEGMENT_BYTES), TaskBackend::segment_bounds);
    let open_inputs = env.profile.limits.max_open_inputs;
    JournalLimits { bytes, open_inputs, leaves: false, segments, segment_bytes }
}
