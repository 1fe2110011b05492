//! Spans of generated code.

use proc_macro2::Span;

/// Returns a call-site span at the author's location: errors point there, and lints ignore the
/// code.
pub(crate) fn at(place: Span) -> Span {
    Span::call_site().located_at(place)
}
