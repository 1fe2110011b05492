//! The catalogs of one upstream in memory, per capability class, and per principal if the credential
//! belongs to it. One task at a time reads each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::watch;

use super::definitions::Definitions;
use crate::upstream::CatalogKey;

/// Catalogs of one upstream in memory. The one that is unused longest is forgotten.
const MAX_CATALOGS: usize = 512;

/// Shortest time after which lists are read again, whatever the upstream says.
const MIN_TTL: Duration = Duration::from_secs(10);

/// Catalogs of one upstream.
#[derive(Debug, Default)]
pub(crate) struct Catalogs {
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    by_key: HashMap<CatalogKey, Slot>,
    /// Number of uses, which orders them.
    uses: u64,
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
    /// Number of the last use.
    used: u64,
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

/// The task of reading the lists of one catalog. Dropping it lets another caller try.
#[derive(Debug)]
pub(crate) struct Reading {
    done: watch::Sender<bool>,
    pub(crate) key: CatalogKey,
}

impl Slots {
    /// Returns the slot of a catalog. Forgets another one if there are too many.
    fn of(&mut self, key: &CatalogKey) -> &mut Slot {
        self.uses += 1;
        if !self.by_key.contains_key(key) && self.by_key.len() >= MAX_CATALOGS {
            let idle = self.by_key.iter().filter(|(_, slot)| !slot.is_reading());
            let oldest = idle.min_by_key(|(_, slot)| slot.used).map(|(key, _)| key.clone());
            if let Some(oldest) = oldest {
                self.by_key.remove(&oldest);
            }
        }
        let slot = self.by_key.entry(key.clone()).or_default();
        slot.used = self.uses;
        slot
    }
}

impl Slot {
    fn is_reading(&self) -> bool {
        self.reading.as_ref().is_some_and(is_running)
    }

    fn start(&mut self, key: &CatalogKey) -> Reading {
        let (done, reading) = watch::channel(false);
        self.reading = Some(reading);
        Reading { done, key: key.clone() }
    }
}

impl Catalogs {
    /// Returns a catalog, if it is in memory.
    pub(crate) fn get(&self, key: &CatalogKey) -> Option<Arc<Definitions>> {
        let mut slots = self.lock();
        let known = slots.by_key.get(key)?.definitions.clone()?;
        slots.of(key);
        Some(known)
    }

    /// Returns the newest state of a catalog. At most one caller reads the lists.
    pub(crate) fn ensure(&self, key: &CatalogKey) -> Ensured {
        let mut slots = self.lock();
        let slot = slots.of(key);
        match (&slot.definitions, &slot.reading) {
            (Some(_), _) => Ensured::Known,
            (None, Some(reading)) if is_running(reading) => Ensured::Reading(reading.clone()),
            (None, _) => Ensured::Missing(slot.start(key)),
        }
    }

    /// Returns the right to read the lists again, unless a task reads them; that task then reads
    /// them once more.
    pub(crate) fn refresh(&self, key: &CatalogKey) -> Option<Reading> {
        let mut slots = self.lock();
        let slot = slots.of(key);
        slot.is_scheduled = false;
        if slot.is_reading() {
            slot.is_stale = true;
            return None;
        }
        Some(slot.start(key))
    }

    /// Plans a refresh. Returns `false` if one is planned.
    pub(crate) fn schedule(&self, key: &CatalogKey) -> bool {
        let mut slots = self.lock();
        !std::mem::replace(&mut slots.of(key).is_scheduled, true)
    }

    pub(crate) fn is_reading(&self, key: &CatalogKey) -> bool {
        self.lock().by_key.get(key).is_some_and(Slot::is_reading)
    }

    /// Stores the outcome of reading. Returns whether the lists differ from the earlier ones, and
    /// whether they must be read once more.
    ///
    /// Calls `on_change` before others see different lists, so that they use no view without them.
    pub(crate) fn settle(
        &self,
        reading: &Reading,
        read: Option<Arc<Definitions>>,
        on_change: impl FnOnce(),
    ) -> Settled {
        let mut slots = self.lock();
        let slot = slots.of(&reading.key);
        let is_stale = std::mem::take(&mut slot.is_stale);
        let Some(read) = read else { return Settled { is_changed: false, is_stale: false } };
        slot.expires = fresh_for(read.ttl).and_then(|ttl| Instant::now().checked_add(ttl));
        let known = slot.definitions.as_ref().map(|known| known.digest());
        let is_changed = known != Some(read.digest());
        slot.definitions = Some(read);
        if is_changed {
            on_change();
        }
        Settled { is_changed, is_stale }
    }

