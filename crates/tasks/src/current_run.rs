//! Which run this thread polls, and which of its steps.
//!
//! A handler can move its context into a spawned task. An input request from there could never be resolved,
//! because the run may be dropped and replayed. So each use of a journal checks that its run is the one that
//! this thread polls.

use std::{cell::RefCell, sync::Arc};

/// The ID of a run while it exists: the address of something that lives as long.
pub type RunId = usize;

#[derive(Clone, Default)]
struct Polled {
    run: Option<RunId>,
    step: Option<Arc<str>>,
}

thread_local! {
    static POLLED: RefCell<Polled> = const { RefCell::new(Polled { run: None, step: None }) };
}

/// Restores what was polled before, also when a poll panics.
struct Restore(Polled);

impl Drop for Restore {
    fn drop(&mut self) {
        POLLED.replace(std::mem::take(&mut self.0));
    }
}

/// Polls as a run.
pub fn poll_as<T>(run: RunId, poll: impl FnOnce() -> T) -> T {
    let _restore = Restore(POLLED.replace(Polled { run: Some(run), step: None }));
    poll()
}

/// Polls as a step of the run that is being polled.
pub fn in_step<T>(step: &Arc<str>, poll: impl FnOnce() -> T) -> T {
    let run = POLLED.with_borrow(|polled| polled.run);
    let _restore = Restore(POLLED.replace(Polled { run, step: Some(Arc::clone(step)) }));
    poll()
}

/// Returns whether this thread polls this run.
pub fn polling(run: RunId) -> bool {
    POLLED.with_borrow(|polled| polled.run == Some(run))
}

/// Returns the step of this run whose body is being polled.
pub fn step_of(run: RunId) -> Option<Arc<str>> {
    POLLED.with_borrow(|polled| polled.step.clone().filter(|_| polled.run == Some(run)))
}
