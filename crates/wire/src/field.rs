//! How single members are read and printed where the derived way is not the right one.

use serde::{Deserialize, Deserializer, Serializer};

use crate::RawJson;

/// Keeps `null` apart from an absent member.
pub(crate) fn present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RawJson>, D::Error> {
    RawJson::deserialize(deserializer).map(Some)
}

/// Prints a float without a fraction as an integer: a peer that sent `50` must not see `50.0`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(crate) fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // Up to here every integer is exact in an f64; beyond it the cast would invent digits.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "checked on the line above")]
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// [`number`] for a member that may be absent.
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
