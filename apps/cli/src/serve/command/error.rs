//! Errors of commands.

use outlive::server::Error;
use std::error::Error as _;

/// Logs the error, and returns an error without the path of the data folder for the caller.
#[expect(clippy::needless_pass_by_value, reason = "the signature that `map_err` requires")]
pub(super) fn unreachable(error: outlive_jobs::Error) -> Error {
    tracing::error!(%error, source = error.source(), "cannot follow a command");
    Error::new("the server cannot follow the command; its log has the cause")
}
