//! The protocol versions of the legs.

/// The protocol version of a scenario run.
pub(super) type Wire = &'static str;

pub(super) const LEGACY: Wire = "2025-11-25";

pub(super) const MODERN: Wire = "2026-07-28";
