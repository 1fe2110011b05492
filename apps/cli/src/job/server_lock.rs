//! The lock by which commands see that there is a server.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::Path,
};

/// Held by a server as long as it is there.
#[derive(Debug)]
pub struct ServerLock {
    _file: File,
}

/// Says that a server works with this data folder, until what it returns is dropped. Several may say so at once.
pub fn server_lock(data: &Path) -> io::Result<ServerLock> {
    fs::create_dir_all(data)?;
    let file = open(&data.join(NAME))?;
    // A supervisor that looks holds it for an instant, so this waits for no more than that.
    file.lock_shared()?;
    Ok(ServerLock { _file: file })
}

/// Whether any server is there.
pub(super) fn is_held(data: &Path) -> bool {
    let Ok(file) = File::options().write(true).open(data.join(NAME)) else { return false };
    // Two supervisors that look in the same instant see each other, and look again later.
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

const NAME: &str = "server.lock";

fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
