//! Credential store in a file that only its owner can read.
//!
//! A change is written to a temporary file, which then replaces the original, so that a reader
//! never sees a partial file. A lock file serializes writers of several processes.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use outlive_transport::client::SecretString;

use super::{
    credential_store::{CredentialStore, TOKENS},
    error::CredentialStoreError,
};

/// Credential store in a file with the permissions 0600.
#[derive(Clone, Debug)]
pub struct FileCredentialStore {
    path: PathBuf,
}

impl FileCredentialStore {
    /// Creates a store. The file and its directory are created when needed.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the URLs of the MCP servers that the store has tokens for.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read.
    pub fn servers(&self) -> Result<Vec<String>, CredentialStoreError> {
        let all = self.read()?;
        let servers = all.keys().filter_map(|name| name.strip_prefix(TOKENS));
        Ok(servers.map(str::to_owned).collect())
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self) -> Result<BTreeMap<String, String>, CredentialStoreError> {
        let failed = |error| self.failed("read").because(error);
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(failed(error)),
        };
        self.check(&file)?;
        let mut text = String::new();
        io::Read::read_to_string(&mut file, &mut text).map_err(failed)?;
        serde_json::from_str(&text).map_err(|_| {
            let path = self.path.display();
            CredentialStoreError::new(format!(
                "the credentials in {path} are malformed; remove the file, and log in again"
            ))
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, String>),
    ) -> Result<(), CredentialStoreError> {
        let _lock = self.lock()?;
        let mut all = self.read()?;
        change(&mut all);
        self.write(&all)
    }

    /// Locks out other writers until the returned file is dropped.
    pub(super) fn lock(&self) -> Result<File, CredentialStoreError> {
        let failed = |error| self.failed("write").because(error);
        if let Some(folder) = self.path.parent() {
            private_folder(folder).map_err(failed)?;
        }
        // The lock is a separate file, because the credential file is replaced.
        let lock = private().create(true).truncate(false).open(self.beside(".lock"));
        let lock = lock.map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(lock)
    }

    fn write(&self, all: &BTreeMap<String, String>) -> Result<(), CredentialStoreError> {
        let failed = |error| self.failed("write").because(error);
        let new = self.beside(".new");
        let _ = fs::remove_file(&new);
        let mut file = private().create_new(true).open(&new).map_err(failed)?;
        let text = serde_json::to_vec_pretty(all).map_err(|it| failed(it.into()))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&new, &self.path).map_err(failed)
    }

    fn beside(&self, ending: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(ending);
        name.into()
    }

    fn failed(&self, verb: &str) -> CredentialStoreError {
        let path = self.path.display();
        CredentialStoreError::new(format!(
            "cannot {verb} the credentials in {path}; check its permissions"
        ))
    }

    /// Checks that other users cannot read the file.
    #[cfg(unix)]
    fn check(&self, file: &File) -> Result<(), CredentialStoreError> {
        use std::os::unix::fs::PermissionsExt;

        let found = file.metadata().map_err(|error| self.failed("read").because(error))?;
        match found.permissions().mode() & 0o077 {
            0 => Ok(()),
            _ => {
                let path = self.path.display();
                Err(CredentialStoreError::new(format!(
                    "other users can read the credentials in {path}; run `chmod 600` on it, and log out and in again if it may have been read"
                )))
            }
        }
    }

    #[cfg(not(unix))]
    fn check(&self, _: &File) -> Result<(), CredentialStoreError> {
        Ok(())
    }
}

impl CredentialStore for FileCredentialStore {
    fn get(&self, name: &str) -> Result<Option<SecretString>, CredentialStoreError> {
        Ok(self.read()?.remove(name).map(SecretString::new))
    }

    fn put(&self, name: &str, value: &SecretString) -> Result<(), CredentialStoreError> {
        self.change(|all| {
            all.insert(name.to_owned(), value.expose().to_owned());
        })
    }

    fn remove(&self, name: &str) -> Result<(), CredentialStoreError> {
        match self.read()?.contains_key(name) {
            true => self.change(|all| drop(all.remove(name))),
            false => Ok(()),
        }
    }
}

/// Returns options that create files with permissions for the owner only.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn private_folder(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
