//! The maximum number of processes of all upstreams.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use outlive::server::durable::Capacity;

/// The maximum number of processes of all upstreams, and the number in use.
#[derive(Debug)]
pub(crate) struct ProcessLimit {
    max: AtomicUsize,
    used: AtomicUsize,
    /// Tasks that wait in the store until they may start a process. It has no permits.
    queue: Capacity,
}

/// The place of one process. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct ProcessPlace {
    limit: Arc<ProcessLimit>,
    /// Whether a process is started in this place. A place that was only tried wakes no task: a task
    /// that gets no place would else wake the next one, without an end.
    is_occupied: bool,
}

impl ProcessLimit {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max: max.into(), used: 0.into(), queue: Capacity::new("max_processes", 0) })
    }

    pub(crate) fn set(&self, max: usize) {
        self.max.store(max, Ordering::Relaxed);
        self.wake();
    }

    /// Returns the queue of the tasks that wait for a process.
    pub(crate) fn queue(&self) -> &Capacity {
        &self.queue
    }

    /// Lets the next waiting task try again, because a process ended or can be stopped.
    fn wake(&self) {
        if self.queue.waiting() > 0 {
            self.queue.set_max(1);
            self.queue.set_max(0);
        }
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
        ProcessPlace { limit: Arc::clone(self), is_occupied: false }
    }
}

impl ProcessPlace {
    /// Returns the place of a process that is started now.
    pub(super) fn occupied(self) -> Self {
        let mut place = self;
        place.is_occupied = true;
        place
    }

    /// Lets the next waiting task try again, because the process of this place can be stopped.
    pub(super) fn wake(&self) {
        self.limit.wake();
    }
}

impl Drop for ProcessPlace {
    fn drop(&mut self) {
        self.limit.used.fetch_sub(1, Ordering::AcqRel);
        if self.is_occupied {
            self.limit.wake();
        }
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
