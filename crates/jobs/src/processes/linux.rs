//! Process discovery on Linux, with `/proc`.

use std::{
    fs::{self, File},
    io::{self, Read},
};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal,
    set_child_subreaper, waitpid,
};

use super::{super::names::JOB_VARIABLE, kin::Kin};

/// A live process.
#[derive(Debug)]
pub(super) struct Member {
    pid: Pid,
    parent: i32,
    pub(super) group: Pid,
    started: String,
}

impl Member {
    /// Reads a process. Returns `None` if it is dead.
    fn read(pid: Pid) -> Option<Self> {
        let Stat { state, parent, group, started } = Stat::read(number(pid))?;
        // Kernel threads have no group.
        let group = Pid::from_raw(group)?;
        (!matches!(state, 'Z' | 'X')).then_some(Self { pid, parent, group, started })
    }

    pub(super) fn signal(&self, signal: Signal) {
        // The process ID may have been reused. Open a pidfd first, and then check the start time
        // again.
        let Ok(held) = pidfd_open(self.pid, PidfdFlags::empty()) else { return };
        if started(number(self.pid)).as_ref() == Some(&self.started) {
            let _ = pidfd_send_signal(held, signal);
        }
    }
}

/// Returns the live processes of a group and its kin. Always `Some` on Linux.
#[expect(clippy::unnecessary_wraps, reason = "other systems return `None`")]
pub(super) fn members(group: Option<Pid>, kin: &Kin) -> Option<Vec<Member>> {
    let belongs: &dyn Fn(&Member) -> bool = match kin {
        // The ancestor adopts all orphans, so the group is among its descendants.
        Kin::Under(ancestor) => {
            let descendants = descendants_by_list(*ancestor);
            return Some(descendants.unwrap_or_else(|| descendants_of_all(*ancestor)));
        }
        Kin::Marked(mark) => &|process| has_mark(process, mark),
    };
    let is_member = |process: &Member| Some(process.group) == group || belongs(process);
    Some(living().filter(is_member).collect())
}

/// Returns the live descendants of a process, or `None` if the kernel does not list children.
fn descendants_by_list(ancestor: Pid) -> Option<Vec<Member>> {
    let mut children = children(ancestor)?;
    loop {
        let mut found = Vec::new();
        let mut seen = children.clone();
        while let Some(pid) = seen.pop() {
            // The state is read before the children. A dead process has no children: the ancestor
            // adopted them before.
            if let Some(process) = Member::read(pid) {
                found.push(process);
                seen.extend(self::children(pid).unwrap_or_default());
            }
        }
        // Adopted children would be new in this list.
        let again = self::children(ancestor)?;
        if again == children {
            return Some(found);
        }
        children = again;
    }
}

fn children(parent: Pid) -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{}/task", number(parent))).ok()? {
        let list = fs::read_to_string(task.ok()?.path().join("children")).ok()?;
        children.extend(
            list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)),
        );
    }
    Some(children)
}

/// Returns the live descendants of a process, from a scan of all processes.
fn descendants_of_all(ancestor: Pid) -> Vec<Member> {
    let mut all: Vec<Member> = living().collect();
    let mut found: Vec<Member> = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        let before = found.len();
        found.extend(all.extract_if(.., |process| process.parent == number(parent)));
        parents.extend(found[before..].iter().map(|child| child.pid));
    }
    found
}

/// Makes this process the parent of orphaned descendants, so that they can be found.
pub(in super::super) fn become_reaper() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Reaps adopted processes that have exited. Does not reap `child`.
pub(in super::super) fn reap_adopted(child: Pid) {
    for pid in children(getpid()).unwrap_or_default() {
        if pid != child {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

/// Returns the start time of a process in kernel ticks.
pub(super) fn started(pid: i32) -> Option<String> {
    Some(Stat::read(pid)?.started)
}

/// Returns an ID of the current boot.
pub(super) fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

fn living() -> impl Iterator<Item = Member> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries
        .filter_map(|entry| Pid::from_raw(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .filter_map(Member::read)
}

/// Fields of `/proc/<pid>/stat`.
struct Stat {
    state: char,
    parent: i32,
    group: i32,
    started: String,
}

impl Stat {
    fn read(pid: i32) -> Option<Self> {
        // The content is never longer, and one read is cheaper than `fs::read`, which queries the
        // length first.
        let mut stat = [0; 1024];
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
        // The program name may be invalid UTF-8.
        Self::parse(&String::from_utf8_lossy(&stat[..length]))
    }

    fn parse(stat: &str) -> Option<Self> {
        // The second field is the program name in parentheses, which may itself contain parentheses
        // and spaces.
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
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, getpid};

    use super::{Stat, children, descendants_by_list, descendants_of_all};

    #[test]
    fn descendants_by_list_and_by_scan_are_equal() {
        // A child with two children, which waits for input.
        let script = "sleep 1000 & a=$!; sleep 1000 & b=$!; read end; kill $a $b";
        let mut child =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        while children(pid).unwrap().len() < 2 {
            std::thread::yield_now();
        }
        let pids = |members: Vec<super::Member>| {
            let mut pids: Vec<i32> =
                members.iter().map(|member| super::number(member.pid)).collect();
            pids.sort_unstable();
            pids
        };
        let listed = pids(descendants_by_list(pid).unwrap());
        assert_eq!(listed.len(), 2);
        assert_eq!(listed, pids(descendants_of_all(pid)));
        assert!(pids(descendants_by_list(getpid()).unwrap()).contains(&super::number(pid)));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(descendants_by_list(pid).is_none_or(|left| left.is_empty()));
    }

    #[test]
    fn program_name_with_parentheses_is_parsed() {
        let stat = "17 (a) R 1 (b) S 3 4 4 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8812 2 3 18446744073709551615";
        let stat = Stat::parse(stat).expect("all fields are present");
        assert_eq!((stat.state, stat.parent, stat.group), ('S', 3, 4));
        assert_eq!(stat.started, "8812");
    }
}
