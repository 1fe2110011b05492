//! Journal keys of the input requests that an upstream sends while a request is open.
//!
//! A key must be the same if the upstream sends the input request again to a later run, so that the
//! user sees it once, and different for every other input request.

use std::collections::HashMap;

use outlive::client::relay::RelayInput;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};

use super::journal::Tracked;

/// Journal keys of the input requests of one exchange.
pub(super) struct InputKeys<'a> {
    tracked: Tracked<'a>,
    source: Source,
}

/// Property that identifies an input request.
enum Source {
    /// Its order of arrival, or its ID on the call's own stream: a stream that is resumed has the
    /// same input request again.
    Stream { arrived: u32 },
    /// Its content: a task of a legacy upstream repeats it under another ID. Has the number of input
    /// requests with the same content in this run.
    Task { equal: HashMap<String, usize> },
}

/// Key of an input request.
pub(super) struct InputKey {
    pub(super) key: String,
    /// Key of the record that its response was delivered, if that matters to a later run.
    pub(super) delivered: Option<String>,
    /// Number in the order of arrival, if the key has it.
    pub(super) number: Option<u32>,
}

impl<'a> InputKeys<'a> {
    /// Returns the keys of an exchange for the call itself, of which earlier runs have carried input
    /// requests with numbers up to `arrived`.
    pub(super) fn after(tracked: Tracked<'a>, arrived: u32) -> Self {
        let keys = Self { tracked, source: Source::Stream { arrived } };
        for number in 1..=arrived {
            // Reads the entry, because this run does not reach it if the upstream has the response.
            let _ = tracked.cx.get::<IgnoredAny>(keys.numbered(number));
        }
        keys
    }

    fn prefix(&self) -> String {
        format!("input/{}/{}", self.tracked.number, self.tracked.attempt())
    }

    fn numbered(&self, number: u32) -> String {
        format!("{}/{number}", self.prefix())
    }

    /// Returns the keys of an exchange that waits for a task of the upstream.
    pub(super) fn of_task(tracked: Tracked<'a>) -> Self {
        Self { tracked, source: Source::Task { equal: HashMap::new() } }
    }

    /// Returns the key of an input request. `is_own` tells whether it arrived on the stream of the
    /// exchange, and `resumed` is the number under which an earlier run has carried it.
    pub(super) fn next(
        &mut self,
        input: &RelayInput,
        is_own: bool,
        resumed: Option<u32>,
    ) -> InputKey {
        let prefix = self.prefix();
        match &mut self.source {
            Source::Stream { .. } if is_own => {
                let id = short(input.id().as_raw().get());
                InputKey { key: format!("{prefix}/id/{id}"), delivered: None, number: None }
            }
            Source::Stream { arrived } => {
                let number = resumed.unwrap_or(*arrived + 1);
                *arrived = number.max(*arrived);
                let key = format!("{prefix}/{number}");
                InputKey { key, delivered: None, number: Some(number) }
            }
            Source::Task { equal } => {
                let content = digest(&format!("{} {}", input.method().as_str(), input.params()));
                let key = |number: usize| format!("{prefix}/{content}/{number}");
                let number = equal.entry(content.clone()).or_default();
                // Those that an earlier run has delivered are not repeated.
                while is_delivered(self.tracked, &key(*number)) {
                    *number += 1;
                }
                let key = key(*number);
                *number += 1;
                InputKey { delivered: Some(delivered(&key)), key, number: None }
            }
        }
    }
}

fn delivered(key: &str) -> String {
    format!("delivered/{key}")
}

fn is_delivered(tracked: Tracked<'_>, key: &str) -> bool {
    matches!(tracked.cx.get::<bool>(delivered(key)), Ok(Some(true)))
}

/// Returns a text of an upstream as part of a key, with bounded length.
pub(super) fn short(text: &str) -> String {
    match text.len() <= MAX_LENGTH {
        true => text.to_owned(),
        false => digest(text),
    }
}

/// Longest text of an upstream in a key.
const MAX_LENGTH: usize = 64;

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash[..12].iter().map(|byte| format!("{byte:02x}")).collect()
}
