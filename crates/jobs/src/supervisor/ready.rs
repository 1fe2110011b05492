//! Tells the server that has started a supervisor that the supervisor is ready.

use std::{
    fs::File,
    io::{self, Write},
};

/// Line that a supervisor prints once it has started the command, or has failed to.
pub(crate) const READY: &str = "ready";

/// Tells the server that it need not wait any longer, and lets go of it.
pub(super) fn say_ready() {
    // It may be gone.
    let _ = writeln!(io::stdout(), "{READY}");
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}
