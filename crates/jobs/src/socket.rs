//! Sockets of supervisors.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

use super::{
    files::random_name,
    folder::{Folder, sockets},
    short_path::ShortPath,
};

/// Opens a socket with a short random name, and records the name in the folder.
pub(super) fn listen(folder: &Folder) -> io::Result<(UnixListener, PathBuf)> {
    loop {
        let name = random_name();
        let path = sockets(folder.jobs()).join(&name);
        match UnixListener::bind(ShortPath::new(&path)?.path()) {
            Ok(listener) => {
                folder.set_control(&name)?;
                return Ok((listener, path));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
}

/// Connects to the socket of a supervisor.
pub(super) async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(ShortPath::new(path)?.path()).await
}

/// Returns whether the peer has the same user ID. The folder already excludes other users; this
/// also holds if its permissions were changed.
pub(super) fn is_ours(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}
