//! Order and completeness of partial results that arrive over several paths.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::{Error, Result};

/// Segments of one task, by sequence number.
#[derive(Debug)]
pub(crate) struct Tracker {
    /// Segments that arrived and were not returned yet.
    waiting: BTreeMap<u64, Value>,
    /// Segments that were returned, in order from number 1.
    given: Vec<Value>,
    /// Whether the server declared the partial results complete.
    is_complete: bool,
    bytes: usize,
    limit: usize,
}

impl Tracker {
    pub(crate) fn new(limit: usize) -> Self {
        Self { waiting: BTreeMap::new(), given: Vec::new(), is_complete: false, bytes: 0, limit }
    }

    /// Adds a segment. Drops a duplicate, which must have the same content.
    pub(crate) fn take(&mut self, number: u64, block: Value) -> Result<()> {
        if number == 0 {
            return Err(Error::broke("a partial result has sequence number 0"));
        }
        let before = usize::try_from(number - 1).ok().and_then(|at| self.given.get(at));
        if let Some(before) = before.or_else(|| self.waiting.get(&number)) {
            return match *before == block {
                true => Ok(()),
                false => Err(Error::broke(format!(
                    "partial result {number} arrived twice with different content"
                ))),
            };
        }
        self.bytes += block.to_string().len();
        if self.bytes > self.limit {
            let limit = self.limit;
            return Err(Error::broke(format!("the partial results have more than {limit} bytes")));
        }
        self.waiting.insert(number, block);
        Ok(())
    }

    /// Records that the server declared the partial results complete.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Returns the next segment in order, if it has arrived.
    pub(crate) fn give(&mut self) -> Option<(u64, Value)> {
        let number = self.contiguous() + 1;
        let block = self.waiting.remove(&number)?;
        self.given.push(block.clone());
        Some((number, block))
    }

    /// Returns the number of the last segment that was returned.
    pub(crate) fn contiguous(&self) -> u64 {
        self.given.len() as u64
    }

    /// Returns whether a segment is missing before one that has arrived.
    pub(crate) fn has_gap(&self) -> bool {
        self.waiting.keys().next().is_some_and(|first| *first > self.contiguous() + 1)
    }

    /// Returns whether all segments have arrived and were returned.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_complete && self.waiting.is_empty()
    }

    /// Returns whether the server declared the partial results complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns all segments that were returned.
    pub(crate) fn blocks(&self) -> &[Value] {
        &self.given
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Tracker;

    fn numbers(tracker: &mut Tracker) -> Vec<u64> {
        std::iter::from_fn(|| tracker.give()).map(|(number, _)| number).collect()
    }

    fn block(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    // S-70, S-71, S-73, S-74, S-T07, S-T12
    #[test]
    fn segments_out_of_order_are_returned_once_in_order() {
        let mut tracker = Tracker::new(1000);
        for number in [1, 3, 5, 3] {
            tracker.take(number, block("x")).unwrap();
        }
        assert_eq!(numbers(&mut tracker), [1]);
        assert!(tracker.has_gap());
        assert_eq!(tracker.contiguous(), 1);
        tracker.complete();
        assert!(!tracker.is_whole());
        for number in 2..=5 {
            tracker.take(number, block("x")).unwrap();
        }
        assert_eq!(numbers(&mut tracker), [2, 3, 4, 5]);
        assert!(tracker.is_whole() && !tracker.has_gap());
        // A duplicate of a segment that was returned earlier is dropped too.
        tracker.take(2, block("x")).unwrap();
        assert!(tracker.is_whole());
    }

    // S-72, S-75
    #[test]
    fn conflicting_or_invalid_segment_returns_error() {
        let mut tracker = Tracker::new(60);
        tracker.take(1, block("a")).unwrap();
        assert!(tracker.take(1, block("b")).is_err());
        numbers(&mut tracker);
        assert!(tracker.take(1, block("b")).is_err());
        assert!(tracker.take(0, block("a")).is_err());
        assert!(tracker.take(2, block(&"x".repeat(100))).is_err());
    }
}
