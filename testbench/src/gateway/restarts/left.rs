//! Open files, processes, sockets and folders of a gateway.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::Result;

/// Returns the number of open files of a process.
pub(super) fn open_files(process: u32) -> Result<usize> {
    Ok(fs::read_dir(format!("/proc/{process}/fd"))?.count())
}

/// Returns the processes that run a program, out of some.
pub(super) fn running(program: &Path, processes: &[u32]) -> Vec<u32> {
    let runs = |process: &&u32| {
        fs::read_link(format!("/proc/{process}/exe")).is_ok_and(|exe| exe == program)
    };
    processes.iter().filter(runs).copied().collect()
}

/// Returns the number of sockets in a folder, and of folders of processes: those with a
/// specification.
pub(super) fn sockets_and_folders(folder: &Path) -> Result<(usize, usize)> {
    let (mut sockets, mut folders) = (0, usize::from(folder.join("spec.json").exists()));
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        sockets += usize::from(kind.is_socket());
        if kind.is_dir() {
            let (inner_sockets, inner_folders) = sockets_and_folders(&entry.path())?;
            sockets += inner_sockets;
            folders += inner_folders;
        }
    }
    Ok((sockets, folders))
}
