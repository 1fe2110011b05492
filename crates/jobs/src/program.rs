//! Path of the program that supervisors run.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path, path::PathBuf};

/// Returns the path of the running program, even if its file has been replaced.
pub(super) fn this_program() -> io::Result<PathBuf> {
    const RUNNING: &str = "/proc/self/exe";
    let path = std::env::current_exe()?;
    let is_same = |running: &Path| {
        let (running, named) = (fs::metadata(running)?, fs::metadata(&path)?);
        io::Result::Ok((running.dev(), running.ino()) == (named.dev(), named.ino()))
    };
    match is_same(Path::new(RUNNING)) {
        Ok(false) => Ok(RUNNING.into()),
        Err(_) if Path::new(RUNNING).exists() => Ok(RUNNING.into()),
        // The program file is unchanged, or the system cannot tell.
        _ => Ok(path),
    }
}
