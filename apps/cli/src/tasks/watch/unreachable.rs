//! The state of a task whose server does not answer.

/// The state of a call that nothing more is heard of.
pub(crate) const UNREACHABLE: &str = "unreachable";
