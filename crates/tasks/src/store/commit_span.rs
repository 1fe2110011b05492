//! The tracing span `store.commit`.

use tracing::{Instrument, Span};

use super::{
    store_probe::StoreKind,
    traits::StoreFuture,
    work::{Changes, Transition},
};

/// Returns the span of a commit with the store, the number of changes and the transition.
pub(super) fn commit_span(store: StoreKind, changes: &Changes, then: &Transition) -> Span {
    tracing::debug_span!(
        "store.commit",
        store = store.as_str(),
        changes = changes.len(),
        transition = then.as_str(),
    )
}

/// Instruments a commit with its span. Without a subscriber, returns the future unchanged.
pub(super) fn in_span<'a>(span: Span, commit: StoreFuture<'a, ()>) -> StoreFuture<'a, ()> {
    match span.is_disabled() {
        true => commit,
        false => Box::pin(commit.instrument(span)),
    }
}
