//! Liveness locks of workers.
//!
//! Each worker holds a lock on its own file beside the database. The operating system releases the
//! lock when the process ends. An unlocked file therefore belongs to a dead worker, whose tasks can
//! be reclaimed before their leases expire. A frozen process keeps its lock, so its tasks are
//! reclaimed only when their leases expire.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::store::WorkerId;

/// Minimum interval between two checks for dead workers. Claims are more frequent.
const EVERY: Duration = Duration::from_millis(250);

/// Attempts to create a file. A check for dead workers may lock the file first.
const TRIES: u32 = 5;

/// Liveness locks of the workers on one database.
#[derive(Debug)]
pub(super) struct Workers {
    folder: PathBuf,
    // A std mutex: no code awaits while it is held, and contention is rare.
    own: Mutex<Own>,
}

#[derive(Debug, Default)]
struct Own {
    /// Files of this process's workers, by file name; `None` if the lock failed.
    files: HashMap<String, Option<fs::File>>,
    /// When dead workers were last checked.
    looked: Option<Instant>,
}

/// A dead worker. The value holds a shared lock on the worker's file, so that several processes can
/// detect the death at the same time.
#[derive(Debug)]
pub(super) struct Dead {
    path: PathBuf,
    name: String,
    _lock: fs::File,
}

impl Workers {
    /// Creates the locks for a database.
    pub(super) fn new(database: &Path) -> Self {
        let mut folder = OsString::from(database);
        folder.push("-workers");
        Self { folder: folder.into(), own: Mutex::default() }
    }

    /// Locks the file of a worker for the lifetime of this value. Must be called before the worker
    /// has a task.
    pub(super) fn show(&self, worker: &WorkerId) {
        let name = name(worker.as_str());
        let mut own = self.own();
        if own.files.contains_key(&name) {
            return;
        }
        let file = match self.lock(&name) {
            Ok(file) => Some(file),
            Err(why) => {
                tracing::debug!(
                    error = %why,
                    "could not lock the file of a worker; a crash is detected when its leases expire"
                );
                None
            }
        };
        own.files.insert(name, file);
    }

    /// Returns the dead workers. Returns none if the last check was recent.
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

    /// Returns whether the process of a worker has ended. A worker without a file has ended
    /// gracefully.
    pub(super) fn is_gone(&self, worker: &str) -> bool {
        let name = name(worker);
        if self.own().files.contains_key(&name) {
            return false;
        }
        match fs::OpenOptions::new().write(true).open(self.folder.join(name)) {
            Ok(file) => file.try_lock_shared().is_ok(),
            Err(why) => why.kind() == io::ErrorKind::NotFound,
        }
    }

    fn is_dead(&self, name: String) -> Option<Dead> {
        let path = self.folder.join(&name);
        let lock = fs::OpenOptions::new().write(true).open(&path).ok()?;
        lock.try_lock_shared().ok()?;
        Some(Dead { path, name, _lock: lock })
    }

    /// Creates and locks a worker's file.
    fn lock(&self, name: &str) -> io::Result<fs::File> {
        let path = self.folder.join(name);
        if path.exists() {
            return Err(io::Error::other("a worker with the same ID has a file"));
        }
        let mut tried = 0;
        loop {
            let unnamed = self.folder.join(format!("{name}.{tried}"));
            tried += 1;
            match self.lock_unnamed(&unnamed, &path) {
                // A check for dead workers has locked the file, or removed the folder.
                Err(_) if tried < TRIES => {}
                locked => return locked,
            }
        }
    }

    /// Creates and locks a file under a temporary name, then renames it. An unlocked file under the
    /// final name would mark its worker as dead. A check for dead workers removes an unlocked
    /// temporary file.
    fn lock_unnamed(&self, unnamed: &Path, path: &Path) -> io::Result<fs::File> {
        fs::create_dir_all(&self.folder)?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(unnamed)?;
        let named = file.try_lock().map_err(io::Error::from);
        let named = named.and_then(|()| fs::rename(unnamed, path));
        if named.is_err() {
            let _ = fs::remove_file(unnamed);
        }
        named.map(|()| file)
    }

    fn own(&self) -> MutexGuard<'_, Own> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dead {
    /// Returns whether `worker` is this dead worker.
    pub(super) fn is(&self, worker: &str) -> bool {
        self.name == name(worker)
    }

