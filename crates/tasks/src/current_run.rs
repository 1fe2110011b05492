//! The run and the step that the current thread polls.
//!
//! A handler can move its context into a spawned task. An input request from that task could never
//! be resolved, because the engine may drop and replay the run. Each use of a journal therefore
//! checks that the current thread polls the journal's run.

use std::{cell::RefCell, sync::Arc};

/// ID of a run: the address of a value that lives as long as the run.
pub type RunId = usize;

#[derive(Clone, Default)]
struct Polled {
    run: Option<RunId>,
    step: Option<Arc<str>>,
}

thread_local! {
    static POLLED: RefCell<Polled> = const { RefCell::new(Polled { run: None, step: None }) };
}

/// Restores the previous run and step on drop, also if a poll panics.
struct Restore(Polled);

impl Drop for Restore {
    fn drop(&mut self) {
        POLLED.replace(std::mem::take(&mut self.0));
    }
}

/// Calls `poll` with `run` as the current run.
pub fn poll_as<T>(run: RunId, poll: impl FnOnce() -> T) -> T {
    let _restore = Restore(POLLED.replace(Polled { run: Some(run), step: None }));
    poll()
}

/// Calls `poll` with `step` as the current step of the current run.
pub fn in_step<T>(step: &Arc<str>, poll: impl FnOnce() -> T) -> T {
    let run = POLLED.with_borrow(|polled| polled.run);
    let _restore = Restore(POLLED.replace(Polled { run, step: Some(Arc::clone(step)) }));
    poll()
}

/// Returns whether the current thread polls this run.
pub fn polling(run: RunId) -> bool {
    POLLED.with_borrow(|polled| polled.run == Some(run))
}

/// Returns the step of this run whose body the current thread polls.
pub fn step_of(run: RunId) -> Option<Arc<str>> {
    POLLED.with_borrow(|polled| polled.step.clone().filter(|_| polled.run == Some(run)))
}
