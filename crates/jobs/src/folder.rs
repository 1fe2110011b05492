//! Folder of a job: its files, and the state that they represent.

use std::{
    fs::{self, DirBuilder, DirEntry, File},
    io::{self, ErrorKind, Write},
    os::unix::{
        fs::{DirBuilderExt, OpenOptionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Flock, FlockOffsetType, FlockType, fcntl_getlk};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    Exit, JobSpec, WaitsFor,
    files::{random_name, read_optional},
    short_path::ShortPath,
};

/// Folder of one job.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// State of a job.
#[derive(Debug)]
pub(super) enum Stage {
    /// Created but not started: its creator was killed. Any process that finds the job may start
    /// it.
    Waiting,
    /// A supervisor runs.
    Running,
    /// Started, but the supervisor is gone and has not recorded an exit.
    Lost,
    /// Ended.
    Over(Exit),
}

/// Record that the command may have been started.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StartMark {
    /// Time in Unix milliseconds.
    pub(super) at: u64,
    /// Value in the environment of the command's processes that is unique on this machine.
    pub(super) mark: String,
}

/// Process of a command.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Child {
    pub(super) pid: i32,
    /// Process IDs are reused. Together with the start time and the boot ID, the process ID is
    /// unique.
    pub(super) started: String,
    pub(super) boot: String,
}

