//! Spans of code that a macro writes.

use proc_macro2::Span;

/// An identifier of our own at the author's place: errors point there, and lints leave it alone.
pub(crate) fn at(place: Span) -> Span {
    Span::call_site().located_at(place)
}
