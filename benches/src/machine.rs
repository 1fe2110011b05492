//! Data of the machine: processor time, memory, cores, limits, and load of other processes.
//!
//! Processor time comes from `schedstat`, in nanoseconds. `/proc/PID/stat` counts in hundredths of
//! a second, which is too coarse for a slice.

use std::{
    fs, io,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::{
    process::{Pid, Resource, Rlimit, getrlimit, setrlimit},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

/// Duration of a tick in `/proc/stat`. The kernel always shows a hundred per second.
const TICK: Duration = Duration::from_millis(10);

/// The two cores: one for the server, one for the load generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    pub(crate) server: usize,
    pub(crate) generator: usize,
}

impl Cores {
    /// Chooses the first two available cores.
    pub(crate) fn choose() -> Result<Self> {
        let ours = sched_getaffinity(None).context("could not read the available cores")?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| ours.is_set(*core));
        match (cores.next(), cores.next()) {
            (Some(server), Some(generator)) => Ok(Self { server, generator }),
            _ => bail!(
                "the benchmark needs two cores: one for the server, one for the load generator"
            ),
        }
    }
}

/// Pins this thread and its future children to one core.
pub(crate) fn pin(core: usize) -> Result<()> {
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).with_context(|| format!("could not move to core {core}"))
}

/// Lets this thread and its future children use both cores.
pub(crate) fn spread(cores: Cores) -> Result<()> {
    let mut both = CpuSet::new();
    both.set(cores.server);
    both.set(cores.generator);
    sched_setaffinity(None, &both).context("could not use both cores")
}

/// Processor time of all threads of a process. Exact only while it sleeps: running threads are
/// counted at the next scheduler tick.
pub(crate) fn cpu_of(pid: u32) -> Result<Duration> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .with_context(|| format!("process {pid} is gone"))?;
    let mut nanos = 0;
    for thread in threads {
        let text = match fs::read_to_string(thread?.path().join("schedstat")) {
            Ok(text) => text,
            // The thread has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        let time = text.split(' ').next().and_then(|time| time.parse::<u64>().ok());
        nanos += time.context("/proc/PID/task/TID/schedstat does not start with a number")?;
    }
    Ok(Duration::from_nanos(nanos))
}

/// Processor time of several processes.
fn cpu_of_all(pids: &[u32]) -> Result<Duration> {
    pids.iter().map(|pid| cpu_of(*pid)).sum()
}

/// Resident memory of a process in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    // Not `status`: its per-core counter may lag by some hundred KiB.
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kib = line
        .and_then(|line| line.trim().strip_suffix(" kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok());
    Ok(kib.context("/proc/PID/smaps_rollup has no Rss")? * 1024)
}

/// Memory that only this process uses, in bytes.
pub(crate) fn private_bytes(pid: u32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
    };
    match (kib("Private_Clean:"), kib("Private_Dirty:")) {
        (Some(clean), Some(dirty)) => Ok((clean + dirty) * 1024),
        _ => bail!("/proc/PID/smaps_rollup has no private memory"),
    }
}

/// The child processes of a process.
pub(crate) fn children_of(pid: u32) -> Result<Vec<u32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))
        .with_context(|| format!("process {pid} is gone"))?
    {
        // A thread may have just ended.
        let text = fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
        children.extend(text.split_whitespace().flat_map(str::parse::<u32>));
    }
    Ok(children)
}

/// All processes below a process, without those that run this program.
pub(crate) fn helpers_of(pid: u32) -> Result<Vec<u32>> {
    let ours = std::env::current_exe().context("could not find this program")?;
    let (mut found, mut rest) = (Vec::new(), children_of(pid)?);
    while let Some(child) = rest.pop() {
        if fs::read_link(format!("/proc/{child}/exe")).is_ok_and(|program| program == ours) {
            continue;
        }
        // The process may have just ended.
        rest.extend(children_of(child).unwrap_or_default());
        found.push(child);
    }
    Ok(found)
}

