//! Runs the asynchronous work of a command.

use std::{future::Future, pin::Pin};

use tokio::runtime::Builder;

use crate::error::{CliError, Kind, Result};

/// Runs a future to completion on this thread. Abandons blocking threads, such as one that waits
/// for a key press.
///
/// The future is boxed, so that the program contains one executor and not one for each command.
pub(crate) fn block_on<T>(work: Pin<Box<dyn Future<Output = Result<T>> + '_>>) -> Result<T> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| {
        CliError::new(Kind::Failed, format!("cannot start the async runtime: {error}"))
    })?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}
