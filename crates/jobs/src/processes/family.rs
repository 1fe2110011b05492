//! All processes of a command, and how they are terminated.

use std::{io, time::Duration};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, test_kill_process_group,
    waitid, waitpid,
};
use tokio::time::{Instant, sleep};

use super::{
    super::{
        folder::{Child, Folder},
        spec::How,
    },
    kin::Kin,
    system,
};

/// Interval of checks whether processes have exited. The kernel sends no signal for processes that
/// are not children.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Time to wait after SIGKILL. A process may survive it if it belongs to another user, or if it
/// waits for a disk that does not respond.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// Warning about processes that survived.
pub(crate) const LEFT: &str = "some processes of the command could not be terminated; find them with `ps`, they may belong to another user";

/// All processes of a command.
#[derive(Debug)]
pub(crate) struct Family {
    /// Process group of the command, if it is known that the number has not been reused.
    group: Option<Pid>,
    /// Other processes of the command.
    kin: Kin,
}

impl Family {
    /// Returns the processes of a command that this process started as a group leader.
    pub(crate) fn of_own_child(child: Pid) -> Self {
        Self { group: Some(child), kin: Kin::Under(rustix::process::getpid()) }
    }

    /// Returns the processes of a child that this process started as a group leader, with `mark` in
    /// its environment.
    pub(crate) fn of_marked_child(child: Pid, mark: &str) -> Self {
        Self { group: Some(child), kin: Kin::Marked(mark.to_owned()) }
    }

    /// Returns the processes with a mark whose supervisor is gone, or `None` if they cannot have
    /// survived.
    pub(crate) fn left_behind(mark: &str, child: Option<&Child>) -> Option<Self> {
        // After a reboot, process IDs refer to other processes.
        if child.is_some_and(|child| child.boot != system::boot()) {
            return None;
        }
        let group = child
            .filter(|child| system::started(child.pid).as_ref() == Some(&child.started))
            .and_then(|child| Pid::from_raw(child.pid));
        Some(Self { group, kin: Kin::Marked(mark.to_owned()) })
    }

    /// Returns whether no process is left, after the command itself has exited. Zombies do not
    /// count.
    pub(crate) fn is_gone(&self) -> bool {
        match system::members(self.group, &self.kin) {
            Some(members) => members.is_empty(),
            None => self.group.is_none_or(|group| {
                // On some systems, a group exists as long as its zombie leader. Its exit status is
                // known by now, and its number is not reused while the group has other members.
                let _ = waitpid(Some(group), WaitOptions::NOHANG);
                test_kill_process_group(group).is_err()
            }),
        }
    }

    /// Asks all processes to exit (SIGTERM).
    pub(crate) fn ask_to_end(&self) {
        // A stopped process handles SIGTERM only after SIGCONT.
        self.signal(&[Signal::TERM, Signal::CONT]);
    }

    /// Kills all processes.
    pub(crate) fn end(&self) {
        self.signal(&[Signal::KILL]);
    }

    /// Asks all processes to exit, kills those that remain after `grace`, and waits for them.
    /// Returns whether none is left.
    pub(crate) async fn end_all(&self, grace: Duration) -> bool {
        let hard = later(grace);
        self.ask_to_end();
        while !self.is_gone() {
            let now = Instant::now();
            if now >= hard + GIVE_UP_AFTER {
                return false;
            }
            if now >= hard {
                self.end();
            }
            sleep(LOOK_EVERY).await;
        }
        true
    }

    fn signal(&self, signals: &[Signal]) {
        // Errors are ignored: a process may have exited meanwhile.
        let others = system::members(None, &self.kin).into_iter().flatten();
        let others: Vec<_> = others.filter(|member| Some(member.group) != self.group).collect();
        for &signal in signals {
            if let Some(group) = self.group {
                let _ = kill_process_group(group, signal);
            }
            others.iter().for_each(|member| member.signal(signal));
        }
    }
}

/// Returns the instant `by` from now, limited to one year to avoid overflow.
pub(crate) fn later(by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + by.min(YEAR)
}

/// Terminates the remaining processes of a command whose supervisor was killed. Returns whether
/// none is left.
pub(crate) async fn end_left_behind(folder: &Folder, grace: Duration) -> io::Result<bool> {
    let Some(start) = folder.start_mark()? else { return Ok(true) };
    match Family::left_behind(&start.mark, folder.child()?.as_ref()) {
        Some(family) => Ok(family.end_all(grace).await),
        None => Ok(true),
    }
}

/// Returns how the command ended, if it has. Does not reap the process, so that its ID, which is
/// also the group ID, is not reused while the supervisor runs.
pub(crate) fn ending(child: Pid) -> Option<How> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(child), options).ok()??;
    if let Some(code) = status.exit_status() {
        return Some(How::Code(code));
    }
    status.terminating_signal().map(How::Signal)
}

/// Returns the data that distinguishes this process from a later one with the same ID.
pub(crate) fn identity(pid: Pid) -> Child {
    let pid = pid.as_raw_nonzero().get();
    Child { pid, started: system::started(pid).unwrap_or_default(), boot: system::boot() }
}
