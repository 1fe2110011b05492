//! Deliveries in memory, with their indexes.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{BuildHasher, Hasher, RandomState},
};

use super::row::{Event, Row};
use crate::{
    store::{DELIVERY_RETENTION, Delivery, MAX_DELIVERIES, TaskId, UnixMillis},
    time::millis,
};

/// Deliveries and their indexes. Rows are changed only by [`Deliveries::change`], which updates the
/// indexes.
#[derive(Default)]
pub(super) struct Deliveries {
    rows: HashMap<String, Delivery>,
    /// Number of deliveries so far.
    created: u64,
    /// Deliveries by target and the time when they are due. Dead ones are not among them.
    due: BTreeSet<(String, UnixMillis, String)>,
    /// All deliveries by the time of their event.
    by_time: BTreeSet<(UnixMillis, String)>,
}

impl Deliveries {
    /// Writes the deliveries of the events in a row, and removes these events.
    pub(super) fn add(&mut self, task: &TaskId, row: &mut Row) {
        for Event { event, input_request, at } in std::mem::take(&mut row.events) {
            for subscription in row.notify.iter().filter(|one| one.event == event) {
                let target = subscription.target.as_str();
                self.created += 1;
                let id = new_id(self.created);
                let delivery = Delivery::new(id, task.clone(), event, target, at);
                self.insert(delivery.input_request(input_request.clone()));
            }
        }
    }

    /// Returns the due deliveries of a target, the first due first.
    pub(super) fn due_by(&self, target: &str, now: UnixMillis, limit: usize) -> Vec<String> {
        let due = self.of(target).take_while(|(due, _)| *due <= now).take(limit);
        due.map(|(_, id)| id.to_owned()).collect()
    }

    /// Returns when the first delivery of a target is due.
    pub(super) fn next_due(&self, target: &str) -> Option<UnixMillis> {
        self.of(target).next().map(|(due, _)| due)
    }

    /// Returns the deliveries with a failed attempt, newest event first.
    pub(super) fn failing(&self) -> impl Iterator<Item = &Delivery> {
        let newest = self.by_time.iter().rev().filter_map(|(_, id)| self.rows.get(id));
        newest.filter(|delivery| delivery.error.is_some())
    }

    /// Changes a row and its index entries. Returns `None` for an unknown delivery.
    pub(super) fn change<T>(
        &mut self,
        id: &str,
        change: impl FnOnce(&mut Delivery) -> T,
    ) -> Option<T> {
        let mut delivery = self.remove(id)?;
        let changed = change(&mut delivery);
        self.insert(delivery);
        Some(changed)
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Delivery> {
        let delivery = self.rows.remove(id)?;
        self.by_time.remove(&(delivery.at, delivery.id.clone()));
        if let Some(due) = delivery.due_at {
            self.due.remove(&(delivery.target.clone(), due, delivery.id.clone()));
        }
        Some(delivery)
    }

    /// Deletes old deliveries, and the oldest above the maximum.
    pub(super) fn sweep(&mut self, now: UnixMillis) {
        let old = now.saturating_sub(millis(DELIVERY_RETENTION));
        while let Some((at, id)) = self.by_time.first().cloned() {
            if at > old && self.rows.len() <= MAX_DELIVERIES {
                return;
            }
            self.remove(&id);
        }
    }

    fn insert(&mut self, delivery: Delivery) {
        self.by_time.insert((delivery.at, delivery.id.clone()));
        if let Some(due) = delivery.due_at {
            self.due.insert((delivery.target.clone(), due, delivery.id.clone()));
        }
        self.rows.insert(delivery.id.clone(), delivery);
    }

    /// Returns the deliveries of a target that are not dead, the first due first.
    fn of<'a>(&'a self, target: &'a str) -> impl Iterator<Item = (UnixMillis, &'a str)> {
        let from = (target.to_owned(), 0, String::new());
        let of_target = self.due.range(from..).take_while(move |(name, ..)| name == target);
        of_target.map(|(_, due, id)| (*due, id.as_str()))
    }
}

/// Returns the ID of a delivery by its number. Deliveries of one millisecond are sent in the order of
/// their IDs. Receivers compare IDs, so a random part makes those of two processes differ.
fn new_id(number: u64) -> String {
    format!("{number:016x}{:016x}", RandomState::new().build_hasher().finish())
}
