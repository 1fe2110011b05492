//! security.
