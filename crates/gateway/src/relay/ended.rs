//! Ends of a request without an outcome.

use outlive::{client::Error as UpstreamError, server::Error};

/// End of a request without an outcome.
#[derive(Debug)]
pub(super) enum Ended {
    /// The client cancelled the call.
    Cancelled,
    Failed(UpstreamError),
    /// A valid token is missing, and the upstream has not executed the request.
    WithoutToken {
        error: UpstreamError,
        /// Whether the user can log in meanwhile.
        may_log_in: bool,
    },
    /// The connection has ended while a task of the upstream runs the call.
    Lost(UpstreamError),
    /// A process that survived the gateway does not have the request that an earlier run has sent.
    Gone,
    /// The error for the client.
    Final(Error),
}
