//! keeping.
