//! macOS and other systems without `/proc`: a command's processes are its process group.

use std::{io, process::Command};

use rustix::process::{Pid, Signal};

use super::kin::Kin;

/// Nobody: there is no list of processes.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) group: Pid,
}

impl Member {
    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(super) fn signal(&self, _: Signal) {}
}

/// This system cannot tell.
pub(super) fn members(_: Option<Pid>, _: &Kin) -> Option<Vec<Member>> {
    None
}

#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(in super::super) fn become_reaper() -> io::Result<()> {
    Ok(())
}

/// Nobody is adopted here.
pub(in super::super) fn reap_adopted(_: Pid) {}

/// When a process was started.
pub(super) fn started(pid: i32) -> Option<String> {
    said_by(Command::new("ps").args(["-o", "lstart=", "-p", &pid.to_string()]))
}

/// A name for the time since the machine was started.
pub(super) fn boot() -> String {
    said_by(Command::new("sysctl").args(["-n", "kern.bootsessionuuid"])).unwrap_or_default()
}

fn said_by(command: &mut Command) -> Option<String> {
    let output = command.env("LC_ALL", "C").output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !said.is_empty()).then_some(said)
}