/// Description of the machine.
pub(crate) fn describe() -> Result<String> {
    let text = fs::read_to_string("/proc/cpuinfo")?;
    let models: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, model)| model)
        .collect();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let memory = fs::read_to_string("/proc/meminfo")?;
    let kib = memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok());
    Ok(format!(
        "{} × {}, {} GiB, Linux {}",
        models.len(),
        models.first().unwrap_or(&"processor of unknown kind"),
        kib.unwrap_or_default() >> 20,
        kernel.trim()
    ))
}

/// The load average of the last minute.
pub(crate) fn load_average() -> Result<String> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').next().unwrap_or_default().to_owned())
}

/// Raises the limit of open files for this process and its children. Returns the resulting limit.
pub(crate) fn allow_open_files(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: &Rlimit| limit.current.is_none_or(|current| current >= wanted);
    if enough(&limit) {
        return wanted;
    }
    // Raising the hard limit needs privileges; otherwise the existing limit is used.
    let raised =
        Rlimit { current: Some(wanted), maximum: limit.maximum.map(|maximum| maximum.max(wanted)) };
    if setrlimit(Resource::Nofile, raised).is_err() {
        let _ =
            setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(wanted).min(wanted)
}

/// Measures the load between two moments.
#[derive(Debug)]
pub(crate) struct Watch {
    begun: Instant,
    busy: Ticks,
    server: Duration,
    own: Duration,
    helper: Duration,
    pids: Vec<u32>,
    helper_pid: Option<u32>,
}

/// The result of a [`Watch`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) elapsed: Duration,
    pub(crate) server: Duration,
    /// Share of one core that other processes used.
    pub(crate) others: f64,
    /// Share of one core that the hypervisor took.
    pub(crate) stolen: f64,
}

#[derive(Clone, Copy, Debug)]
struct Ticks {
    busy: u64,
    stolen: u64,
}

impl Watch {
    /// Watches the processes of a server and a helper, which does not count as another process.
    pub(crate) fn begin(pids: Vec<u32>, helper_pid: Option<u32>) -> Result<Self> {
        let own = cpu_of(own_pid())?;
        let helper = helper_pid.map(cpu_of).transpose()?.unwrap_or_default();
        let (busy, server) = (Ticks::read()?, cpu_of_all(&pids)?);
        Ok(Self { busy, server, own, helper, pids, helper_pid, begun: Instant::now() })
    }

    pub(crate) fn end(&self) -> Result<Seen> {
        let elapsed = self.begun.elapsed();
        let server = cpu_of_all(&self.pids)?.saturating_sub(self.server);
        let own = cpu_of(own_pid())?.saturating_sub(self.own);
        let helper = self.helper_pid.map(cpu_of).transpose()?.unwrap_or_default();
        let helper = helper.saturating_sub(self.helper);
        let ticks = Ticks::read()?;
        let share = |ticks: u64| (TICK * ticks as u32).as_secs_f64() / elapsed.as_secs_f64();
        // A process that measures itself is counted once.
        let measures_itself = self.pids == [own_pid()];
        let used = helper + if measures_itself { own } else { server + own };
        let ours = used.as_secs_f64() / elapsed.as_secs_f64();
        Ok(Seen {
            elapsed,
            server,
            others: (share(ticks.busy.saturating_sub(self.busy.busy)) - ours).max(0.0),
            stolen: share(ticks.stolen.saturating_sub(self.busy.stolen)),
        })
    }
}

impl Ticks {
    fn read() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        let line = text.lines().next().and_then(|line| line.strip_prefix("cpu"));
        let ticks: Vec<u64> =
            line.into_iter().flat_map(str::split_whitespace).flat_map(str::parse).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal. Interrupts are left out: on the
        // loopback interface they are our own messages.
        match ticks[..] {
            [user, nice, system, _, _, _, _, stolen, ..] => {
                Ok(Self { busy: user + nice + system, stolen })
            }
            _ => bail!("/proc/stat does not start with the sum of all cores"),
        }
    }
}

/// The ID of this process.
pub(crate) fn own_pid() -> u32 {
    Pid::as_raw(Some(rustix::process::getpid())).cast_unsigned()
}
