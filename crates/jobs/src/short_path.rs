//! [`ShortPath`]: the path of a socket, within the limit of the system.

use std::{
    env, fs, io,
    os::unix::{fs::symlink, net::SocketAddr},
    path::{Path, PathBuf},
};

use super::files::random_name;

/// Path of a socket that the system accepts: about 100 bytes.
///
/// A longer path is shortened by a symbolic link to its folder, in the folder for temporary files. A
/// socket needs the link only while it is bound or connected, so dropping this value removes the
/// link.
#[derive(Debug)]
pub struct ShortPath {
    path: PathBuf,
    link: Option<PathBuf>,
}

impl ShortPath {
    /// Shortens a path if it is too long.
    ///
    /// # Errors
    ///
    /// Returns an error if the link cannot be created, or if its own path is too long.
    pub fn new(socket: &Path) -> io::Result<Self> {
        if SocketAddr::from_pathname(socket).is_ok() {
            return Ok(Self { path: socket.to_owned(), link: None });
        }
        let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        loop {
            let link = env::temp_dir().join(format!(".outlive-{}", random_name()));
            let path = link.join(name);
            SocketAddr::from_pathname(&path)?;
            match symlink(folder, &link) {
                Ok(()) => return Ok(Self { path, link: Some(link) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the path to bind or connect.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ShortPath {
    fn drop(&mut self) {
        if let Some(link) = &self.link {
            // A link that stays behind has no effect: its name is random.
            let _ = fs::remove_file(link);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{env, fs, io, os::unix::net::UnixListener};

    use super::{super::files::random_name, ShortPath};

    #[test]
    fn socket_of_deep_folder_is_bound_through_link_that_is_removed() {
        let root = env::temp_dir().join(format!("outlive-short-path-{}", random_name()));
        let folder = root.join("a".repeat(120));
        fs::create_dir_all(&folder).unwrap();
        let short = ShortPath::new(&folder.join("socket")).unwrap();
        let link = short.path().parent().unwrap().to_owned();
        let _listener = UnixListener::bind(short.path()).unwrap();
        assert!(folder.join("socket").exists());
        drop(short);
        assert!(fs::symlink_metadata(link).is_err(), "the link is removed");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn path_that_a_link_cannot_shorten_is_rejected_without_link() {
        let name = "a".repeat(120);
        let error = ShortPath::new(&env::temp_dir().join(&name)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn path_that_fits_is_unchanged() {
        let path = env::temp_dir().join("socket");
        assert_eq!(ShortPath::new(&path).unwrap().path(), path);
    }
}
