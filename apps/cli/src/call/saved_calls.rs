//! Saved calls: one file per call in `handles/` of the data folder.
//!
//! `outlive tasks` resumes a call from its file after `outlive call` ended or was killed. A file
//! has the call as the client saves it, and its origin in `origin`. If a call cannot be saved, the
//! program warns once and makes the call anyway.

use std::{
    collections::BTreeMap,
    fs,
    io::{self},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use outlive::client::saved::{CallStore, SavedCall};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::private_file::write_private;
use super::saved_task::task_id;
use super::{
    origin::Origin,
    screen::{Screen, shown},
    server::{Connection, Server, quoted},
};
use crate::{
    error::{CliError, Result},
    paths,
};

/// Displayed length of a handle. A unique prefix is enough to name a call.
const SHORT: usize = 8;

/// Remedy if calls cannot be saved.
const REMEDY: &str = "set OUTLIVE_DATA_DIR to a folder that you can write to";

/// The saved calls of the user.
#[derive(Clone)]
pub(crate) struct Handles {
    /// Folder of the files, or the reason why it is unknown.
    folder: Arc<Result<PathBuf, String>>,
    /// Origin of new calls.
    origin: Arc<Origin>,
    /// Call of this process, as last saved.
    ///
    /// The lock is held during a save, so that no reader finds a file that is newer than this
    /// value.
    mine: Arc<Mutex<Option<SavedCall>>>,
    is_unsaved: Arc<AtomicBool>,
    screen: Arc<Screen>,
}

/// A saved call and its origin.
#[derive(Clone, Debug)]
pub(crate) struct SavedHandle {
    pub(crate) call: SavedCall,
    pub(crate) origin: Origin,
}

impl Handles {
    /// Opens the saved calls in the user's data folder. The folder is created when the first call
    /// is saved.
    pub(crate) fn open(screen: &Arc<Screen>) -> Self {
        let folder = paths::data().map(|data| data.join("handles"));
        Self::open_in(folder.map_err(|trouble| trouble.to_string()), screen)
    }

    fn open_in(folder: Result<PathBuf, String>, screen: &Arc<Screen>) -> Self {
        Self {
            folder: Arc::new(folder),
            origin: Arc::default(),
            mine: Arc::default(),
            is_unsaved: Arc::default(),
            screen: Arc::clone(screen),
        }
    }

    /// Sets the origin of new calls: this server and connection.
    pub(crate) fn made_at(mut self, server: &Server, connection: &Connection) -> Self {
        self.origin = Arc::new(Origin::new(server, connection));
        self
    }

    /// Returns the call of this process, if it has not ended. Waits for a save in progress.
    pub(crate) fn mine(&self) -> Option<SavedCall> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<SavedCall>> {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether all saves of this process succeeded.
    pub(crate) fn is_saved(&self) -> bool {
        !self.is_unsaved.load(Ordering::Relaxed)
    }

    /// Returns all saved calls, oldest first. Warns about unreadable files and skips them.
    pub(crate) fn all(&self) -> Result<Vec<SavedHandle>> {
        let folder = match &*self.folder {
            Ok(folder) => folder,
            Err(why) => return Err(CliError::usage(why).remedy(REMEDY)),
        };
        let unreadable = |error: &io::Error| {
            CliError::usage(format!("cannot read the saved calls in {}: {error}", folder.display()))
                .remedy(REMEDY)
        };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| unreadable(&error))?,
        };
        let mut handles = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| unreadable(&error))?.path();
            // A file without the final extension is an unfinished write.
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read(&path) {
                Ok(Some(handle)) => handles.push(handle),
                Ok(None) => {}
                Err(error) => {
                    let what = format!("cannot read {}: {error}", path.display());
                    self.screen.talk(&shown(&what));
                }
            }
        }
        handles.sort_by(|one, other| {
            let key = |handle: &SavedHandle| (handle.origin.created, handle.call.id.clone());
            key(one).cmp(&key(other))
        });
        Ok(handles)
    }

    /// Finds a call by a prefix of its handle or task ID. Without a name, returns the only saved
    /// call.
    pub(crate) fn find(&self, named: Option<&str>) -> Result<SavedHandle> {
        let mut handles = self.all()?;
        if let Some(named) = named {
            handles.retain(|SavedHandle { call, .. }| {
                call.id.starts_with(named) || task_id(call).is_some_and(|id| id.starts_with(named))
            });
        }
        let list = "`outlive tasks list` lists the saved calls";
        match (handles.len(), named) {
            (1, _) => Ok(handles.remove(0)),
            (0, None) => Err(CliError::usage("no saved calls")
                .remedy("run `outlive call --detach …` to save one")),
            (0, Some(named)) => {
                Err(CliError::usage(format!("no call has the handle `{named}`")).remedy(list))
            }
            (count, None) => Err(CliError::usage(format!("there are {count} saved calls"))
                .remedy(format!("name one of them; {list}"))),
            (count, Some(named)) => {
                Err(CliError::usage(format!("{count} handles start with `{named}`"))
                    .remedy(format!("use a longer prefix; {list}")))
            }
        }
    }

    /// Deletes a saved call that has ended.
    pub(crate) fn forget(&self, id: &str) {
        let _ = self.delete(id);
    }

    fn write_file(&self, call: &SavedCall) -> io::Result<()> {
        let folder = self.folder.as_ref().as_ref().map_err(|why| io::Error::other(why.clone()))?;
        let path = path_of(folder, &call.id)?;
        let origin = match read(&path) {
            Ok(Some(before)) => before.origin,
            _ => self.origin.created_now(),
        };
        let text = serde_json::to_string(call)?;
        let origin = to_raw_value(&origin)?;
        // `RawValue` keeps the arguments exactly as they were written.
        let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(&text)?;
        members.insert("origin", &origin);
        paths::make_private(folder)?;
        write_private(&path, &serde_json::to_vec(&members)?)
    }

    /// Warns once that a call is not saved. The call is made anyway.
    fn tell_unsaved(&self, error: &io::Error) {
        if !self.is_unsaved.swap(true, Ordering::Relaxed) {
            let place = match &*self.folder {
                Ok(folder) => format!(" in {}", folder.display()),
                Err(_) => String::new(),
            };
            let what =
                format!("cannot save this call{place}: {error}; continuing without a handle");
            self.screen.talk(&format!("warning: {}\n  try: {REMEDY}", shown(&what)));
        }
    }
}

