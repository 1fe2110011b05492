//! Stop signals of the process: SIGINT (Ctrl-C) and SIGTERM.

use std::io;

/// Waits for a stop signal.
#[cfg(unix)]
pub(crate) async fn stop_signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
    }
}

/// Waits for a stop signal.
#[cfg(not(unix))]
pub(crate) async fn stop_signal() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
