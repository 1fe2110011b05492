//! Signal to the server that the supervisor is ready.

use std::{
    fs::File,
    io::{self, Write},
};

/// Line that a supervisor prints after it has started the command or failed to.
pub(crate) const READY: &str = "ready";

/// Signals readiness to the server, and closes the connection to it.
pub(super) fn say_ready() {
    // A failed write is ignored, because the server may be gone.
    let _ = writeln!(io::stdout(), "{READY}");
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}
