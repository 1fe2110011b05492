//! Cache hints of results; 2026-07-28.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>

use serde::{Deserialize, Serialize};

/// Cache hints of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheHints {
    /// Time in milliseconds that the result stays fresh; 0 disables caching.
    pub ttl_ms: u64,
    /// Sharing of the cached result.
    pub cache_scope: CacheScope,
}

/// Sharing of a cached result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheScope {
    /// The cache may serve the result to any caller.
    Public,
    /// The cache may serve the result only to the caller that requested it. Unknown scopes
    /// deserialize as this one, because it is the strictest.
    #[serde(other)]
    Private,
}
