//! Process groups on systems without them: only the process itself ends.

use tokio::process::{Child, Command};

/// Has no effect without process groups.
pub(super) fn lead(_command: &mut Command) {}

/// Kills the process, because no signal asks it to exit.
pub(super) fn terminate(child: &mut Child, _whole_group: bool) {
    let _ = child.start_kill();
}

/// Has no effect: the process itself has ended.
pub(super) fn kill_group(_id: u32) {}
