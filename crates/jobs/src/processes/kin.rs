//! Who belongs to a command beside its process group.

use rustix::process::Pid;

#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux can tell"))]
pub(super) enum Kin {
    /// All that descend from this process.
    Under(Pid),
    /// All that have this in their environment.
    Marked(String),
}
