//! All processes of a command, and how they are ended.

use std::{io, time::Duration};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process_group, test_kill_process_group,
    waitid, waitpid,
};
use tokio::time::{Instant, sleep};

use super::{
    super::{
        folder::{Begun, Child, Folder},
        spec::How,
    },
    kin::Kin,
    system,
};

/// How often is looked whether processes that were told to end have ended: no signal tells of those that are not our
/// children.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long what was ended may go on before it is told of instead of waited for: it may belong to another user, or
/// wait for a disk that never answers.
pub(crate) const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// What is told then.
pub(crate) const LEFT: &str =
    "some of its processes could not be ended; look for them with `ps`, they may be another user's";

/// All processes of a command.
#[derive(Debug)]
pub(crate) struct Family {
    /// Its process group, where that is known to be the command's and not a later one of the same number.
    group: Option<Pid>,
    /// Who else belongs to it.
    kin: Kin,
}

impl Family {
    /// Those of a command that this process has started as the leader of a group.
    pub(crate) fn of_own_child(child: Pid) -> Self {
        Self { group: Some(child), kin: Kin::Under(rustix::process::getpid()) }
    }

    /// Those of a command whose supervisor is gone. None if they cannot have survived.
    fn left_behind(begun: &Begun, child: Option<&Child>) -> Option<Self> {
        // After a restart of the machine all numbers mean something else.
        if child.is_some_and(|child| child.boot != system::boot()) {
            return None;
        }
        let group = child
            .filter(|child| system::started(child.pid).as_ref() == Some(&child.started))
            .and_then(|child| Pid::from_raw(child.pid));
        Some(Self { group, kin: Kin::Marked(begun.mark.clone()) })
    }

    /// Whether none is left, once the command itself has ended. Dead ones whom nobody has asked after do not count.
    pub(crate) fn is_gone(&self) -> bool {
        match system::members(self.group, &self.kin) {
            Some(members) => members.is_empty(),
            None => self.group.is_none_or(|group| {
                // On some systems a group is there as long as its dead leader is. How it ended is known by now, and
                // its number is no other's as long as the group has anybody else.
                let _ = waitpid(Some(group), WaitOptions::NOHANG);
                test_kill_process_group(group).is_err()
            }),
        }
    }

    /// Asks all of them to end.
    pub(crate) fn ask_to_end(&self) {
        // One that is stopped does not hear it until it goes on.
        self.signal(&[Signal::TERM, Signal::CONT]);
    }

    /// Ends all of them.
    pub(crate) fn end(&self) {
        self.signal(&[Signal::KILL]);
    }

    /// Asks all of them to end, ends those that have not after a while, and waits until none is left. Returns whether
    /// that came true.
    async fn end_all(&self, grace: Duration) -> bool {
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
        // That somebody is gone meanwhile is what this is for.
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

/// So much later than now; what is too far to be told is a year.
pub(crate) fn later(by: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + by.min(YEAR)
}

/// Ends what is left of a command whose supervisor was killed. Returns whether nothing is left then.
pub(crate) async fn end_left_behind(folder: &Folder, grace: Duration) -> io::Result<bool> {
    let Some(begun) = folder.begun()? else { return Ok(true) };
    match Family::left_behind(&begun, folder.child()?.as_ref()) {
        Some(family) => Ok(family.end_all(grace).await),
        None => Ok(true),
    }
}

/// How the command ended, once it has. It is not asked to leave the table of processes: so its number, which is that
/// of its group too, is no other's as long as the supervisor lives.
pub(crate) fn ending(child: Pid) -> Option<How> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(child), options).ok()??;
    if let Some(code) = status.exit_status() {
        return Some(How::Code(code));
    }
    status.terminating_signal().map(How::Signal)
}

/// What makes this process different from a later one of the same number.
pub(crate) fn identity(pid: Pid) -> Child {
    let pid = pid.as_raw_nonzero().get();
    Child { pid, started: system::started(pid).unwrap_or_default(), boot: system::boot() }
}
