//! Process groups and signals on Unix.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::process::{Child, Command};

/// Makes the child the leader of a new process group.
pub(super) fn lead(command: &mut Command) {
    command.process_group(0);
}

/// Asks a process to exit, or all processes of its group.
pub(super) fn terminate(child: &mut Child, whole_group: bool) {
    if let Some(id) = child.id() {
        send(id, whole_group, Signal::TERM);
    }
}

/// Kills all processes of a group.
pub(super) fn kill_group(id: u32) {
    send(id, true, Signal::KILL);
}

fn send(id: u32, whole_group: bool, signal: Signal) {
    let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) else { return };
    // The process or its group may have ended, which is fine.
    let _ = match whole_group {
        true => kill_process_group(id, signal),
        false => kill_process(id, signal),
    };
}
