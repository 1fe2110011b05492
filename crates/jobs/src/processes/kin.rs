//! Processes of a command outside of its process group.

use rustix::process::Pid;

#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "used on Linux only"))]
pub(super) enum Kin {
    /// All descendants of this process.
    Under(Pid),
    /// All processes with this mark in their environment.
    Marked(String),
}
