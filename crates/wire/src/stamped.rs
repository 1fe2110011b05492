//! A result with what the 2026-07-28 era stamps on it. For clients and tests; a server writes the
//! stamp itself, without the detour.

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned, de::Error};

use crate::{CacheScope, RawJson};

/// A result and its stamp.
///
/// ```
/// use outlive_wire::{EmptyResult, WithResultType};
///
/// let result: WithResultType<EmptyResult> = serde_json::from_str(r#"{"resultType":"complete"}"#)?;
/// assert_eq!(result.result_type.as_deref(), Some("complete"));
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WithResultType<T> {
    /// The result.
    #[serde(flatten)]
    pub inner: T,
    /// `complete`, `input_required`, or what an extension adds. Absent means `complete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<String>,
    /// For how many milliseconds it stays fresh; not at all if absent, zero or below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// Who may see a kept copy. Absent means [`CacheScope::Private`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for WithResultType<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Stamp {
            result_type: Option<String>,
            ttl_ms: Option<i64>,
            cache_scope: Option<CacheScope>,
        }

        // Read twice: a flattened member could not keep raw JSON.
        let raw = RawJson::deserialize(deserializer)?;
        let Stamp { result_type, ttl_ms, cache_scope } =
            serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        let inner = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Self { inner, result_type, ttl_ms, cache_scope })
    }
}
