//! Calls that are written down: a file for each in `handles/` of the data folder, so that a killed
//! `outlive call` is gone on with by `outlive tasks`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use outlive::client::{FileNotebook, Notebook, SavedCall, Stage};

use super::server::quoted;
use crate::{
    paths,
    trouble::{Result, Trouble},
};

/// How much of a handle is shown; a part of it is enough to name it.
const SHORT: usize = 8;

/// The notebook of this program.
#[derive(Clone)]
pub(crate) struct Handles {
    folder: PathBuf,
    book: Arc<FileNotebook>,
    /// The call that this process has made, as it was last written down.
    mine: Arc<Mutex<Option<SavedCall>>>,
}

impl Handles {
    /// Opens it, in the user's data folder.
    pub(crate) fn open() -> Result<Self> {
        Self::open_in(paths::data()?.join("handles"))
    }

    fn open_in(folder: PathBuf) -> Result<Self> {
        let book = FileNotebook::open(&folder).map_err(|error| trouble(&folder, &error))?;
        Ok(Self { folder, book: Arc::new(book), mine: Arc::default() })
    }

    /// The call that this process has made, if it is still written down.
    pub(crate) fn mine(&self) -> Option<SavedCall> {
        self.mine.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All calls, the oldest first.
    pub(crate) fn all(&self) -> Result<Vec<SavedCall>> {
        let calls = self.book.read().map_err(|error| trouble(&self.folder, &error))?;
        let mut calls: Vec<(SystemTime, SavedCall)> =
            calls.into_iter().map(|call| (self.changed(&call), call)).collect();
        calls.sort_by_key(|(changed, _)| *changed);
        Ok(calls.into_iter().map(|(_, call)| call).collect())
    }

    /// When a call was last written down.
    fn changed(&self, call: &SavedCall) -> SystemTime {
        let file = fs::metadata(self.folder.join(format!("{}.json", call.id)));
        file.and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// The call that somebody means: by the beginning of its handle or of its task's name, or the only
    /// one there is.
    pub(crate) fn find(&self, named: Option<&str>) -> Result<SavedCall> {
        let mut calls = self.all()?;
        if let Some(named) = named {
            calls.retain(|call| {
                call.id.starts_with(named) || task_id(call).is_some_and(|id| id.starts_with(named))
            });
        }
        let list = "`outlive tasks list` shows all";
        match (calls.len(), named) {
            (1, _) => Ok(calls.remove(0)),
            (0, None) => Err(Trouble::usage("no call is written down")
                .remedy("`outlive call --detach …` writes one down")),
            (0, Some(named)) => {
                Err(Trouble::usage(format!("no call has the handle `{named}`")).remedy(list))
            }
            (count, None) => Err(Trouble::usage(format!("{count} calls are written down"))
                .remedy(format!("name one; {list}"))),
            (count, Some(named)) => {
                Err(Trouble::usage(format!("{count} handles begin with `{named}`"))
                    .remedy(format!("write more of it; {list}")))
            }
        }
    }

    /// Strikes a call that nobody goes on with.
    pub(crate) fn forget(&self, id: &str) {
        let _ = self.erase(id);
    }
}

/// A handle as it is shown.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT).unwrap_or(id)
}

/// The command that goes on with a call, or with a task of a server that is not written down here.
pub(crate) fn go_on(how: &str, id: &str, elsewhere: Option<&str>) -> String {
    match elsewhere {
        Some(server) => format!("outlive tasks {how} {} --server {}", quoted(id), quoted(server)),
        None => format!("outlive tasks {how} {}", short(id)),
    }
}

/// The task that a call has become.
pub(crate) fn task_id(call: &SavedCall) -> Option<&str> {
    match &call.stage {
        Stage::Task(task) => Some(&task.id),
        _ => None,
    }
}

fn trouble(folder: &Path, error: &io::Error) -> Trouble {
    Trouble::usage(format!("calls cannot be written down in {}: {error}", folder.display()))
        .remedy("set OUTLIVE_DATA to a folder of yours")
}

impl Notebook for Handles {
    fn write(&self, call: &SavedCall) -> io::Result<()> {
        self.book.write(call)?;
        *self.mine.lock().unwrap_or_else(PoisonError::into_inner) = Some(call.clone());
        Ok(())
    }

    fn erase(&self, id: &str) -> io::Result<()> {
        self.book.erase(id)?;
        self.mine.lock().unwrap_or_else(PoisonError::into_inner).take_if(|call| call.id == id);
        Ok(())
    }

    fn read(&self) -> io::Result<Vec<SavedCall>> {
        self.book.read()
    }
}
