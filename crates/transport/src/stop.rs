//! When a process is asked to stop: Ctrl-C, or SIGTERM.

use std::io;

/// Waits until the process is asked to stop.
#[cfg(unix)]
pub(crate) async fn stop_signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result,
        _ = terminate.recv() => Ok(()),
    }
}

/// Waits until the process is asked to stop.
#[cfg(not(unix))]
pub(crate) async fn stop_signal() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