    /// Takes the keys of the catalogs whose lists have expired.
    pub(crate) fn take_expired(&self, now: Instant) -> Vec<CatalogKey> {
        let mut slots = self.lock();
        let expired = slots.by_key.iter_mut().filter_map(|(key, slot)| {
            let is_due = slot.expires.is_some_and(|at| at <= now);
            is_due.then(|| slot.expires = None).map(|()| key.clone())
        });
        expired.collect()
    }

    /// Returns the largest catalog, for numbers in the status.
    pub(crate) fn largest(&self) -> Option<Arc<Definitions>> {
        let slots = self.lock();
        let known = slots.by_key.values().filter_map(|slot| slot.definitions.clone());
        known.max_by_key(|known| known.tools.len())
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
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

/// Returns the time after which lists are read again. Zero says nothing: such lists are read again
/// after notifications.
fn fresh_for(ttl: Option<Duration>) -> Option<Duration> {
    ttl.filter(|ttl| !ttl.is_zero()).map(|ttl| ttl.max(MIN_TTL))
}

fn is_running(reading: &watch::Receiver<bool>) -> bool {
    !*reading.borrow() && reading.has_changed().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_reads_and_the_others_wait_for_it() {
        let (catalogs, key) = (Catalogs::default(), CatalogKey::default());
        let Ensured::Missing(reading) = catalogs.ensure(&key) else {
            panic!("the first caller reads");
        };
        assert!(matches!(catalogs.ensure(&key), Ensured::Reading(_)));
        assert!(catalogs.refresh(&key).is_none());
        let settled = catalogs.settle(&reading, Some(Arc::default()), || ());
        assert_eq!(settled, Settled { is_changed: true, is_stale: true });
        drop(reading);
        assert!(matches!(catalogs.ensure(&key), Ensured::Known));
        let reading = catalogs.refresh(&key).unwrap();
        let settled = catalogs.settle(&reading, Some(Arc::default()), || ());
        assert_eq!(settled, Settled { is_changed: false, is_stale: false });
    }

    #[test]
    fn change_is_reported_before_others_see_the_lists() {
        let (catalogs, key) = (Catalogs::default(), CatalogKey::default());
        let Ensured::Missing(reading) = catalogs.ensure(&key) else {
            panic!("the first caller reads");
        };
        let mut was_hidden = false;
        catalogs.settle(&reading, Some(Arc::default()), || {
            was_hidden = catalogs.slots.try_lock().is_err();
        });
        assert!(was_hidden);
        catalogs.settle(&reading, Some(Arc::default()), || panic!("the lists are the same"));
    }

    #[test]
    fn lists_are_not_read_again_more_often_than_the_limit_allows() {
        let second = Duration::from_secs;
        assert_eq!(fresh_for(None), None);
        assert_eq!(fresh_for(Some(Duration::ZERO)), None);
        assert_eq!(fresh_for(Some(second(1))), Some(second(10)));
        assert_eq!(fresh_for(Some(second(60))), Some(second(60)));
    }

    #[test]
    fn abandoned_reading_is_taken_by_the_next_caller() {
        let (catalogs, key) = (Catalogs::default(), CatalogKey::default());
        drop(catalogs.ensure(&key));
        assert!(matches!(catalogs.ensure(&key), Ensured::Missing(_)));
    }

    #[test]
    fn catalog_of_a_principal_is_another_one_and_the_oldest_is_forgotten() {
        let catalogs = Catalogs::default();
        let of = |number: usize| CatalogKey {
            principal: Some(format!("name:{number}").into()),
            ..CatalogKey::default()
        };
        for number in 0..=MAX_CATALOGS {
            let Ensured::Missing(reading) = catalogs.ensure(&of(number)) else {
                panic!("every principal has a catalog of its own");
            };
            catalogs.settle(&reading, Some(Arc::default()), || ());
        }
        assert!(catalogs.get(&CatalogKey::default()).is_none());
        assert!(catalogs.get(&of(0)).is_none());
        assert!(catalogs.get(&of(1)).is_some() && catalogs.get(&of(MAX_CATALOGS)).is_some());
    }
}
