//! The segments of a run, by the step or scope that emitted them.

use std::collections::HashMap;

use crate::record::SegmentRecord;

/// All blocks of a run, in the order in which they were first emitted.
#[derive(Debug, Default)]
pub(super) struct Segments {
    pub(super) stored: Vec<SegmentRecord>,
    /// How many of them are on their way to the store, and how many are there.
    pub(super) sent: usize,
    pub(super) written: usize,
    pub(super) scopes: HashMap<String, Scope>,
}

/// What one step or scope has emitted.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Where its blocks stand among all, by their place here.
    pub(super) places: HashMap<u32, usize>,
    /// How many it has emitted in this run.
    pub(super) emitted: u32,
    /// Whether it has been begun in this run.
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

    /// All that there are are in the store.
    pub(super) fn all_written(&mut self) {
        (self.sent, self.written) = (self.stored.len(), self.stored.len());
    }

    /// All that there are are on their way to the store.
    pub(super) fn all_sent(&mut self) {
        self.sent = self.stored.len();
    }

    /// Those that were on their way are there.
    pub(super) fn sent_are_written(&mut self) {
        self.written = self.sent;
    }

    /// Forgets those that the store has not taken, and says whether there were some.
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

    /// Puts what was emitted before everything that is here before it.
    pub(super) fn prepend(&mut self, before: Vec<SegmentRecord>) {
        let after = std::mem::take(&mut self.stored);
        for scope in self.scopes.values_mut() {
            scope.places.clear();
        }
        before.into_iter().chain(after).for_each(|segment| self.push(segment));
    }

    /// The place of the next block of a scope, and the block that is stored there already.
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

    /// A scope begins again.
    pub(super) fn restart(&mut self, scope: &str) {
        if let Some(scope) = self.scopes.get_mut(scope) {
            (scope.emitted, scope.begun) = (0, true);
        }
    }

    /// The whole run begins again.
    pub(super) fn restart_all(&mut self) {
        for scope in self.scopes.values_mut() {
            (scope.emitted, scope.begun) = (0, false);
        }
    }

    /// The scopes of which more is stored than this run has emitted, but for those that did not
    /// have to run again.
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
