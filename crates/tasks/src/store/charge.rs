//! The principal that stored bytes count for.

/// A principal that is charged for stored bytes, and its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Charge {
    /// The principal.
    pub principal: String,
    /// How many bytes it may have stored, with what is stored now.
    pub max_bytes: u64,
}

impl Charge {
    /// Creates a charge.
    pub fn new(principal: impl Into<String>, max_bytes: u64) -> Self {
        Self { principal: principal.into(), max_bytes }
    }
}
