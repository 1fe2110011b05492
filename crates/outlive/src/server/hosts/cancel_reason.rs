//! Why a client cancelled a request.

/// Kind of a cancellation by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CancelReason {
    /// The client's call timeout ended. The user did not ask for it, so the run continues.
    Timeout,
    /// The user or the application cancelled the call.
    Intentional,
}

impl CancelReason {
    /// Classifies the `reason` of `notifications/cancelled`. The TypeScript and Python SDKs write
    /// "timed out" for a timeout.
    pub(crate) fn classify(reason: Option<&str>) -> Self {
        match reason.is_some_and(|reason| reason.to_lowercase().contains("timed out")) {
            true => Self::Timeout,
            false => Self::Intentional,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CancelReason::{self, Intentional, Timeout};

    #[test]
    fn reason_with_timed_out_is_timeout() {
        for (reason, kind) in [
            (Some("McpError: MCP error -32001: Request timed out"), Timeout),
            (Some("Timed out while waiting for response to ClientRequest"), Timeout),
            (Some("AbortError: This operation was aborted"), Intentional),
            (Some(""), Intentional),
            (None, Intentional),
        ] {
            assert_eq!(CancelReason::classify(reason), kind, "{reason:?}");
        }
    }
}
