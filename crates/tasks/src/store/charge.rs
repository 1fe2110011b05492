//! The principal that stored bytes count for.

/// A principal that is charged for stored bytes, and its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "read by stores, third parties' included")]
pub struct Charge {
    /// The principal.
    pub principal: String,
    /// How many bytes it may have stored, with what is stored now.
    pub max_bytes: u64,
}
