//! Folder of all jobs, or of all supervised processes.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::{Error, Result, files::random_name, folder, short_path::ShortPath};

/// Opens the folder, and removes leftovers of processes that were killed. Creates it if it is
/// missing.
pub(super) fn open_root(folder: &Path) -> Result<PathBuf> {
    let folder = std::path::absolute(folder).map_err(Error::io("find", folder))?;
    let sockets = folder::sockets(&folder);
    if let Err(source) = ShortPath::new(&sockets.join(random_name())) {
        return Err(Error::PathTooLong { folder, source });
    }
    // Both folders get permissions for this user only, even if they existed.
    for path in [&folder, &sockets] {
        folder::private_folder(path)
            .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o700)))
            .map_err(Error::io("create the folder", path))?;
    }
    folder::tidy(&folder).map_err(Error::io("read", &folder))?;
    Ok(folder)
}
