//! Process discovery on macOS and other systems without `/proc`: the processes of a command are its
//! process group.

use std::{io, process::Command};

use rustix::process::{Pid, Signal};

use super::kin::Kin;

/// Placeholder: these systems have no list of processes.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) group: Pid,
}

impl Member {
    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn signal(&self, _: Signal) {}
}

/// Returns `None`, because this system has no list of processes.
pub(super) fn members(_: Option<Pid>, _: &Kin) -> Option<Vec<Member>> {
    None
}

#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(in super::super) fn become_reaper() -> io::Result<()> {
    Ok(())
}

/// Does nothing: processes are not adopted on this system.
pub(in super::super) fn reap_adopted(_: Pid) {}

/// Returns the start time of a process.
pub(super) fn started(pid: i32) -> Option<String> {
    output_of(Command::new("ps").args(["-o", "lstart=", "-p", &pid.to_string()]))
}

/// Returns an ID of the current boot.
pub(super) fn boot() -> String {
    output_of(Command::new("sysctl").args(["-n", "kern.bootsessionuuid"])).unwrap_or_default()
}

fn output_of(command: &mut Command) -> Option<String> {
    let output = command.env("LC_ALL", "C").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}
