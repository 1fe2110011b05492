//! Signal of a supervisor to the process that started it.

use std::{
    fs::File,
    io::{self, Write},
};

/// Line that a supervisor prints after it has started the command or failed to.
pub(super) const READY: &str = "ready";

/// Start of the line that a supervisor prints if the program could not be started.
pub(super) const NOT_STARTED: &str = "not started: ";

/// Signals readiness, and closes the connection to the process that started the supervisor.
pub(super) fn say_ready() {
    // A failed write is ignored, because that process may be gone.
    let _ = writeln!(io::stdout(), "{READY}");
    close();
}

/// Sends the reason why nothing was started, and closes the connection.
pub(super) fn say_not_started(reason: &str) {
    let _ = writeln!(io::stdout(), "{NOT_STARTED}{reason}");
    close();
}

fn close() {
    if let Ok(nowhere) = File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(nowhere);
    }
}
