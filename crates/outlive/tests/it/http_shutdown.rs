//! Ending properly.
