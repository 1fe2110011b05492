//! The maximum number of processes of all upstreams.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The maximum number of processes of all upstreams, and the number in use.
#[derive(Debug)]
pub(crate) struct ProcessLimit {
    max: AtomicUsize,
    used: AtomicUsize,
}

/// The place of one process. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct ProcessPlace(Arc<ProcessLimit>);

impl ProcessLimit {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max: max.into(), used: 0.into() })
    }

    pub(crate) fn set(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Takes a place, if one is free.
    pub(super) fn enter(self: &Arc<Self>) -> Option<ProcessPlace> {
        let place = self.enter_anyway();
        (self.used() <= self.max.load(Ordering::Relaxed)).then_some(place)
    }

    /// Takes a place. For a process that replaces one which is being stopped.
    pub(super) fn enter_anyway(self: &Arc<Self>) -> ProcessPlace {
        self.used.fetch_add(1, Ordering::AcqRel);
        ProcessPlace(Arc::clone(self))
    }
}

impl Drop for ProcessPlace {
    fn drop(&mut self) {
        self.0.used.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_free_again_after_its_process() {
        let limit = ProcessLimit::new(1);
        let place = limit.enter().unwrap();
        assert!(limit.enter().is_none());
        assert_eq!(limit.used(), 1);
        drop(place);
        assert!(limit.enter().is_some());
    }
}
