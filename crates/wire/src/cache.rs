//! How long and for whom a client may keep a result; 2026-07-28.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching>

use serde::{Deserialize, Serialize};

/// What a server says about keeping a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheHints {
    /// For how many milliseconds it stays fresh; 0 means not at all.
    pub ttl_ms: u64,
    /// Who may see the copy.
    pub cache_scope: CacheScope,
}

/// Who may see a kept copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheScope {
    /// Anyone.
    Public,
    /// Only the caller it was made for. A scope that we do not know is read as this one: it is the
    /// one that gives nothing away.
    #[serde(other)]
    Private,
}