    /// Removes the file of the worker, which has no more tasks.
    pub(super) fn forget(&self) {
        if let Err(why) = fs::remove_file(&self.path) {
            tracing::debug!(error = %why, "could not remove the file of a dead worker");
        }
    }
}

impl Drop for Workers {
    /// Removes the files. A worker without a file counts as alive until its leases expire.
    fn drop(&mut self) {
        let own = self.own.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (name, file) in own.files.drain() {
            // Removed before it is unlocked, because an unlocked file marks its worker as dead.
            if file.is_some() {
                let _ = fs::remove_file(self.folder.join(name));
            }
        }
        // Fails if other processes have files in the folder.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Returns the name of a worker's file: a hash (FNV-1a), which is the same in every version of this
/// program. A worker ID may not be a valid file name.
fn name(worker: &str) -> String {
    let hash = worker.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::PathBuf, process, thread};

    use super::{Workers, name};
    use crate::store::WorkerId;

    fn database(test: &str) -> PathBuf {
        env::temp_dir().join(format!("outlive-workers-{test}-{}", process::id()))
    }

    #[test]
    fn worker_with_locked_file_or_without_file_is_alive() {
        let database = database("alive");
        let (mine, theirs) = (Workers::new(&database), Workers::new(&database));
        theirs.show(&WorkerId::new("v"));
        assert!(theirs.folder.join(name("v")).exists());
        assert!(mine.dead().is_empty());
        drop(theirs);
        assert!(!mine.folder.exists(), "a graceful shutdown removes the folder");
        assert!(Workers::new(&database).dead().is_empty());
    }

    #[test]
    fn unlocked_file_marks_its_worker_as_dead() {
        let mine = Workers::new(&database("dead"));
        mine.show(&WorkerId::new("w"));
        fs::write(mine.folder.join(name("v")), "").unwrap();
        let dead = mine.dead();
        assert_eq!(dead.len(), 1);
        assert!(dead[0].is("v") && !dead[0].is("w"));
        assert!(mine.dead().is_empty(), "the last check was recent");
        dead[0].forget();
        assert!(!mine.folder.join(name("v")).exists());
    }

    #[test]
    fn worker_is_gone_after_end_of_its_process() {
        let database = database("gone");
        let (mine, theirs) = (Workers::new(&database), Workers::new(&database));
        mine.show(&WorkerId::new("w"));
        theirs.show(&WorkerId::new("v"));
        assert!(!mine.is_gone("w") && !mine.is_gone("v") && !theirs.is_gone("w"));
        drop(theirs);
        assert!(mine.is_gone("v"), "a graceful shutdown removes the file");
        fs::write(mine.folder.join(name("v")), "").unwrap();
        let dead = mine.dead();
        assert!(mine.is_gone("v"), "a check for dead workers does not hide the death");
        assert!(Workers::new(&database).is_gone("v"));
        drop(dead);
    }

    #[test]
    fn two_workers_with_same_id_share_one_file() {
        let database = database("twins");
        let (one, other) = (Workers::new(&database), Workers::new(&database));
        one.show(&WorkerId::new("v"));
        other.show(&WorkerId::new("v"));
        drop(other);
        assert!(
            one.folder.join(name("v")).exists(),
            "only the worker that created the file removes it"
        );
    }

    #[test]
    fn worker_during_creation_of_its_file_is_not_dead() {
        let mine = Workers::new(&database("making"));
        let workers: Vec<_> = (0..200).map(|number| WorkerId::new(number.to_string())).collect();
        thread::scope(|scope| {
            let making = scope.spawn(|| workers.iter().for_each(|worker| mine.show(worker)));
            while !making.is_finished() {
                let files = fs::read_dir(&mine.folder).into_iter().flatten();
                let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
                for dead in names.filter_map(|name| mine.is_dead(name)) {
                    assert!(!workers.iter().any(|worker| dead.is(worker.as_str())), "{dead:?}");
                    dead.forget();
                }
            }
        });
        assert!(mine.own().files.values().all(Option::is_some), "every worker has a locked file");
        let left = fs::read_dir(&mine.folder).unwrap().count();
        assert_eq!(left, workers.len(), "no temporary files are left");
    }

    #[test]
    fn file_name_of_worker_is_stable() {
        assert_eq!(name(""), "cbf29ce484222325");
        assert_eq!(name("a"), "af63dc4c8601ec8c");
    }
}
