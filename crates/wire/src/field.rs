//! Serde functions for members that need other than the derived code.

use serde::{Deserialize, Deserializer, Serializer};

use crate::RawJson;

/// Distinguishes `null` from an absent member.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

/// Serializes a float without a fraction as an integer, so that `50` does not become `50.0`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(crate) fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // Every smaller integer is exact in an `f64`; above, the cast would invent digits.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "checked on the line above")]
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// As [`number`], for an optional member.
#[expect(clippy::ref_option, reason = "serde calls it with a reference")]
pub(crate) fn optional_number<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => number(value, serializer),
        None => serializer.serialize_none(),
    }
}
