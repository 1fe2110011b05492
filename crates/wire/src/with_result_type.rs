//! A result with the members that the modern era adds to every result. For clients and tests; a
//! server writes these members itself.

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
        struct Added {
            result_type: Option<String>,
            ttl_ms: Option<i64>,
            cache_scope: Option<CacheScope>,
        }

        // Read twice: a flattened member could not keep raw JSON.
        let raw = RawJson::deserialize(deserializer)?;
        let Added { result_type, ttl_ms, cache_scope } =
            serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        let inner = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok(Self { inner, result_type, ttl_ms, cache_scope })
    }
}
