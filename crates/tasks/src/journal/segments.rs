//! Segments of a run, by the step or scope that emitted them.

use std::collections::HashMap;

use crate::record::SegmentRecord;

/// Segments of a run, in the order of their first emission.
#[derive(Debug, Default)]
pub(super) struct Segments {
    pub(super) stored: Vec<SegmentRecord>,
    /// Number of segments in started writes, and number of segments in the store.
    pub(super) sent: usize,
    pub(super) written: usize,
    pub(super) scopes: HashMap<String, Scope>,
}

/// Segments of one step or scope.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Index in `stored` of each segment, by its number within the scope.
    pub(super) places: HashMap<u32, usize>,
    /// Number of segments that the scope has emitted in this run.
    pub(super) emitted: u32,
    /// Whether the scope has started in this run.
    pub(super) begun: bool,
}

impl Segments {
    pub(super) fn restored(stored: Vec<SegmentRecord>) -> Self {
        let mut segments = Self::default();
        stored.into_iter().for_each(|segment| segments.push(segment));
        segments
    }

    pub(super) fn stored(&self) -> &[SegmentRecord] {
        &self.stored
    }

    /// Marks all segments as stored.
    pub(super) fn all_written(&mut self) {
        (self.sent, self.written) = (self.stored.len(), self.stored.len());
    }

    /// Marks all segments as part of a started write.
    pub(super) fn all_sent(&mut self) {
        self.sent = self.stored.len();
    }

    /// Marks the segments of the started write as stored.
    pub(super) fn sent_are_written(&mut self) {
        self.written = self.sent;
    }

    /// Removes the segments that the store does not have. Returns whether there were any.
    pub(super) fn forget_unwritten(&mut self) -> bool {
        let (all, written) = (self.stored.len(), self.written);
        self.stored.truncate(written);
        self.sent = written;
        for scope in self.scopes.values_mut() {
            scope.places.retain(|_, place| *place < written);
        }
        all > written
    }

    pub(super) fn push(&mut self, segment: SegmentRecord) {
        let scope = self.scopes.entry(segment.scope.clone()).or_default();
        scope.places.entry(segment.ordinal).or_insert(self.stored.len());
        self.stored.push(segment);
    }

    /// Inserts earlier segments before all others.
    pub(super) fn prepend(&mut self, before: Vec<SegmentRecord>) {
        let after = std::mem::take(&mut self.stored);
        for scope in self.scopes.values_mut() {
            scope.places.clear();
        }
        before.into_iter().chain(after).for_each(|segment| self.push(segment));
    }

    /// Returns the number of the scope's next segment, and the stored segment with that number.
    pub(super) fn next(&mut self, scope: &str) -> (u32, Option<&SegmentRecord>) {
        if !self.scopes.contains_key(scope) {
            self.scopes.insert(scope.to_owned(), Scope::default());
        }
        let Some(scope) = self.scopes.get_mut(scope) else { return (0, None) };
        let ordinal = scope.emitted;
        scope.emitted += 1;
        scope.begun = true;
        let place = scope.places.get(&ordinal).copied();
        (ordinal, place.and_then(|place| self.stored.get(place)))
    }

    /// Restarts the numbering of a scope.
    pub(super) fn restart(&mut self, scope: &str) {
        if let Some(scope) = self.scopes.get_mut(scope) {
            (scope.emitted, scope.begun) = (0, true);
        }
    }

    /// Restarts the numbering of all scopes for the next run.
    pub(super) fn restart_all(&mut self) {
        for scope in self.scopes.values_mut() {
            (scope.emitted, scope.begun) = (0, false);
        }
    }

    /// Returns the scopes that have emitted fewer segments in this run than are stored. Skips
    /// scopes that did not run because their step is recorded.
    pub(super) fn behind<'a>(
        &'a self,
        is_done: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = &'a str> {
        let behind = move |(name, scope): &(&'a String, &'a Scope)| {
            (scope.emitted as usize) < scope.places.len() && (scope.begun || !is_done(name))
        };
        self.scopes.iter().filter(behind).map(|(name, _)| name.as_str())
    }
}
