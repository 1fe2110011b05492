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
    time::{Duration, Instant},
};

use crate::store::WorkerId;

/// How often the dead are looked for, at most. Whoever asks for work asks more often.
const EVERY: Duration = Duration::from_millis(250);

/// How often a file is made. Whoever looks for the dead may have seen it before it is locked.
const TRIES: u32 = 5;

/// The workers of one file.
#[derive(Debug)]
pub(super) struct Workers {
    folder: PathBuf,
    // A std mutex: nothing awaits while it is held, and hardly anybody asks for it.
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
                tracing::debug!(error = %why, "no lock for a worker: its leases have to do");
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

    /// Makes a worker's file, and locks it.
    fn lock(&self, name: &str) -> io::Result<fs::File> {
        let path = self.folder.join(name);
        if path.exists() {
            return Err(io::Error::other("somebody of the same name has one"));
        }
        let mut tried = 0;
        loop {
            let unnamed = self.folder.join(format!("{name}.{tried}"));
            tried += 1;
            match self.lock_unnamed(&unnamed, &path) {
                // Somebody who looks for the dead has it, or the folder was tidied up.
                Err(_) if tried < TRIES => {}
                locked => return locked,
            }
        }
    }

    /// Makes a file that has its name once it is locked: not locked it would say that its worker is
    /// dead. Until then it is nobody's, and whoever looks for the dead removes it.
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
    /// Whether this is the worker that is dead.
    pub(super) fn is(&self, worker: &str) -> bool {
        self.name == name(worker)
    }

    /// It has nothing any more.
    pub(super) fn forget(&self) {
        if let Err(why) = fs::remove_file(&self.path) {
            tracing::debug!(error = %why, "the file of a dead worker could not be removed");
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

/// The name of a worker's file: FNV-1a, because it must be the same in every version of this
/// program, and the worker's own name may be no name of a file.
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
    fn who_holds_its_file_is_not_dead_and_who_has_none_neither() {
        let database = database("alive");
        let (mine, theirs) = (Workers::new(&database), Workers::new(&database));
        theirs.show(&WorkerId::new("v"));
        assert!(theirs.folder.join(name("v")).exists());
        assert!(mine.dead().is_empty());
        drop(theirs);
        assert!(!mine.folder.exists(), "nothing is left of who ended in peace");
        assert!(Workers::new(&database).dead().is_empty());
    }

    #[test]
    fn a_file_that_nobody_holds_is_of_a_dead_worker() {
        let mine = Workers::new(&database("dead"));
        mine.show(&WorkerId::new("w"));
        fs::write(mine.folder.join(name("v")), "").unwrap();
        let dead = mine.dead();
        assert_eq!(dead.len(), 1);
        assert!(dead[0].is("v") && !dead[0].is("w"));
        assert!(mine.dead().is_empty(), "it has just been looked for");
        dead[0].forget();
        assert!(!mine.folder.join(name("v")).exists());
    }

    #[test]
    fn one_of_two_of_the_same_name_holds_the_file() {
        let database = database("twins");
        let (one, other) = (Workers::new(&database), Workers::new(&database));
        one.show(&WorkerId::new("v"));
        other.show(&WorkerId::new("v"));
        drop(other);
        assert!(one.folder.join(name("v")).exists(), "and only that one removes it");
    }

    #[test]
    fn nobody_is_dead_while_its_file_is_made() {
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
        assert!(mine.own().files.values().all(Option::is_some), "and all have one");
        let left = fs::read_dir(&mine.folder).unwrap().count();
        assert_eq!(left, workers.len(), "and nothing else is left");
    }

    #[test]
    fn the_name_of_a_file_never_changes() {
        assert_eq!(name(""), "cbf29ce484222325");
        assert_eq!(name("a"), "af63dc4c8601ec8c");
    }
}
