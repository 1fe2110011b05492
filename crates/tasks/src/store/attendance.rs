//! Attendance of a bridged task: its waiting calls, and the time of its abandonment. The stores in
//! memory and in SQLite compute it here, and `postgres/schema/bridge.sql` computes it alike.

use std::time::Duration;

use super::{
    bridge::Departure,
    id::{UnixMillis, WorkerId},
};
use crate::time::millis;

/// The calls that wait for a bridged task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attendance {
    /// Worker in whose process a call waits; `None` if no call waits.
    pub(super) attended_by: Option<WorkerId>,
    /// Number of waiting calls of that worker.
    pub(super) attendants: u32,
    /// Time before which no call joins.
    pub(super) joinable_at: UnixMillis,
    /// Abandon timeout, in milliseconds.
    pub(super) abandon_after: u64,
    /// When the task is abandoned.
    pub(super) abandon_at: Option<UnixMillis>,
    /// Number of pending results that were sent.
    pub(super) pending_results: u32,
}

impl Attendance {
    /// Creates the attendance of a new task, which one call waits for.
    pub(super) fn new(worker: WorkerId, abandon_timeout: Duration) -> Self {
        Self {
            attended_by: Some(worker),
            attendants: 1,
            joinable_at: 0,
            abandon_after: millis(abandon_timeout),
            abandon_at: None,
            pending_results: 0,
        }
    }

    /// Records that a call of `worker` waits.
    pub(super) fn attend(&mut self, worker: &WorkerId) {
        let is_same = self.attended_by.as_ref() == Some(worker);
        self.attendants = if is_same { self.attendants + 1 } else { 1 };
        self.attended_by = Some(worker.clone());
        (self.joinable_at, self.abandon_at) = (0, None);
    }

    /// Records that a call of `worker` stops waiting. A client that knows the task does not abandon
    /// it.
    pub(super) fn leave(
        &mut self,
        worker: &WorkerId,
        how: Departure,
        is_acknowledged: bool,
        now: UnixMillis,
    ) {
        if how == Departure::PendingResult {
            self.pending_results += 1;
            self.abandon_at = None;
        }
        // Another worker may attend the task by now, if its client was faster than this departure.
        if self.attended_by.as_ref() != Some(worker) {
            return;
        }
        self.attendants = self.attendants.saturating_sub(1);
        if self.attendants > 0 {
            return;
        }
        self.attended_by = None;
        self.joinable_at = match how {
            Departure::Round { return_timeout } => now.saturating_add(millis(return_timeout)),
            Departure::PendingResult | Departure::Lost => 0,
        };
        if !is_acknowledged && how != Departure::PendingResult {
            self.restart_abandonment(now);
        }
    }

    /// Starts the abandon timeout again.
    pub(super) fn restart_abandonment(&mut self, now: UnixMillis) {
        self.abandon_at = Some(now.saturating_add(self.abandon_after));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Attendance;
    use crate::store::{Departure, WorkerId};

    const TIMEOUT: Duration = Duration::from_secs(1);

    fn attendance() -> Attendance {
        Attendance::new(WorkerId::new("v"), TIMEOUT)
    }

    #[test]
    fn departure_of_last_call_ends_attendance() {
        let (v, mut call) = (WorkerId::new("v"), attendance());
        call.attend(&v);
        call.leave(&v, Departure::Lost, false, 10);
        assert_eq!((call.attendants, call.abandon_at), (1, None), "another call waits");
        call.leave(&v, Departure::Lost, false, 20);
        assert_eq!((call.attended_by, call.abandon_at), (None, Some(1_020)));
    }

    #[test]
    fn late_departure_of_former_worker_changes_nothing() {
        let (v, w, mut call) = (WorkerId::new("v"), WorkerId::new("w"), attendance());
        call.attend(&w);
        let before = call.clone();
        call.leave(&v, Departure::Round { return_timeout: TIMEOUT }, false, 10);
        assert_eq!(call, before);
        call.leave(&v, Departure::PendingResult, false, 10);
        assert_eq!((call.attended_by, call.pending_results), (Some(w), 1));
    }

    #[test]
    fn round_delays_joins_until_its_timeout() {
        let (v, mut call) = (WorkerId::new("v"), attendance());
        call.leave(&v, Departure::Round { return_timeout: TIMEOUT }, false, 10);
        assert_eq!((call.joinable_at, call.abandon_at), (1_010, Some(1_010)));
        call.attend(&v);
        assert_eq!((call.joinable_at, call.abandon_at, call.attendants), (0, None, 1));
        call.leave(&v, Departure::Round { return_timeout: TIMEOUT }, true, 20);
        assert_eq!((call.joinable_at, call.abandon_at), (1_020, None), "the client knows the task");
    }
}
