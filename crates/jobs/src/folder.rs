//! The folder of a job: what stands in it, and what can be told from it without asking anybody.

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
};

/// The folder of one job.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

/// How far a job is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nobody has started it: who claimed it was killed before that. Whoever finds it may.
    Waiting,
    /// A supervisor has it.
    Running,
    /// It was started, and its supervisor is gone without having written how it ended.
    Lost,
    /// It ended.
    Over(Exit),
}

/// That the command may have been started.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Begun {
    /// When, in milliseconds since 1970.
    pub(super) at: u64,
    /// What the command's processes have in their environment, and no other process of this machine.
    pub(super) mark: String,
}

/// Which process a command is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Child {
    pub(super) pid: i32,
    /// Numbers of processes are used again. Together with these two it is one process.
    pub(super) started: String,
    pub(super) boot: String,
}

pub(super) const SPEC: &str = "spec.json";
const LOCK: &str = "lock";
const BEGUN: &str = "begun";
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

    /// The folder of all jobs.
    pub(super) fn jobs(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    pub(super) fn exists(&self) -> bool {
        self.path.is_dir()
    }

    /// How far the job is. The order of the looks matters, for it may go on between any two of them.
    pub(super) fn stage(&self) -> io::Result<Stage> {
        // Who has begun had taken the lock before. If it is free after that, it will never be taken again.
        let begun = self.begun()?.is_some();
        if let Some(exit) = self.exit()? {
            return Ok(Stage::Over(exit));
        }
        if self.holder()?.is_some() {
            return Ok(Stage::Running);
        }
        // A supervisor writes the exit before it leaves, so this look is the last word.
        Ok(match self.exit()? {
            Some(exit) => Stage::Over(exit),
            None if begun => Stage::Lost,
            None => Stage::Waiting,
        })
    }

    /// Takes the lock that says that a supervisor lives. It is held until the process ends, however it does.
    pub(super) fn hold(&self) -> io::Result<Option<File>> {
        let file = private().write(true).create(true).open(self.file(LOCK))?;
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        match rustix::fs::fcntl_lock(&file, exclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The supervisor, if one lives. A record lock, because those can be seen without being taken: who only looks must
    /// not keep a supervisor from starting. The supervisor itself must not look: to close the file gives its lock back.
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

    /// The process of the supervisor, as far as this one can see it.
    pub(super) fn supervisor(&self) -> Option<i32> {
        Some(self.holder().ok()??.pid?.as_raw_nonzero().get())
    }

    pub(super) fn spec(&self) -> io::Result<JobSpec> {
        self.read_json(SPEC)?.ok_or_else(|| ErrorKind::NotFound.into())
    }

    pub(super) fn begun(&self) -> io::Result<Option<Begun>> {
        self.read_json(BEGUN)
    }

    /// From here on nobody else starts the command, whatever happens to the machine.
    pub(super) fn begin(&self, begun: &Begun) -> io::Result<()> {
        self.write_json(BEGUN, begun)
    }

    pub(super) fn child(&self) -> io::Result<Option<Child>> {
        self.read_json(CHILD)
    }

    pub(super) fn set_child(&self, child: &Child) -> io::Result<()> {
        // After a crash of the machine nobody asks.
        self.replace(CHILD, &serde_json::to_vec(child)?)
    }

    pub(super) fn exit(&self) -> io::Result<Option<Exit>> {
        self.read_json(EXIT)
    }

    pub(super) fn set_exit(&self, exit: &Exit) -> io::Result<()> {
        self.write_json(EXIT, exit)
    }

    /// The path of the supervisor's socket.
    pub(super) fn control(&self) -> io::Result<Option<PathBuf>> {
        Ok(self.read(CONTROL)?.map(|name| sockets(self.jobs()).join(name)))
    }

    pub(super) fn set_control(&self, name: &str) -> io::Result<()> {
        self.replace(CONTROL, name.as_bytes())
    }

    pub(super) fn waits_for(&self) -> io::Result<Option<WaitsFor>> {
        self.read_json(ASKING)
    }

    /// Says that an input request waits for its response, or that none does.
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

    /// Removes the folder. It is first moved away: half a job would be one that nobody has begun.
    pub(super) fn remove(&self) -> io::Result<()> {
        if let Some(socket) = self.control()? {
            let _ = fs::remove_file(socket);
        }
        let old = self.jobs().join(format!(".old-{}", random_name()));
        fs::rename(&self.path, &old)?;
        // A server that begins removes it too.
        fs::remove_dir_all(old).or_else(|error| match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })
    }

    /// Removes the folder of a job that nobody has begun, and returns whether it was so. As long as it has the lock, no
    /// supervisor begins; afterwards there is nothing to begin.
    pub(super) fn remove_unless_begun(&self) -> io::Result<bool> {
        let Some(_lock) = self.hold()? else { return Ok(false) };
        if self.begun()?.is_some() {
            return Ok(false);
        }
        self.remove()?;
        Ok(true)
    }

    /// A file that grows at its end.
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

    /// All of it or nothing, and for good.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put(name, bytes, File::sync_all)?;
        sync_folder(&self.path)
    }

    /// All of it or nothing, as long as the machine runs.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.put(name, bytes, |_| Ok(()))
    }

    fn put(
        &self,
        name: &str,
        bytes: &[u8],
        sync: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        // Two servers may write the same file, so each has a new file of its own.
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

/// Makes the folder of a job, with what it is to run. It is there whole or not at all. Where another has made it,
/// that one stays.
pub(super) fn make(jobs: &Path, id: &str, spec: &JobSpec) -> io::Result<()> {
    let new = jobs.join(format!(".new-{}", random_name()));
    private_folder(&new)?;
    let made = write_new(&new.join(SPEC), &serde_json::to_vec(spec)?)
        .and_then(|file| file.sync_all())
        .and_then(|()| sync_folder(&new))
        // A folder takes no other's place unless that is empty, which a job never is.
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

/// Removes what those left behind who were killed in the middle of something.
pub(super) fn tidy(jobs: &Path) -> io::Result<()> {
    // Another server may do the same, so what cannot be removed is gone.
    for entry in fs::read_dir(jobs)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(".old-") || name.starts_with(".new-") && is_abandoned(&entry) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    for entry in fs::read_dir(sockets(jobs))?.flatten() {
        if is_abandoned(&entry) && UnixStream::connect(entry.path()).is_err() {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// Whether it is older than it takes to make a folder or a socket, on any disk.
fn is_abandoned(entry: &DirEntry) -> bool {
    const AFTER: Duration = Duration::from_secs(3600);
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| modified.elapsed().is_ok_and(|age| age > AFTER))
}

/// The folder of the supervisors' sockets.
pub(super) fn sockets(jobs: &Path) -> PathBuf {
    jobs.join(".ctl")
}

/// Makes a folder for this user alone, unless it is there.
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
