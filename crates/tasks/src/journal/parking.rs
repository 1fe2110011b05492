//! Guards that prevent the parking of a run.

use super::state::Journal;

impl Journal {
    /// Prevents that the run is parked, suspended or released, as if a step were active. Each call
    /// needs an [`allow_parking`](Self::allow_parking).
    pub fn prevent_parking(&self) {
        self.lock().parking_guards += 1;
    }

    /// Removes one guard of [`prevent_parking`](Self::prevent_parking).
    pub fn allow_parking(&self) {
        let mut state = self.lock();
        state.parking_guards = state.parking_guards.saturating_sub(1);
    }

    /// Returns whether the run must not be parked.
    pub fn is_unparkable(&self) -> bool {
        self.lock().parking_guards > 0
    }
}
