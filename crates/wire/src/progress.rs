//! Progress and cancellation of requests.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use serde::{Deserialize, Deserializer, Serialize, de::Error};
use serde_json::value::{RawValue, to_raw_value};

use crate::{Meta, RawJson, field};

macro_rules! token {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// A JSON string or integer, kept as text: `1` and `"1"` differ, and no digit is lost.
        /// Equality compares the texts.
        #[derive(Clone, Serialize)]
        #[serde(transparent)]
        pub struct $name(RawJson);

        impl $name {
            /// Creates a value from JSON. Returns `None` unless it is a string or an integer.
            pub fn from_raw(raw: &RawValue) -> Option<Self> {
                is_token(raw).then(|| Self(raw.to_owned()))
            }

            /// Returns the JSON, unchanged.
            pub fn as_raw(&self) -> &RawValue {
                &self.0
            }
        }

        impl From<i64> for $name {
            fn from(number: i64) -> Self {
                Self(to_raw_value(&number).expect("an integer serializes"))
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(to_raw_value(text).expect("a string serializes"))
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let raw = RawJson::deserialize(deserializer)?;
                if is_token(&raw) {
                    Ok(Self(raw))
                } else {
                    Err(D::Error::custom("expected a string or an integer"))
                }
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0.get() == other.0.get()
            }
        }

        impl Eq for $name {}

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.get().hash(state);
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.0.get())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.get())
            }
        }
    };
}

token! {
    /// The token that relates progress notifications to their request.
    ProgressToken
}

token! {
    /// The ID of a request.
    RequestId
}

/// The parameters of `notifications/progress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressNotificationParams {
    /// Token of the request.
    pub progress_token: ProgressToken,
    /// Completed amount. Increases with every notification.
    #[serde(serialize_with = "field::number")]
    pub progress: f64,
    /// Total amount, if known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "field::optional_number"
    )]
    pub total: Option<f64>,
    /// Description of the current work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The parameters of `notifications/cancelled`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CancelledNotificationParams {
    /// ID of the cancelled request. Optional in 2025-11-25.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// Reason for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// Returns whether raw JSON is a string or an integer, without parsing numbers.
fn is_token(raw: &RawValue) -> bool {
    match raw.get().as_bytes() {
        [b'"', ..] => true,
        [b'-' | b'0'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}
