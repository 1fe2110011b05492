//! The versions that a leg runs on.

/// The revision that a scenario is played in.
pub(super) type Wire = &'static str;

pub(super) const LEGACY: Wire = "2025-11-25";

pub(super) const MODERN: Wire = "2026-07-28";
