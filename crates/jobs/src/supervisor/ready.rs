//! What a supervisor says to the server that has started it.

use std::{
    fs::File,
    io::{self, Write},
};

/// What a supervisor prints once the command has been started, or could not be.
pub(crate) const READY: &str = "ready";

/// Tells the server that it need not wait any longer, and lets go of it.
pub(super) fn say_ready() {
    // It may be gone.
    let _ = writeln!(io::stdout(), "{READY}");
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}
