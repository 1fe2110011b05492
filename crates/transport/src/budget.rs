//! Bytes that callers make the server hold in memory: per caller, and of all callers together.
//!
//! A [`Charge`] is what one request, response or stream holds. It is released when it is dropped,
//! and travels with its bytes: see [`Charge::own`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::Notify, time::timeout};

use crate::caller::Caller;

/// What is not worth counting: the size of a plain call. There are as many of these as there may be
/// connections and waiting calls, which have limits of their own.
pub(crate) const SMALL: usize = 4 << 10;

/// Counts bytes. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    max_per_caller: usize,
    max: usize,
    names: Names,
    used: Mutex<Used>,
    released: Notify,
}

/// What the two limits are called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names {
    pub(crate) per_caller: &'static str,
    pub(crate) total: &'static str,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    callers: HashMap<Caller, usize>,
}

/// Bytes that are held for a caller.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Budget,
    caller: Option<Caller>,
    bytes: usize,
}

/// A limit is used up: its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded(pub(crate) &'static str);

impl Budget {
    pub(crate) fn new(max_per_caller: usize, max: usize, names: Names) -> Self {
        let (used, released) = (Mutex::default(), Notify::new());
        Self(Arc::new(Inner { max_per_caller, max, names, used, released }))
    }

    /// A charge of nothing yet.
    pub(crate) fn open(&self, caller: Option<Caller>) -> Charge {
        Charge { budget: self.clone(), caller, bytes: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Charge {
    /// Holds so many bytes more. What is the only thing that is held may be of any size: another
    /// limit, or the application, decides how large one message is.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Exceeded> {
        let Inner { max_per_caller, max, names, .. } = *self.budget.0;
        let over = |used: usize, max: usize| used > self.bytes && used + bytes > max;
        let mut used = self.budget.lock();
        if let Some(caller) = &self.caller
            && over(used.callers.get(caller).copied().unwrap_or(0), max_per_caller)
        {
            return Err(Exceeded(names.per_caller));
        }
        if over(used.total, max) {
            return Err(Exceeded(names.total));
        }
        used.total += bytes;
        if let Some(caller) = &self.caller {
            match used.callers.get_mut(caller) {
                Some(held) => *held += bytes,
                None => drop(used.callers.insert(caller.clone(), bytes)),
            }
        }
        drop(used);
        self.bytes += bytes;
        Ok(())
    }

    /// The same, and waits for others to release theirs, but not for longer than this.
    pub(crate) async fn grow_within(
        &mut self,
        bytes: usize,
        wait: Duration,
    ) -> Result<(), Exceeded> {
        let Err(exceeded) = self.grow(bytes) else { return Ok(()) };
        let budget = self.budget.clone();
        let grown = async {
            loop {
                let mut released = std::pin::pin!(budget.0.released.notified());
                // Before the look, so that what is released after it is not missed.
                released.as_mut().enable();
                if self.grow(bytes).is_ok() {
                    return;
                }
                released.await;
            }
        };
        timeout(wait, grown).await.map_err(|_| exceeded)
    }

    /// Releases everything.
    pub(crate) fn clear(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes == 0 {
            return;
        }
        let mut used = self.budget.lock();
        used.total -= bytes;
        if let Some(caller) = &self.caller
            && let Some(held) = used.callers.get_mut(caller)
        {
            *held -= bytes;
            if *held == 0 {
                used.callers.remove(caller);
            }
        }
        drop(used);
        self.budget.0.released.notify_waiters();
    }

    /// Ties the charge to bytes: it is released with the last reference to them.
    pub(crate) fn own(self, bytes: Bytes) -> Bytes {
        struct Owned(Bytes, #[expect(dead_code, reason = "is released with the bytes")] Charge);
        impl AsRef<[u8]> for Owned {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Bytes::from_owner(Owned(bytes, self))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use outlive_protocol::Principal;

    use super::{Budget, Charge, Exceeded, Names};
    use crate::caller::Caller;

    fn budget() -> Budget {
        Budget::new(100, 150, Names { per_caller: "mine", total: "all" })
    }

    fn charge(budget: &Budget, name: &str) -> Charge {
        budget.open(Caller::new(&Principal::named(name), None))
    }

    #[test]
    fn a_caller_has_its_share_and_all_have_the_total() {
        let budget = budget();
        let (mut first, mut second) = (charge(&budget, "ann"), charge(&budget, "ann"));
        assert_eq!(first.grow(60), Ok(()));
        assert_eq!(second.grow(60), Err(Exceeded("mine")));
        assert_eq!(second.grow(40), Ok(()));
        let mut other = charge(&budget, "ben");
        assert_eq!(other.grow(60), Err(Exceeded("all")));
        assert_eq!(other.grow(50), Ok(()));
        first.clear();
        assert_eq!(other.grow(50), Ok(()));
        drop((first, second, other));
        assert_eq!(budget.lock().total, 0);
        assert!(budget.lock().callers.is_empty());
    }

    #[test]
    fn what_is_held_alone_may_be_of_any_size() {
        let budget = budget();
        let mut charge = charge(&budget, "ann");
        assert_eq!((charge.grow(90), charge.grow(500)), (Ok(()), Ok(())));
        let mut next = self::charge(&budget, "ann");
        assert_eq!(next.grow(1), Err(Exceeded("mine")));
    }

    #[test]
    fn a_charge_goes_with_the_last_reference_to_its_bytes() {
        let budget = budget();
        let mut charge = charge(&budget, "ann");
        charge.grow(5).unwrap();
        let bytes = charge.own(Bytes::from_static(b"12345"));
        let part = bytes.slice(1..2);
        drop(bytes);
        assert_eq!(budget.lock().total, 5);
        drop(part);
        assert_eq!(budget.lock().total, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_goes_on_when_others_have_released_theirs() {
        let budget = budget();
        let (mut first, mut second) = (charge(&budget, "ann"), charge(&budget, "ann"));
        first.grow(100).unwrap();
        let wait = Duration::from_secs(5);
        assert_eq!(second.grow_within(10, wait).await, Err(Exceeded("mine")));
        let (grown, ()) = tokio::join!(second.grow_within(10, wait), async { drop(first) });
        assert_eq!(grown, Ok(()));
    }
}
