//! Settings of the measured servers: listeners, limits, runtime.

use anyhow::Result;
use outlive::server::http::HttpConfig;
use std::{fmt::Display, io};
use tokio::runtime::Runtime;

/// Number of tools of a server with many tools.
pub(super) const TOOLS: usize = 10_000;

/// Starts a listener and prints its port and additional data for callers.
pub(super) fn listen(
    start: impl Future<Output = Result<(impl Display, impl Sized)>>,
) -> Result<()> {
    let runtime = runtime()?;
    let (port, _serving) = runtime.block_on(start)?;
    say(&format!("listening {port}"));
    // The parent never writes: this waits until the parent is gone.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the parent process reads it from standard output")]
pub(super) fn say(line: &str) {
    println!("{line}");
}

/// No limits per caller, because all connections have one address.
pub(super) fn unlimited() -> HttpConfig {
    HttpConfig::new()
        .max_connections(100_000)
        .max_connections_per_address(100_000)
        .max_sessions_per_caller(100_000)
        .max_waiting_calls_per_caller(100_000)
        .max_request_bytes_per_caller(1 << 30)
        .max_request_bytes(1 << 30)
        .max_unread_bytes_per_caller(1 << 30)
        .max_unread_bytes(1 << 30)
}

pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}
