//! The input requests of a command: which are open, and which have their response.

use std::collections::BTreeMap;

use super::{
    Error, Result,
    control::{Rejected, RejectedKind},
};

/// The longest response.
pub(super) const MAX_RESPONSE: usize = 1 << 20;
/// How many input requests of a command may be open at once.
const MAX_OPEN: usize = 64;

/// Refuses what a command could not read as one response.
pub(super) fn check_response(line: &str) -> Result<()> {
    if line.contains(['\n', '\r']) {
        return Err(Error::ResponseRejected("a response is one line".to_owned()));
    }
    if line.len() > MAX_RESPONSE {
        return Err(Error::ResponseRejected(format!(
            "a response has at most {MAX_RESPONSE} bytes"
        )));
    }
    Ok(())
}

/// The input requests of one run.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// How many there were.
    count: u32,
    /// Keys of those that have no response.
    open: BTreeMap<u32, String>,
}

impl Inputs {
    /// Returns the number of the next request, or why there can be none with this key.
    pub(super) fn admit(&self, key: &str) -> Result<u32, Rejected> {
        if self.open.values().any(|open| open == key) {
            let message =
                format!("an input request with the key `{key}` is open; wait for its response");
            return Err(Rejected::new(Some(key), RejectedKind::DuplicateKey, message));
        }
        if self.open.len() >= MAX_OPEN {
            let message = format!("{MAX_OPEN} input requests are open; wait for a response");
            return Err(Rejected::new(Some(key), RejectedKind::TooLarge, message));
        }
        Ok(self.count + 1)
    }

    /// Opens the request that was admitted last.
    pub(super) fn open(&mut self, key: String) {
        self.count += 1;
        self.open.insert(self.count, key);
    }

    /// Whether a request waits for its response.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Settles a request. Returns whether its response is the first one, which alone counts.
    pub(super) fn settle(&mut self, number: u32) -> Result<bool, String> {
        if number == 0 || number > self.count {
            let count = self.count;
            return Err(format!("input request {number} has not been made; there were {count}"));
        }
        Ok(self.open.remove(&number).is_some())
    }
}
