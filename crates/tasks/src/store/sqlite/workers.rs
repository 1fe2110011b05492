//! Which workers of other processes are dead.
//!
//! A worker has a file of its own beside the database, and holds a lock on it. The system takes
//! the lock away when the process ends, however it ends. So a file that is there and not locked
//! says that its worker is dead, and its tasks need not wait until their leases are over. A
//! process that is frozen keeps its lock: leases are for that, and for workers without a file.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use crate::store::WorkerId;

/// How often the dead are looked for, at most. Whoever asks for work asks more often.
const EVERY: Duration = Duration::from_millis(250);

/// How often a lock is asked for. Whoever looks for the dead holds it for a moment.
const TRIES: u32 = 10;

/// The workers of one file.
#[derive(Debug)]
pub(super) struct Workers {
    folder: PathBuf,
    // A std mutex: the one thread that writes uses it.
    own: Mutex<Own>,
}

#[derive(Debug, Default)]
struct Own {
    /// The files of our workers, by name; `None` if it could not be locked.
    files: HashMap<String, Option<fs::File>>,
    /// When the dead were looked for.
    looked: Option<Instant>,
}

/// A worker that is dead. Locked, so that nobody else looks after it meanwhile.
#[derive(Debug)]
pub(super) struct Dead {
    path: PathBuf,
    name: String,
    _lock: fs::File,
}

impl Workers {
    /// Those of this database.
    pub(super) fn new(database: &Path) -> Self {
        let mut folder = OsString::from(database);
        folder.push("-workers");
        Self { folder: folder.into(), own: Mutex::default() }
    }

    /// Shows for as long as this lives that a worker does. Must be called before it has a task.
    pub(super) fn show(&self, worker: &WorkerId) {
        let name = name(worker.as_str());
        let mut own = self.own();
        if own.files.contains_key(&name) {
            return;
        }
        let file = match self.lock(&name) {
            Ok(file) => Some(file),
            Err(why) => {
                tracing::debug!(%why, "no lock for a worker: its leases have to do");
                None
            }
        };
        own.files.insert(name, file);
    }

    /// The workers that are dead, unless they were looked for just now.
    pub(super) fn dead(&self) -> Vec<Dead> {
        let mut own = self.own();
        if own.looked.is_some_and(|looked| looked.elapsed() < EVERY) {
            return Vec::new();
        }
        own.looked = Some(Instant::now());
        let Ok(files) = fs::read_dir(&self.folder) else { return Vec::new() };
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let others = names.filter(|name| !own.files.contains_key(name));
        others.filter_map(|name| self.is_dead(name)).collect()
    }

    fn is_dead(&self, name: String) -> Option<Dead> {
        let path = self.folder.join(&name);
        let lock = fs::OpenOptions::new().write(true).open(&path).ok()?;
        lock.try_lock().ok()?;
        Some(Dead { path, name, _lock: lock })
    }

    fn lock(&self, name: &str) -> io::Result<fs::File> {
        let path = self.folder.join(name);
        let mut tried = 0;
        loop {
            tried += 1;
            fs::create_dir_all(&self.folder)?;
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(false);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let locked = options.open(&path).and_then(|file| {
                file.try_lock().map_err(io::Error::from)?;
                Ok(file)
            });
            match locked {
                // Whoever looked for the dead before it was locked has removed it.
                Ok(file) if path.exists() => return Ok(file),
                Ok(_) if tried < TRIES => {}
                Err(why) if tried < TRIES && is_passing(&why) => {
                    thread::sleep(Duration::from_millis(1));
                }
                Ok(_) => return Err(io::Error::other("it is removed again and again")),
                Err(why) => {
                    // A file that nobody can lock would say that we are dead.
                    if why.kind() != io::ErrorKind::WouldBlock {
                        let _ = fs::remove_file(&path);
                    }
                    return Err(why);
                }
            }
        }
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dead {
    /// Whether this is the worker that is dead.
    pub(super) fn is(&self, worker: &str) -> bool {
        self.name == name(worker)
    }

    /// Nothing is left of it.
    pub(super) fn forget(self) {
        if let Err(why) = fs::remove_file(&self.path) {
            tracing::debug!(%why, "the file of a dead worker could not be removed");
        }
    }
}

impl Drop for Workers {
    /// Without its file a worker counts as alive until its leases are over.
    fn drop(&mut self) {
        let own = self.own.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (name, file) in own.files.drain() {
            // Removed before it is unlocked: in between it would be dead.
            if file.is_some() {
                let _ = fs::remove_file(self.folder.join(name));
            }
        }
        // Unless others have files there.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Whether it may be different in a moment: somebody looks for the dead, or tidies up.
fn is_passing(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotFound)
}

/// The name of a worker's file: FNV-1a, because it must be the same in every version of this
/// program, and the worker's own name may be no name of a file.
fn name(worker: &str) -> String {
    let hash = worker.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}
