//! A result with the members that the modern era adds to every result. For clients and tests:
//! servers encode these members themselves.

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned, de::Error};

use crate::{CacheScope, RawJson};

/// A result and the members that the modern era adds to it.
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
    /// `complete`, `input_required`, or a type of an extension. Absent means `complete`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_type: Option<String>,
    /// Time in milliseconds that the result stays fresh. Absent, zero or negative values disable
    /// caching.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<i64>,
    /// Sharing of the cached result. Absent means [`CacheScope::Private`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_scope: Option<CacheScope>,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for WithResultType<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Added {
            result_type: Option<String>,
            ttl_ms: Option<i64>,
            cache_scope: Option<CacheScope>,
        }

        // The JSON is parsed twice, because serde cannot flatten raw JSON.
        let raw = RawJson::deserialize(deserializer)?;
        let Added { result_type, ttl_ms, cache_scope } =
            serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        let inner = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Self { inner, result_type, ttl_ms, cache_scope })
    }
}
