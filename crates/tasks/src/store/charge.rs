//! The principal that stored bytes are charged to.

/// A principal that is charged for stored bytes, and its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Charge {
    /// Charged principal.
    pub principal: String,
    /// Maximum bytes of the principal, including the bytes of this write.
    pub max_bytes: u64,
}

impl Charge {
    /// Creates a charge.
    pub fn new(principal: impl Into<String>, max_bytes: u64) -> Self {
        Self { principal: principal.into(), max_bytes }
    }
}