pub(super) const SPEC: &str = "spec.json";
const LOCK: &str = "lock";
const START_MARK: &str = "begun";
const CHILD: &str = "child";
const CONTROL: &str = "ctl";
const ASKING: &str = "asking";
const NOTE: &str = "note";
const EXIT: &str = "exit.json";

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn id(&self) -> &str {
        self.path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Returns the folder of all jobs.
    pub(super) fn jobs(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    pub(super) fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// Returns the state of the job. The order of the reads matters, because the job may progress
    /// between them.
    pub(super) fn stage(&self) -> io::Result<Stage> {
        // A supervisor takes the lock before it writes this file. If the lock is free afterwards,
        // it is never taken again.
        let is_started = self.start_mark()?.is_some();
        if let Some(exit) = self.exit()? {
            return Ok(Stage::Over(exit));
        }
        if self.holder()?.is_some() {
            return Ok(Stage::Running);
        }
        // A supervisor writes the exit before it releases the lock, so this read is conclusive.
        Ok(match self.exit()? {
            Some(exit) => Stage::Over(exit),
            None if is_started => Stage::Lost,
            None => Stage::Waiting,
        })
    }

    /// Takes the liveness lock of a supervisor. The lock is held until the process ends.
    pub(super) fn hold(&self) -> io::Result<Option<File>> {
        let file = private().write(true).create(true).open(self.file(LOCK))?;
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        match rustix::fs::fcntl_lock(&file, exclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the holder of the liveness lock.
    ///
    /// A record lock can be tested without being taken, so a test never prevents a supervisor from
    /// starting. The supervisor must not call this: closing the file would release its lock.
    fn holder(&self) -> io::Result<Option<Flock>> {
        let file = match File::options().read(true).write(true).open(self.file(LOCK)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let whole = Flock {
            start: 0,
            length: 0,
            pid: None,
            typ: FlockType::WriteLock,
            offset_type: FlockOffsetType::Set,
        };
        Ok(fcntl_getlk(&file, &whole)?)
    }

    /// Returns the process ID of the supervisor, if it is visible.
    pub(super) fn supervisor(&self) -> Option<i32> {
        Some(self.holder().ok()??.pid?.as_raw_nonzero().get())
    }

    pub(super) fn spec(&self) -> io::Result<JobSpec> {
        self.read_spec()
    }

    /// Reads the specification as `T`.
    pub(super) fn read_spec<T: DeserializeOwned>(&self) -> io::Result<T> {
        self.read_json(SPEC)?.ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub(super) fn start_mark(&self) -> io::Result<Option<StartMark>> {
        self.read_json(START_MARK)
    }

    /// Records that the command may have been started. After this, no other process starts it, even
    /// after a crash of the machine.
    pub(super) fn set_start_mark(&self, mark: &StartMark) -> io::Result<()> {
        self.write_json(START_MARK, mark)
    }

    pub(super) fn child(&self) -> io::Result<Option<Child>> {
        self.read_json(CHILD)
    }

    pub(super) fn set_child(&self, child: &Child) -> io::Result<()> {
        // The file is not synced: the process does not survive a crash of the machine.
        self.replace(CHILD, &serde_json::to_vec(child)?)
    }

    pub(super) fn exit(&self) -> io::Result<Option<Exit>> {
        self.read_json(EXIT)
    }

    pub(super) fn set_exit(&self, exit: &Exit) -> io::Result<()> {
        self.write_json(EXIT, exit)
    }

    /// Returns the path of the supervisor's socket.
    pub(super) fn control(&self) -> io::Result<Option<PathBuf>> {
        Ok(self.read(CONTROL)?.map(|name| sockets(self.jobs()).join(name)))
    }

    pub(super) fn set_control(&self, name: &str) -> io::Result<()> {
        self.replace(CONTROL, name.as_bytes())
    }

    pub(super) fn waits_for(&self) -> io::Result<Option<WaitsFor>> {
        self.read_json(ASKING)
    }

    /// Records whether an input request waits for its response.
    pub(super) fn set_waits_for(&self, waits_for: Option<&WaitsFor>) -> io::Result<()> {
        match waits_for {
            Some(waits_for) => self.replace(ASKING, &serde_json::to_vec(waits_for)?),
            None => fs::remove_file(self.file(ASKING)),
        }
    }

    pub(super) fn note(&self) -> io::Result<Option<String>> {
        self.read(NOTE)
    }

    pub(super) fn set_note(&self, note: &str) -> io::Result<()> {
        self.write(NOTE, note.as_bytes())
    }

    /// Removes the folder. It is renamed first, because a partially removed job would look like one
    /// that has not started.
    pub(super) fn remove(&self) -> io::Result<()> {
        if let Some(socket) = self.control()? {
            let _ = fs::remove_file(socket);
        }
        let old = self.jobs().join(format!(".old-{}", random_name()));
        fs::rename(&self.path, &old)?;
        // A starting server may remove the renamed folder at the same time.
        fs::remove_dir_all(old).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
    }

    /// Removes the folder of a job that has not started. Returns whether it was removed. The lock
    /// prevents a supervisor from starting meanwhile.
    pub(super) fn remove_unless_begun(&self) -> io::Result<bool> {
        let Some(_lock) = self.hold()? else { return Ok(false) };
        if self.start_mark()?.is_some() {
            return Ok(false);
        }
        self.remove()?;
        Ok(true)
    }

    /// Opens a file for appending.
    pub(super) fn append_to(&self, name: &str) -> io::Result<File> {
        private().append(true).create(true).open(self.file(name))
    }

    fn read(&self, name: &str) -> io::Result<Option<String>> {
        read_optional(&self.file(name))
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        Ok(self.read(name)?.map(|text| serde_json::from_str(&text)).transpose()?)
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.write(name, &serde_json::to_vec(value)?)
    }

    /// Writes a file atomically and durably.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put(name, bytes, File::sync_all)?;
        sync_folder(&self.path)
    }

    /// Writes a file atomically, without syncing it.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put(name, bytes, |_| Ok(()))
    }

    fn put(
        &self,
        name: &str,
        bytes: &[u8],
        sync: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        // Two servers may write the same file, so each uses its own temporary file.
        let new = self.file(&format!("{name}.{}", random_name()));
        let written = write_new(&new, bytes)
            .and_then(|file| sync(&file))
            .and_then(|()| fs::rename(&new, self.file(name)));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }
}

/// Creates the folder of a job with its specification, atomically. Keeps an existing folder.
pub(super) fn make(jobs: &Path, id: &str, spec: &impl Serialize) -> io::Result<()> {
    let new = jobs.join(format!(".new-{}", random_name()));
    private_folder(&new)?;
    let made = write_new(&new.join(SPEC), &serde_json::to_vec(spec)?)
        .and_then(|file| file.sync_all())
        .and_then(|()| sync_folder(&new))
        // A rename replaces only an empty folder, and a job folder is never empty.
        .and_then(|()| fs::rename(&new, jobs.join(id)));
    if made.is_err() {
        let _ = fs::remove_dir_all(&new);
    }
    match made {
        Err(error)
            if !matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) =>
        {
            Err(error)
        }
        _ => sync_folder(jobs),
    }
}

/// Removes leftovers of processes that were killed.
pub(super) fn tidy(jobs: &Path) -> io::Result<()> {
    // Errors are ignored: another server may have removed the entry.
    for entry in fs::read_dir(jobs)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(".old-") || name.starts_with(".new-") && is_abandoned(&entry) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    for entry in fs::read_dir(sockets(jobs))?.flatten() {
        if is_abandoned(&entry) && !accepts(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Returns whether a process accepts connections at a socket. A socket whose path cannot be shortened
/// may have one.
fn accepts(socket: &Path) -> bool {
    ShortPath::new(socket).map_or(true, |short| UnixStream::connect(short.path()).is_ok())
}

/// Returns whether an entry is older than its creation can take.
fn is_abandoned(entry: &DirEntry) -> bool {
    const AFTER: Duration = Duration::from_secs(3600);
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > AFTER))
}

/// Returns the folder of the supervisors' sockets.
pub(super) fn sockets(jobs: &Path) -> PathBuf {
    jobs.join(".ctl")
}

/// Creates a folder for this user only, unless it exists.
pub(super) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn private() -> fs::OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut file = private().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
