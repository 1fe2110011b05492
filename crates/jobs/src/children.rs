//! Processes that a server starts for itself, and that must not outlive it.
//!
//! A child leads a process group, and all its processes have a mark in their environment. A file with
//! the name of the mark records the child. The server locks the file as long as it lives, so the next
//! server finds the processes of a killed one.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Pid;

use super::{
    control::Nonce,
    error::{Error, Result},
    files::{is_id, read_optional},
    folder::Child,
    names::JOB_VARIABLE,
    processes::{Family, identity},
};

/// Folder with the marks of a server's children. Several servers may share it.
#[derive(Clone, Debug)]
pub struct Children {
    folder: PathBuf,
}

/// Mark of a child that is about to start.
#[derive(Debug)]
pub struct ChildMark {
    mark: String,
    file: Option<MarkFile>,
}

/// All processes of a child. Dropping the value kills them.
#[derive(Debug)]
pub struct ChildProcesses {
    family: Family,
    /// Removed when the processes are gone.
    file: Option<MarkFile>,
}

/// The file of a mark, locked by this process.
#[derive(Debug)]
struct MarkFile {
    path: PathBuf,
    _locked: File,
}

impl Children {
    /// Opens a folder, and creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be created.
    pub fn open(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).map_err(Error::io("create the folder", folder))?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Ends the processes whose server is gone: asks them to exit, and kills them after `grace`.
    /// Returns the number of children that a server has left.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder cannot be read.
    pub async fn end_orphans(&self, grace: Duration) -> Result<usize> {
        let mut ended = 0;
        let entries = fs::read_dir(&self.folder).map_err(Error::io("read", &self.folder))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(mark) = name.to_str().filter(|name| is_id(name)) else { continue };
            let path = entry.path();
            let Some(file) = lock_orphan(&path).map_err(Error::io("lock", &path))? else {
                continue;
            };
            let child = read_optional(&path).map_err(Error::io("read", &path))?;
            let child: Option<Child> = child.and_then(|text| serde_json::from_str(&text).ok());
            let is_gone = match Family::left_behind(mark, child.as_ref()) {
                Some(family) => family.end_all(grace).await,
                None => true,
            };
            if is_gone {
                ended += 1;
                let _ = fs::remove_file(&path);
            } else {
                tracing::warn!(
                    mark,
                    "orphaned processes could not be terminated; find them with `ps`"
                );
            }
            drop(file);
        }
        Ok(ended)
    }

    /// Creates a mark for a child.
    ///
    /// # Errors
    ///
    /// Returns an error if the mark cannot be recorded.
    pub fn mark(&self) -> Result<ChildMark> {
        let ChildMark { mark, .. } = ChildMark::unrecorded()?;
        let path = self.folder.join(&mark);
        let file = File::create_new(&path).map_err(Error::io("create", &path))?;
        file.lock().map_err(Error::io("lock", &path))?;
        Ok(ChildMark { mark, file: Some(MarkFile { path, _locked: file }) })
    }
}

impl ChildMark {
    /// Creates a mark that no file records: the processes of a killed server end only by themselves.
    ///
    /// # Errors
    ///
    /// Returns an error if the system has no random bytes.
    pub fn unrecorded() -> Result<Self> {
        let nonce = Nonce::random()
            .map_err(|source| Error::Io { doing: "read random bytes".to_owned(), source })?;
        Ok(Self { mark: nonce.into_text(), file: None })
    }

    /// Returns name and value of the environment variable for the child.
    pub fn variable(&self) -> (&'static str, &str) {
        (JOB_VARIABLE, &self.mark)
    }

    /// Records the child, which must lead its own process group.
    ///
    /// # Errors
    ///
    /// Returns an error if the child cannot be recorded. The caller must end it then.
    pub fn started(self, pid: u32) -> Result<ChildProcesses> {
        let Self { mark, file } = self;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Error::Io {
            doing: "record a child".to_owned(),
            source: io::Error::other("its process ID is invalid"),
        })?;
        let family = Family::of_marked_child(pid, &mark);
        let processes = ChildProcesses { family, file };
        if let Some(MarkFile { path, .. }) = &processes.file {
            let child = serde_json::to_vec(&identity(pid)).unwrap_or_default();
            fs::write(path, child).map_err(Error::io("write", path))?;
        }
        Ok(processes)
    }
}

impl ChildProcesses {
    /// Asks all processes to exit (SIGTERM).
    pub fn ask_to_end(&self) {
        self.family.ask_to_end();
    }

    /// Kills all processes.
    pub fn kill(&self) {
        self.family.end();
    }

    /// Asks the remaining processes to exit, kills them after `grace`, and waits for them. Returns
    /// whether none is left. The caller waits for the child itself.
    pub async fn end(mut self, grace: Duration) -> bool {
        // Checked first: the number of a group without processes may be reused.
        let is_gone = self.family.is_gone() || self.family.end_all(grace).await;
        if is_gone {
            self.forget();
        }
        is_gone
    }

    fn forget(&mut self) {
        if let Some(MarkFile { path, .. }) = self.file.take() {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for ChildProcesses {
    fn drop(&mut self) {
        // The file stays if a process survives, so that the next server ends it.
        if !self.family.is_gone() {
            self.family.end();
        } else {
            self.forget();
        }
    }
}

/// Locks the file of a mark if its server is gone.
fn lock_orphan(path: &Path) -> io::Result<Option<File>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
