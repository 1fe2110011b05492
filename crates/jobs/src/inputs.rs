//! Input requests and steps of a command: open ones, and their responses.

use std::collections::BTreeMap;

use super::{
    Error, Result,
    control::{Rejected, RejectedKind},
};

/// Maximum bytes of a response.
pub(super) const MAX_RESPONSE: usize = 1 << 20;
/// Maximum number of open input requests and steps per command.
const MAX_OPEN: usize = 64;

/// Rejects a response that a command cannot read as one line.
pub(super) fn check_response(line: &str) -> Result<()> {
    if line.contains(['\n', '\r']) {
        return Err(Error::ResponseRejected("a response must be one line".to_owned()));
    }
    if line.len() > MAX_RESPONSE {
        return Err(Error::ResponseRejected(format!(
            "a response must not exceed {MAX_RESPONSE} bytes"
        )));
    }
    Ok(())
}

/// Input requests and steps of one run.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Number of requests so far.
    count: u32,
    /// Keys of the requests without a response.
    open: BTreeMap<u32, String>,
}

impl Inputs {
    /// Returns the number for the next request, or the reason why it is rejected.
    pub(super) fn admit(&self, key: &str) -> Result<u32, Rejected> {
        if self.open.values().any(|open| open == key) {
            let message = format!("a request with the key `{key}` is open; wait for its response");
            return Err(Rejected::new(Some(key), RejectedKind::DuplicateKey, message));
        }
        if self.open.len() >= MAX_OPEN {
            let message = format!("{MAX_OPEN} requests are open; wait for a response");
            return Err(Rejected::new(Some(key), RejectedKind::TooLarge, message));
        }
        Ok(self.count + 1)
    }

    /// Opens the request that was admitted last.
    pub(super) fn open(&mut self, key: String) {
        self.count += 1;
        self.open.insert(self.count, key);
    }

    /// Returns whether a request waits for its response.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Closes a request. Returns whether this is its first response, because only the first one
    /// counts.
    pub(super) fn settle(&mut self, number: u32) -> Result<bool, String> {
        if number == 0 || number > self.count {
            let count = self.count;
            return Err(format!(
                "input request {number} does not exist; the command has made {count}"
            ));
        }
        Ok(self.open.remove(&number).is_some())
    }
}
