//! Saved calls: a file for each in `handles/` of the data folder, so that `outlive tasks` goes on with
//! a call whose `outlive call` has left or was killed.
//!
//! A file has the call as the client saves it, and in `origin` where it was made. Where nothing can be
//! saved, the program makes the call anyway and warns the user once.

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

/// How much of a handle is shown; a part of it is enough to name it.
const SHORT: usize = 8;

/// What to do where calls cannot be saved.
const REMEDY: &str = "set OUTLIVE_DATA_DIR to a folder of yours";

/// The saved calls of this user.
#[derive(Clone)]
pub(crate) struct Handles {
    /// Where they are, or why there is no such place.
    folder: Arc<Result<PathBuf, String>>,
    /// Where calls that are new here come from.
    origin: Arc<Origin>,
    /// The call that this process has to do with, as it was last saved. Locked while it is being saved, so that
    /// no reader finds a file that is newer than this.
    mine: Arc<Mutex<Option<SavedCall>>>,
    is_unsaved: Arc<AtomicBool>,
    screen: Arc<Screen>,
}

/// A saved call, and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct SavedHandle {
    pub(crate) call: SavedCall,
    pub(crate) origin: Origin,
}

impl Handles {
    /// Opens them, in the user's data folder. Nothing is made there before a call is saved.
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

    /// Saves new calls as made here, at this server.
    pub(crate) fn made_at(mut self, server: &Server, connection: &Connection) -> Self {
        self.origin = Arc::new(Origin::new(server, connection));
        self
    }

    /// The call that this process has to do with, if it is still to be gone on with. Waits for a save that has
    /// begun.
    pub(crate) fn mine(&self) -> Option<SavedCall> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<SavedCall>> {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether what this process has saved can be found again.
    pub(crate) fn is_saved(&self) -> bool {
        !self.is_unsaved.load(Ordering::Relaxed)
    }

    /// Returns all saved calls, the oldest first. Warns about a file that cannot be read, and skips it.
    pub(crate) fn all(&self) -> Result<Vec<SavedHandle>> {
        let folder = match &*self.folder {
            Ok(folder) => folder,
            Err(why) => return Err(CliError::usage(why).remedy(REMEDY)),
        };
        let unreadable = |error: &io::Error| {
            CliError::usage(format!("saved calls in {} cannot be read: {error}", folder.display()))
                .remedy(REMEDY)
        };
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| unreadable(&error))?,
        };
        let mut handles = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| unreadable(&error))?.path();
            // A file without its final name is an unfinished write.
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read(&path) {
                Ok(Some(handle)) => handles.push(handle),
                Ok(None) => {}
                Err(error) => {
                    let what = format!("{} cannot be read: {error}", path.display());
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

    /// Finds a call by the beginning of its handle or of its task ID. Without a name, returns the only
    /// saved call.
    pub(crate) fn find(&self, named: Option<&str>) -> Result<SavedHandle> {
        let mut handles = self.all()?;
        if let Some(named) = named {
            handles.retain(|SavedHandle { call, .. }| {
                call.id.starts_with(named) || task_id(call).is_some_and(|id| id.starts_with(named))
            });
        }
        let list = "`outlive tasks list` shows all";
        match (handles.len(), named) {
            (1, _) => Ok(handles.remove(0)),
            (0, None) => {
                Err(CliError::usage("no call is saved")
                    .remedy("`outlive call --detach …` saves one"))
            }
            (0, Some(named)) => {
                Err(CliError::usage(format!("no call has the handle `{named}`")).remedy(list))
            }
            (count, None) => Err(CliError::usage(format!("{count} calls are saved"))
                .remedy(format!("name one; {list}"))),
            (count, Some(named)) => {
                Err(CliError::usage(format!("{count} handles begin with `{named}`"))
                    .remedy(format!("write more of it; {list}")))
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
        // Member by member: what the arguments are stays as it was written.
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
                format!("this call cannot be saved{place}: {error}; it goes on without a handle");
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

/// A handle as it is shown.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// The command that goes on with a call, or with a task of a server that is not saved here.
pub(crate) fn go_on(how: &str, id: &str, elsewhere: Option<&str>) -> String {
    match elsewhere {
        Some(server) => {
            shown(&format!("outlive tasks {how} {} --server {}", quoted(id), quoted(server)))
        }
        None => format!("outlive tasks {how} {}", short(id)),
    }
}

/// Returns the path of a saved call. An ID from a file that another program wrote must not lead out of
/// the folder.
fn path_of(folder: &Path, id: &str) -> io::Result<PathBuf> {
    let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match is_plain {
        true => Ok(folder.join(format!("{id}.json"))),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "no id of a call")),
    }
}

/// Reads a saved call; `None` if it is gone.
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
    fn saved_call_keeps_the_origin_that_it_was_made_with() {
        let folder = env::temp_dir().join(format!("outlive-handles-{}", process::id()));
        let open = || Handles::open_in(Ok(folder.clone()), &Screen::new());
        let server = Server::read("my-server --stdio").unwrap();
        open().made_at(&server, &Connection::default()).save(&call("abc")).unwrap();
        // Another process goes on with it.
        open().save(&call("abc")).unwrap();
        let found = open().find(Some("ab")).unwrap();
        assert_eq!(found.origin.folder(), env::current_dir().ok().as_deref());
        assert!(found.origin.created.is_some() && found.call.arguments.get() == "{\"a\":1}");
        // One that cannot be read hides no other.
        fs::write(folder.join("broken.json"), "{").unwrap();
        assert_eq!(open().all().unwrap().len(), 1);
        open().forget("abc");
        assert!(open().all().unwrap().is_empty());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn saved_file_never_says_more_than_what_this_process_knows() {
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
            assert!(mine >= seen, "the file has save {seen}, this process knows of {mine}");
        }
        saving.join().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn call_that_cannot_be_saved_is_made_all_the_same() {
        let handles = Handles::open_in(Err("HOME is not set".to_owned()), &Screen::new());
        handles.save(&call("abc")).unwrap();
        assert!(!handles.is_saved());
        assert_eq!(handles.mine().unwrap().id, "abc");
        assert!(handles.all().is_err());
    }
}
