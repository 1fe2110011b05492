//! Sockets of supervisors.

use std::{io, path::PathBuf};

use tokio::net::{UnixListener, UnixStream};

use super::{
    files::random_name,
    folder::{Folder, sockets},
};

/// Opens a socket with a short random name, and records the name in the folder.
pub(super) fn listen(folder: &Folder) -> io::Result<(UnixListener, PathBuf)> {
    loop {
        let name = random_name();
        let path = sockets(folder.jobs()).join(&name);
        match UnixListener::bind(&path) {
            Ok(listener) => {
                folder.set_control(&name)?;
                return Ok((listener, path));
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns whether the peer has the same user ID. The folder already excludes other users; this
/// also holds if its permissions were changed.
pub(super) fn is_ours(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}
