//! Tool errors, refusals, panics.
