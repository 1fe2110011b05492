//! [`FairQueue`]: a queue in which callers take turns.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// One queue per caller, and the order of the callers.
pub(crate) struct FairQueue<W> {
    order: VecDeque<Arc<str>>,
    queues: HashMap<Arc<str>, VecDeque<W>>,
    count: usize,
}

impl<W> FairQueue<W> {
    /// Returns the number of waiters.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds a waiter to the end of its caller's queue.
    pub(crate) fn push(&mut self, caller: &str, waiter: W) {
        self.count += 1;
        if let Some(queue) = self.queues.get_mut(caller) {
            return queue.push_back(waiter);
        }
        let caller: Arc<str> = caller.into();
        self.order.push_back(Arc::clone(&caller));
        self.queues.insert(caller, VecDeque::from([waiter]));
    }

    /// Removes the next waiter, in turn by caller.
    pub(crate) fn pop(&mut self) -> Option<W> {
        loop {
            let caller = self.order.pop_front()?;
            let Some(queue) = self.queues.get_mut(&caller) else { continue };
            let waiter = queue.pop_front();
            match queue.is_empty() {
                true => drop(self.queues.remove(&caller)),
                false => self.order.push_back(caller),
            }
            let Some(waiter) = waiter else { continue };
            self.count -= 1;
            return Some(waiter);
        }
    }

    /// Removes the waiters of a caller for which `keep` returns `false`.
    pub(crate) fn retain(&mut self, caller: &str, keep: impl FnMut(&W) -> bool) {
        if let Some(queue) = self.queues.get_mut(caller) {
            let before = queue.len();
            queue.retain(keep);
            self.count -= before - queue.len();
        }
    }

    /// Returns the number of waiters of a caller.
    pub(crate) fn count_of(&self, caller: &str) -> usize {
        self.queues.get(caller).map_or(0, VecDeque::len)
    }
}

impl<W> Default for FairQueue<W> {
    fn default() -> Self {
        Self { order: VecDeque::new(), queues: HashMap::new(), count: 0 }
    }
}
