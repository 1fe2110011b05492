//! IDs of requests that a supervisor has seen.
//!
//! A gateway numbers its requests in sequence from a random start, so the IDs of one gateway are one
//! range, or a few.

use std::collections::BTreeMap;

/// Maximum number of ranges. If there are more, the narrowest gap counts as seen: a request then
/// counts as lost, which is safe.
const MAX_RANGES: usize = 256;

/// Ranges of IDs: first and last.
#[derive(Debug, Default)]
pub(super) struct Seen(BTreeMap<u64, u64>);

impl Seen {
    pub(super) fn contains(&self, id: u64) -> bool {
        self.0.range(..=id).next_back().is_some_and(|(_, &last)| id <= last)
    }

    pub(super) fn insert(&mut self, id: u64) {
        if self.contains(id) {
            return;
        }
        let before = self.0.range(..id).next_back().map(|(&first, &last)| (first, last));
        let first = match before {
            Some((first, last)) if last + 1 == id => first,
            _ => id,
        };
        let last = match id.checked_add(1).and_then(|next| self.0.remove(&next)) {
            Some(last) => last,
            None => id,
        };
        self.0.insert(first, last);
        if self.0.len() > MAX_RANGES {
            self.close_narrowest_gap();
        }
    }

    fn close_narrowest_gap(&mut self) {
        let ranges = self.0.iter().zip(self.0.iter().skip(1));
        let narrowest = ranges.min_by_key(|((_, last), (first, _))| *first - *last);
        let Some(((&first, _), (&second, &last))) = narrowest else { return };
        self.0.remove(&second);
        self.0.insert(first, last);
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_RANGES, Seen};

    #[test]
    fn sequences_are_ranges_in_any_order() {
        let mut seen = Seen::default();
        for id in [5, 7, 6, 100, 9, 8, u64::MAX, 0] {
            assert!(!seen.contains(id));
            seen.insert(id);
            assert!(seen.contains(id));
        }
        assert_eq!(
            seen.0.iter().collect::<Vec<_>>(),
            [(&0, &0), (&5, &9), (&100, &100), (&u64::MAX, &u64::MAX)]
        );
        assert!(!seen.contains(4) && !seen.contains(10) && !seen.contains(99));
    }

    #[test]
    fn number_of_ranges_is_bounded_and_forgets_nothing() {
        let mut seen = Seen::default();
        for id in 0..10_000 {
            seen.insert(id * 1000);
        }
        assert_eq!(seen.0.len(), MAX_RANGES);
        assert!((0..10_000).all(|id| seen.contains(id * 1000)));
    }
}
