//! TTL of a task, which depends on its open input requests. All stores of this crate compute it
//! alike.

/// TTLs of a task, in milliseconds from its creation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    /// TTL without an open input request; `None` without a limit.
    pub(super) ttl: Option<u64>,
    /// TTL with an open input request.
    pub(super) max: u64,
}

impl Lifetime {
    /// Returns the TTL after a change in the number of open input requests, `elapsed` milliseconds
    /// after the creation. `now` is the TTL before the change.
    pub(super) fn when_asked(
        self,
        now: Option<u64>,
        open: (usize, usize),
        elapsed: u64,
    ) -> Option<u64> {
        match open {
            (0, 1..) => self.ttl.map(|ttl| ttl.max(self.max)),
            (1.., 0) => self.when_settled(elapsed),
            _ => now,
        }
    }

    /// Returns the TTL after the last input request is closed. The TTL starts again, so the wait
    /// for input does not shorten the client's time to read the result.
    pub(super) fn when_settled(self, elapsed: u64) -> Option<u64> {
        let ttl = self.ttl?;
        Some(elapsed.saturating_add(ttl).min(ttl.max(self.max)))
    }
}

#[cfg(test)]
mod tests {
    use super::Lifetime;

    const LIFETIME: Lifetime = Lifetime { ttl: Some(10), max: 100 };

    #[test]
    fn open_input_request_extends_ttl_and_response_restarts_it() {
        assert_eq!(LIFETIME.when_asked(Some(10), (0, 2), 5), Some(100));
        assert_eq!(LIFETIME.when_asked(Some(100), (2, 1), 20), Some(100));
        assert_eq!(LIFETIME.when_asked(Some(100), (1, 0), 20), Some(30));
        assert_eq!(
            LIFETIME.when_asked(Some(100), (1, 0), 95),
            Some(100),
            "the TTL never exceeds the maximum"
        );
        assert_eq!(LIFETIME.when_asked(Some(30), (0, 0), 20), Some(30));
    }

    #[test]
    fn ttl_above_maximum_does_not_change() {
        let long = Lifetime { ttl: Some(500), max: 100 };
        assert_eq!(long.when_asked(Some(500), (0, 1), 5), Some(500));
        assert_eq!(long.when_asked(Some(500), (1, 0), 200), Some(500));
        let ever = Lifetime { ttl: None, max: 100 };
        assert_eq!(ever.when_asked(None, (0, 1), 5), None);
        assert_eq!(ever.when_asked(None, (1, 0), 5), None);
    }
}
