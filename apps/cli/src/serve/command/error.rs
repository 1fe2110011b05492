//! Errors of commands.

use outlive::server::Error;
use std::error::Error as _;

/// The log says what is wrong with the data folder; the caller need not know where it is.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
pub(super) fn unreachable(error: outlive_jobs::Error) -> Error {
    tracing::error!(%error, source = error.source(), "a command cannot be followed");
    Error::new("the command cannot be followed; the server's log says why")
}
