//! Linux: `/proc` says who there is.

use std::{fs, io};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitpid,
};

use super::{super::JOB_VARIABLE, Kin};

/// A process that is alive.
#[derive(Debug)]
pub(super) struct Member {
    pid: Pid,
    parent: i32,
    pub(super) group: Pid,
    started: String,
}

impl Member {
    pub(super) fn signal(&self, signal: Signal) {
        // Since it was seen it may have ended, and its number may be another's: hold on to it, then look again.
        let Ok(held) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        if started(number(self.pid)).as_ref() == Some(&self.started) {
            let _ = pidfd_send_signal(held, signal);
        }
    }
}

/// The living among a group and its kin. None would say that this system cannot tell.
#[expect(clippy::unnecessary_wraps, reason = "other systems cannot tell")]
pub(super) fn members(group: Option<Pid>, kin: &Kin) -> Option<Vec<Member>> {
    let mut all: Vec<Member> = living();
    let mut members: Vec<Member> = Vec::new();
    match kin {
        Kin::Under(ancestor) => {
            let mut parents = vec![number(*ancestor)];
            while let Some(parent) = parents.pop() {
                let children = all.extract_if(.., |process| process.parent == parent);
                let before = members.len();
                members.extend(children);
                parents.extend(members[before..].iter().map(|child| number(child.pid)));
            }
        }
        Kin::Marked(mark) => members.extend(all.extract_if(.., |process| has_mark(process, mark))),
    }
    members.extend(all.extract_if(.., |process| Some(process.group) == group));
    Some(members)
}

/// Those whose parents end become children of this process, and so are not lost sight of.
pub(in super::super) fn become_reaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Lets adopted processes that have ended leave the table of processes; `child` stays.
pub(in super::super) fn reap_adopted(child: Pid) {
    let own = number(getpid());
    let adopted = fs::read_to_string(format!("/proc/self/task/{own}/children")).unwrap_or_default();
    for pid in adopted.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)) {
        if pid != child {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// When a process was started, in the kernel's own time.
pub(super) fn started(pid: i32) -> Option<String> {
    Some(Stat::read(pid)?.started)
}

/// A name for the time since the machine was started.
pub(super) fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

fn living() -> Vec<Member> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: i32| {
            let stat = Stat::read(pid)?;
            // Kernel threads have no group.
            let (pid, group) = (Pid::from_raw(pid)?, Pid::from_raw(stat.group)?);
            let is_dead = matches!(stat.state, 'Z' | 'X');
            (!is_dead).then_some(Member { pid, parent: stat.parent, group, started: stat.started })
        })
        .collect()
}

/// What is needed of `/proc/<pid>/stat`.
struct Stat {
    state: char,
    parent: i32,
    group: i32,
    started: String,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        // The name of a program need not be text.
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    fn parse(stat: &str) -> Option<Self> {
        // The second field is the program's name in brackets, and may have brackets and spaces itself.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            started: fields.nth(16)?.to_owned(),
        })
    }
}

fn has_mark(process: &Member, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", number(process.pid)));
    environment.is_ok_and(|environment| {
        environment.split(|byte| *byte == 0).any(|variable| {
            variable
                .strip_prefix(JOB_VARIABLE.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="))
                .is_some_and(|value| value == mark.as_bytes())
        })
    })
}

fn number(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::Stat;

    #[test]
    fn the_name_of_a_program_may_look_like_other_fields() {
        let stat = "17 (a) R 1 (b) S 3 4 4 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8812 2 3 18446744073709551615";
        let stat = Stat::parse(stat).expect("it is whole");
        assert_eq!((stat.state, stat.parent, stat.group), ('S', 3, 4));
        assert_eq!(stat.started, "8812");
    }
}
