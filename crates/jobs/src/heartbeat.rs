//! The heartbeat by which supervisors know that a server is alive.
//!
//! A file time, not a lock: a server that is frozen, or that has lost its store, still holds its
//! locks, but its heartbeat stops.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::SystemTime,
};

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

/// Returns the time of the last heartbeat. Only a change of it means something, because clocks are
/// adjusted.
pub(super) fn last(data: &Path) -> Option<SystemTime> {
    fs::metadata(data.join(NAME)).and_then(|file| file.modified()).ok()
}
