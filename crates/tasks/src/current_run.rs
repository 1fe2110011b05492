//! Which run this thread is polling, and which of its steps.
//!
//! A context can be moved into a spawned task, where a question could never be answered: the run
//! it belongs to may have been dropped and begun again. So each use of a journal compares the run
//! it belongs to with the one that is being polled right here.

use std::{cell::RefCell, sync::Arc};

/// Tells runs apart while they live: the address of something that lives as long.
pub type RunId = usize;

#[derive(Clone, Default)]
struct Polled {
    run: Option<RunId>,
    step: Option<Arc<str>>,
}

thread_local! {
    static POLLED: RefCell<Polled> = const { RefCell::new(Polled { run: None, step: None }) };
}

/// Puts back what was polled before, also when a poll panics.
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

/// Whether this run is being polled on this thread.
pub fn polling(run: RunId) -> bool {
    POLLED.with_borrow(|polled| polled.run == Some(run))
}

/// The step of this run whose body is being polled.
pub fn step_of(run: RunId) -> Option<Arc<str>> {
    POLLED.with_borrow(|polled| polled.step.clone().filter(|_| polled.run == Some(run)))
}
