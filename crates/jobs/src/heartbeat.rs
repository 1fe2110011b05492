//! The heartbeat by which supervisors know that a server is alive.
//!
//! A file time, not a lock: a server that is frozen, or that has lost its store, still holds its
//! locks, but its heartbeat stops.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

/// Minimum and maximum interval between two checks.
const CHECKS: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

const NAME: &str = "server.heartbeat";

/// Records that a server works with this data folder.
///
/// Several servers may share a data folder. A supervisor ends its command when no server has called
/// this for [`JobSpec::orphan_timeout`](super::JobSpec::orphan_timeout).
pub fn record_heartbeat(data: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(data.join(NAME))?.set_modified(SystemTime::now())
}

/// Last heartbeat of a server that a supervisor has seen.
#[derive(Debug)]
pub(super) struct LastHeartbeat {
    /// Only a change of it means something, because clocks are adjusted.
    last: Option<SystemTime>,
    seen: Instant,
}

impl LastHeartbeat {
    pub(super) fn new() -> Self {
        Self { last: None, seen: Instant::now() }
    }

    /// Returns the time of the next check, if a process ends without heartbeats.
    pub(super) fn next_check(orphan_timeout: Option<Duration>) -> Option<Instant> {
        let every = (orphan_timeout? / 4).clamp(CHECKS.0, CHECKS.1);
        Some(Instant::now() + every)
    }

    /// Checks for a heartbeat in a data folder. Returns the time since the last new one.
    pub(super) fn silence(&mut self, data: Option<&Path>) -> Duration {
        let modified = |data: &Path| fs::metadata(data.join(NAME)).and_then(|file| file.modified());
        let last = data.and_then(|data| modified(data).ok());
        if last != self.last {
            self.last = last;
            self.seen = Instant::now();
        }
        self.seen.elapsed()
    }
}
