//! The catalogs of one upstream in memory, per capability class. One task at a time reads each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use outlive::client::relay::CapabilityClass;
use tokio::sync::watch;

use super::definitions::Definitions;

/// Catalogs of one upstream.
#[derive(Debug, Default)]
pub(crate) struct Catalogs {
    slots: Mutex<HashMap<CapabilityClass, Slot>>,
}

#[derive(Debug, Default)]
struct Slot {
    definitions: Option<Arc<Definitions>>,
    /// Whether a task reads the lists; it ends with a signal.
    reading: Option<watch::Receiver<bool>>,
    /// Whether the lists changed while they were read.
    is_stale: bool,
    /// Whether a refresh is planned.
    is_scheduled: bool,
    /// Time at which the lists are no longer fresh.
    expires: Option<Instant>,
}

/// A catalog, or the way to one.
#[derive(Debug)]
pub(crate) enum Ensured {
    Known,
    /// Another task reads the lists.
    Reading(watch::Receiver<bool>),
    /// The caller must read the lists, and end with [`Catalogs::settle`].
    Missing(Reading),
}

/// The task of reading the lists of one capability class. Dropping it lets another caller try.
#[derive(Debug)]
pub(crate) struct Reading {
    done: watch::Sender<bool>,
    pub(crate) class: CapabilityClass,
}

impl Catalogs {
    /// Returns the catalog of a class, if it is in memory.
    pub(crate) fn get(&self, class: CapabilityClass) -> Option<Arc<Definitions>> {
        self.lock().get(&class)?.definitions.clone()
    }

    /// Returns the newest state of a class. At most one caller reads the lists.
    pub(crate) fn ensure(&self, class: CapabilityClass) -> Ensured {
        let mut slots = self.lock();
        let slot = slots.entry(class).or_default();
        match (&slot.definitions, &slot.reading) {
            (Some(_), _) => Ensured::Known,
            (None, Some(reading)) if is_running(reading) => Ensured::Reading(reading.clone()),
            (None, _) => Ensured::Missing(start(slot, class)),
        }
    }

    /// Returns the right to read the lists again, unless a task reads them; that task then reads
    /// them once more.
    pub(crate) fn refresh(&self, class: CapabilityClass) -> Option<Reading> {
        let mut slots = self.lock();
        let slot = slots.entry(class).or_default();
        slot.is_scheduled = false;
        if slot.reading.as_ref().is_some_and(is_running) {
            slot.is_stale = true;
            return None;
        }
        Some(start(slot, class))
    }

    /// Plans a refresh. Returns `false` if one is planned.
    pub(crate) fn schedule(&self, class: CapabilityClass) -> bool {
        let mut slots = self.lock();
        let slot = slots.entry(class).or_default();
        !std::mem::replace(&mut slot.is_scheduled, true)
    }

    pub(crate) fn is_reading(&self, class: CapabilityClass) -> bool {
        let slots = self.lock();
        slots.get(&class).and_then(|slot| slot.reading.as_ref()).is_some_and(is_running)
    }

    /// Stores the outcome of reading. Returns whether the lists differ from the earlier ones, and
    /// whether they must be read once more.
    pub(crate) fn settle(&self, reading: &Reading, read: Option<Arc<Definitions>>) -> Settled {
        let mut slots = self.lock();
        let slot = slots.entry(reading.class).or_default();
        let is_stale = std::mem::take(&mut slot.is_stale);
        let Some(read) = read else { return Settled { is_changed: false, is_stale: false } };
        slot.expires = read.ttl.and_then(|ttl| Instant::now().checked_add(ttl));
        let known = slot.definitions.as_ref().map(|known| known.digest());
        let is_changed = known != Some(read.digest());
        slot.definitions = Some(read);
        Settled { is_changed, is_stale }
    }

    /// Returns the classes whose lists are no longer fresh, and forgets that.
    pub(crate) fn take_expired(&self, now: Instant) -> Vec<CapabilityClass> {
        let mut slots = self.lock();
        let expired = slots.iter_mut().filter_map(|(class, slot)| {
            let is_due = slot.expires.is_some_and(|at| at <= now);
            is_due.then(|| slot.expires = None).map(|()| *class)
        });
        expired.collect()
    }

    /// Returns the largest catalog, for numbers in the status.
    pub(crate) fn largest(&self) -> Option<Arc<Definitions>> {
        let slots = self.lock();
        let known = slots.values().filter_map(|slot| slot.definitions.clone());
        known.max_by_key(|known| known.tools.len())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CapabilityClass, Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Outcome of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) is_changed: bool,
    pub(crate) is_stale: bool,
}

impl Reading {
    /// Returns a receiver that gets `true` at the end.
    pub(crate) fn done(&self) -> watch::Receiver<bool> {
        self.done.subscribe()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let _ = self.done.send(true);
    }
}

fn start(slot: &mut Slot, class: CapabilityClass) -> Reading {
    let (done, reading) = watch::channel(false);
    slot.reading = Some(reading);
    Reading { done, class }
}

fn is_running(reading: &watch::Receiver<bool>) -> bool {
    !*reading.borrow() && reading.has_changed().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_reads_and_the_others_wait_for_it() {
        let catalogs = Catalogs::default();
        let Ensured::Missing(reading) = catalogs.ensure(CapabilityClass::NONE) else {
            panic!("the first caller reads");
        };
        assert!(matches!(catalogs.ensure(CapabilityClass::NONE), Ensured::Reading(_)));
        assert!(catalogs.refresh(CapabilityClass::NONE).is_none());
        let settled = catalogs.settle(&reading, Some(Arc::default()));
        assert_eq!(settled, Settled { is_changed: true, is_stale: true });
        drop(reading);
        assert!(matches!(catalogs.ensure(CapabilityClass::NONE), Ensured::Known));
        let reading = catalogs.refresh(CapabilityClass::NONE).unwrap();
        let settled = catalogs.settle(&reading, Some(Arc::default()));
        assert_eq!(settled, Settled { is_changed: false, is_stale: false });
    }

    #[test]
    fn abandoned_reading_is_taken_by_the_next_caller() {
        let catalogs = Catalogs::default();
        drop(catalogs.ensure(CapabilityClass::NONE));
        assert!(matches!(catalogs.ensure(CapabilityClass::NONE), Ensured::Missing(_)));
    }
}
