//! [`CancelReason`]: why a call was cancelled.

/// Reason of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every policy must handle each")]
pub enum CancelReason {
    /// The client disconnected, or the server dropped the call.
    Disconnected,
    /// The client no longer waits, because its timeout has passed.
    TimedOut,
    /// The client cancelled the call.
    Requested,
}

impl CancelReason {
    /// Reads the `reason` of a cancellation. The official SDKs write that a request timed out.
    pub(crate) fn read(reason: Option<&str>) -> Self {
        const TIMEOUT: &[u8] = b"timed out";
        let timed_out = |reason: &str| {
            let mut words = reason.as_bytes().windows(TIMEOUT.len());
            words.any(|word| word.eq_ignore_ascii_case(TIMEOUT))
        };
        match reason.is_some_and(timed_out) {
            true => Self::TimedOut,
            false => Self::Requested,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CancelReason;

    #[test]
    fn reason_that_names_a_timeout_is_timed_out() {
        let typescript = "McpError: MCP error -32001: Request timed out";
        let python = "Timed out while waiting for response to ClientRequest. Waited 2.0 seconds.";
        assert_eq!(CancelReason::read(Some(typescript)), CancelReason::TimedOut);
        assert_eq!(CancelReason::read(Some(python)), CancelReason::TimedOut);
        assert_eq!(CancelReason::read(Some("user pressed stop")), CancelReason::Requested);
        assert_eq!(CancelReason::read(None), CancelReason::Requested);
    }
}