impl CallStore for Handles {
    fn save(&self, call: &SavedCall) -> io::Result<()> {
        let mut mine = self.lock();
        if let Err(error) = self.write_file(call) {
            self.tell_unsaved(&error);
        }
        *mine = Some(call.clone());
        Ok(())
    }

    fn delete(&self, id: &str) -> io::Result<()> {
        let mut mine = self.lock();
        mine.take_if(|call| call.id == id);
        let Ok(folder) = &*self.folder else { return Ok(()) };
        match fs::remove_file(path_of(folder, id)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn load(&self) -> io::Result<Vec<SavedCall>> {
        let handles = self.all().map_err(|trouble| io::Error::other(trouble.to_string()))?;
        Ok(handles.into_iter().map(|handle| handle.call).collect())
    }
}

/// Shortens a handle for display.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// Returns the command that continues with a call, or with a task that has no saved call here.
pub(crate) fn go_on(how: &str, id: &str, elsewhere: Option<&str>) -> String {
    match elsewhere {
        Some(server) => {
            shown(&format!("outlive tasks {how} {} --server {}", quoted(id), quoted(server)))
        }
        None => format!("outlive tasks {how} {}", short(id)),
    }
}

/// Returns the path of a saved call. Rejects an ID that would lead out of the folder.
fn path_of(folder: &Path, id: &str) -> io::Result<PathBuf> {
    let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match is_plain {
        true => Ok(folder.join(format!("{id}.json"))),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "invalid ID of a saved call")),
    }
}

/// Reads a saved call. Returns `None` if the file does not exist.
fn read(path: &Path) -> io::Result<Option<SavedHandle>> {
    #[derive(Deserialize)]
    struct Beside {
        #[serde(default)]
        origin: Origin,
    }
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let call = serde_json::from_slice(&bytes)?;
    let Beside { origin } = serde_json::from_slice(&bytes)?;
    Ok(Some(SavedHandle { call, origin }))
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    use outlive::client::saved::{CallStore, SavedCall};
    use serde_json::{Value, json};

    use super::{Handles, Screen, Server};
    use crate::call::server::Connection;

    fn call(id: &str) -> SavedCall {
        serde_json::from_value::<Value>(json!({
            "id": id, "server": "my-server --stdio", "account": null, "tool": "add",
            "arguments": {"a": 1}, "key": null, "idempotent": false, "stage": {"Calling": null}
        }))
        .and_then(|call| serde_json::from_str(&call.to_string()))
        .unwrap()
    }

    #[test]
    fn saved_call_resaved_by_other_process_keeps_origin() {
        let folder = env::temp_dir().join(format!("outlive-handles-{}", process::id()));
        let open = || Handles::open_in(Ok(folder.clone()), &Screen::new());
        let server = Server::read("my-server --stdio").unwrap();
        open().made_at(&server, &Connection::default()).save(&call("abc")).unwrap();
        // Another process resumes the call.
        open().save(&call("abc")).unwrap();
        let found = open().find(Some("ab")).unwrap();
        assert_eq!(found.origin.folder(), env::current_dir().ok().as_deref());
        assert!(found.origin.created.is_some() && found.call.arguments.get() == "{\"a\":1}");
        // An unreadable file must not hide the others.
        fs::write(folder.join("broken.json"), "{").unwrap();
        assert_eq!(open().all().unwrap().len(), 1);
        open().forget("abc");
        assert!(open().all().unwrap().is_empty());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn saved_file_is_never_newer_than_call_in_memory() {
        const SAVES: u64 = 300;
        let folder = env::temp_dir().join(format!("outlive-handles-race-{}", process::id()));
        let handles = Handles::open_in(Ok(folder.clone()), &Screen::new());
        let number = |call: &SavedCall| -> u64 { call.tool.parse().unwrap() };
        let saving = std::thread::spawn({
            let handles = handles.clone();
            move || {
                for number in 1..=SAVES {
                    let mut call = call("abc");
                    call.tool = number.to_string();
                    handles.save(&call).unwrap();
                }
            }
        });
        let mut seen = 0;
        while seen < SAVES {
            let Some(saved) = handles.all().unwrap().pop() else { continue };
            seen = number(&saved.call);
            let mine = handles.mine().map_or(0, |call| number(&call));
            assert!(mine >= seen, "the file has save {seen}, but memory has save {mine}");
        }
        saving.join().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn call_with_failing_save_continues() {
        let handles = Handles::open_in(Err("HOME is not set".to_owned()), &Screen::new());
        handles.save(&call("abc")).unwrap();
        assert!(!handles.is_saved());
        assert_eq!(handles.mine().unwrap().id, "abc");
        assert!(handles.all().is_err());
    }
}
