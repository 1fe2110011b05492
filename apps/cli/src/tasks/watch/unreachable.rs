//! State of a call whose server does not respond.

/// State of a call that can no longer be watched.
pub(crate) const UNREACHABLE: &str = "unreachable";
