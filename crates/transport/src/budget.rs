//! Budgets for the bytes that callers make the server hold in memory: per caller and in total.
//!
//! A [`Charge`] counts the bytes of one request, response or stream. Dropping the charge releases
//! its bytes. [`Charge::own`] ties a charge to the bytes that it counts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::Notify, time::timeout};

use crate::caller::Caller;

/// Size of a plain call. Smaller messages are not counted, because the limits on connections and
/// waiting calls bound them.
pub(crate) const SMALL: usize = 4 << 10;

/// Counter of bytes in memory. Clones share the counter.
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

/// Names of the two limits, for error messages.
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

/// Bytes in memory that count against a caller.
#[derive(Debug)]
pub(crate) struct Charge {
    budget: Budget,
    caller: Option<Caller>,
    bytes: usize,
}

/// Name of the limit that a charge would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded(pub(crate) &'static str);

impl Budget {
    pub(crate) fn new(max_per_caller: usize, max: usize, names: Names) -> Self {
        let (used, released) = (Mutex::default(), Notify::new());
        Self(Arc::new(Inner { max_per_caller, max, names, used, released }))
    }

    /// Returns an empty charge for `caller`.
    pub(crate) fn open(&self, caller: Option<Caller>) -> Charge {
        Charge { budget: self.clone(), caller, bytes: 0 }
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Charge {
    /// Adds `bytes` to the charge.
    ///
    /// If the charge is the only one in use, `bytes` may exceed the budget: the limit on message
    /// size, or the application, bounds a single message.
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

    /// Adds `bytes` to the charge. Waits up to `wait` for other charges to be released.
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
                // Enabled before the attempt, so that a release after the attempt is not missed.
                released.as_mut().enable();
                if self.grow(bytes).is_ok() {
                    return;
                }
                released.await;
            }
        };
        timeout(wait, grown).await.map_err(|_| exceeded)
    }

    /// Releases all bytes of the charge.
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

    /// Ties the charge to `bytes`. Dropping the last reference to `bytes` releases the charge.
    pub(crate) fn own(self, bytes: Bytes) -> Bytes {
        struct Owned(
            Bytes,
            #[expect(dead_code, reason = "dropped with the bytes to release the charge")] Charge,
        );
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
    fn charge_above_caller_share_or_total_is_rejected() {
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
    fn charge_that_is_alone_may_exceed_the_limits() {
        let budget = budget();
        let mut charge = charge(&budget, "ann");
        assert_eq!((charge.grow(90), charge.grow(500)), (Ok(()), Ok(())));
        let mut next = self::charge(&budget, "ann");
        assert_eq!(next.grow(1), Err(Exceeded("mine")));
    }

    #[test]
    fn charge_is_released_with_last_reference_to_its_bytes() {
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
    async fn waiting_charge_continues_when_another_charge_is_released() {
        let budget = budget();
        let (mut first, mut second) = (charge(&budget, "ann"), charge(&budget, "ann"));
        first.grow(100).unwrap();
        let wait = Duration::from_secs(5);
        assert_eq!(second.grow_within(10, wait).await, Err(Exceeded("mine")));
        let (grown, ()) = tokio::join!(second.grow_within(10, wait), async { drop(first) });
        assert_eq!(grown, Ok(()));
    }
}
