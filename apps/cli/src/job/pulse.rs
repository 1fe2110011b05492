//! The pulse by which commands see that there is a server.
//!
//! A time on a file, not a lock: a server that is frozen, or that has lost touch with its store, holds its locks
//! and has no pulse.

use std::{
    fs::{self, File},
    io,
    path::Path,
    time::SystemTime,
};

const NAME: &str = "server.pulse";

/// Says that a server works with this data folder. Several may.
pub fn beat(data: &Path) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(data.join(NAME))?.set_modified(SystemTime::now())
}

/// When any server last said so. Only whether it changes means something: clocks are set.
pub(super) fn last(data: &Path) -> Option<SystemTime> {
    fs::metadata(data.join(NAME)).and_then(|file| file.modified()).ok()
}
