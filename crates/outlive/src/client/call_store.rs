//! Calls that are written down before they are made, so that another process can go on with them.
//!
//! A call is noted before it is sent, an answer before it is given, and what came of it before it is
//! forgotten. So at any moment at which this program may stop, what is noted is at least what the
//! server has seen.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use outlive_wire::{CallToolResult, ErrorObject, RawJson};
use serde::{Deserialize, Serialize};

use super::error::{ClientError, Result};

/// Where calls are written down.
pub trait CallStore: Send + Sync + 'static {
    /// Writes a call down, in place of what was written under its id. It must be safe when this
    /// returns: flushed, not only handed over.
    ///
    /// # Errors
    ///
    /// When it is not.
    fn save(&self, call: &SavedCall) -> io::Result<()>;

    /// Forgets a call. One that is not there is no error.
    ///
    /// # Errors
    ///
    /// When it is still there.
    fn delete(&self, id: &str) -> io::Result<()>;

    /// Everything that is written down.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    fn load(&self) -> io::Result<Vec<SavedCall>>;
}

/// A call as plain data: what is needed to go on with it somewhere else.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedCall {
    /// Its name in the notebook.
    pub id: String,
    /// The server, as [`ClientBuilder::label`](super::ClientBuilder::label) has it.
    pub server: String,
    /// As whom it was called.
    pub account: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: RawJson,
    /// By what the server knows the call again; `None` if it does not know such keys.
    pub key: Option<String>,
    /// Whether doing it twice is the same as doing it once, as the server says.
    pub idempotent: bool,
    /// How far it is.
    pub stage: CallStage,
    /// Answers to the questions of its task, by key.
    #[serde(default)]
    pub answers: BTreeMap<String, SavedInputResponse>,
}

/// How far a call is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CallStage {
    /// It has been sent, or is about to be; with the round that it is in.
    Calling(Option<SavedRound>),
    /// It has become a task.
    Task(SavedTask),
    /// It is over.
    Done(Box<CallToolResult>),
    /// It is over, and failed.
    Failed(ErrorObject),
}

/// A round of questions: what is sent with the call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedRound {
    /// The answers, by key.
    pub answers: Vec<(String, RawJson)>,
    /// What the server gave with the questions.
    pub state: Option<String>,
}

/// A task as plain data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedTask {
    /// Its id at the server.
    pub id: String,
    /// The revision that it was made in.
    pub version: String,
    /// How long it exists from its creation, in milliseconds.
    pub ttl: Option<u64>,
    /// How long to wait between two looks, in milliseconds.
    pub poll: Option<u64>,
}

/// An answer to a question of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedInputResponse {
    /// The answer.
    pub answer: RawJson,
    /// Whether the server has confirmed it.
    pub acknowledged: bool,
}

impl SavedCall {
    /// A task of which nothing else is known: no tool has an empty name.
    pub(crate) fn of_task(server: &str, account: Option<String>, task: SavedTask) -> Self {
        Self {
            id: task.id.clone(),
            server: server.to_owned(),
            account,
            tool: String::new(),
            arguments: RawJson::default(),
            key: None,
            idempotent: false,
            stage: CallStage::Task(task),
            answers: BTreeMap::new(),
        }
    }

    pub(crate) fn note_round(&mut self, round: SavedRound) {
        if matches!(self.stage, CallStage::Calling(_)) {
            self.stage = CallStage::Calling(Some(round));
        }
    }

    /// Whether it is over.
    pub fn is_terminal(&self) -> bool {
        matches!(self.stage, CallStage::Done(_) | CallStage::Failed(_))
    }
}

/// A call and the notebook it is written down in, if there is one.
#[derive(Clone)]
pub(crate) struct Record {
    notebook: Option<Arc<dyn CallStore>>,
    saved: Arc<tokio::sync::Mutex<SavedCall>>,
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record").finish_non_exhaustive()
    }
}

impl Record {
    pub(crate) fn new(notebook: Option<Arc<dyn CallStore>>, saved: SavedCall) -> Self {
        Self { notebook, saved: Arc::new(tokio::sync::Mutex::new(saved)) }
    }

    pub(crate) async fn saved(&self) -> SavedCall {
        self.saved.lock().await.clone()
    }

    /// Changes what is known, and writes it down before anything is done about it.
    pub(crate) async fn change(&self, change: impl FnOnce(&mut SavedCall)) -> Result<()> {
        let mut saved = Arc::clone(&self.saved).lock_owned().await;
        change(&mut saved);
        let Some(notebook) = self.notebook.clone() else { return Ok(()) };
        // Locked until it is written, also if nobody waits for that any more: two writes at once would
        // be one too many for a file.
        run(move || notebook.save(&saved)).await
    }

    pub(crate) async fn write(&self) -> Result<()> {
        self.change(|_| ()).await
    }

    pub(crate) async fn erase(&self) -> Result<()> {
        let saved = Arc::clone(&self.saved).lock_owned().await;
        let Some(notebook) = self.notebook.clone() else { return Ok(()) };
        run(move || notebook.delete(&saved.id)).await
    }
}

/// Does something with a notebook where it may wait for a disk.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| ClientError::CallStore(error.to_string()).into())
}

/// A notebook that is a folder, with a file for each call.
#[derive(Debug)]
pub struct FileCallStore {
    folder: PathBuf,
}

impl FileCallStore {
    /// Opens the folder, and makes it if it is not there.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn path(&self, id: &str) -> io::Result<PathBuf> {
        // Ids are made here; a file that somebody else wrote must not lead out of the folder.
        let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match is_plain {
            true => Ok(self.folder.join(format!("{id}.json"))),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "no id of a call")),
        }
    }
}

impl CallStore for FileCallStore {
    fn save(&self, call: &SavedCall) -> io::Result<()> {
        let path = self.path(&call.id)?;
        let beside = path.with_extension("new");
        let mut file = create(&beside)?;
        file.write_all(&serde_json::to_vec(call)?)?;
        file.sync_all()?;
        fs::rename(&beside, &path)?;
        sync_folder(&self.folder)
    }

    fn delete(&self, id: &str) -> io::Result<()> {
        match fs::remove_file(self.path(id)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn load(&self) -> io::Result<Vec<SavedCall>> {
        let mut calls = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            // What was not finished was not promised either.
            if path.extension().is_some_and(|extension| extension == "json") {
                let bytes = match fs::read(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    read => read?,
                };
                calls.push(serde_json::from_slice(&bytes)?);
            }
        }
        calls.sort_by(|one: &SavedCall, other| one.id.cmp(&other.id));
        Ok(calls)
    }
}

/// Makes a file that only its owner can read: arguments and answers may be private.
#[cfg(unix)]
fn create(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create(path: &Path) -> io::Result<fs::File> {
    fs::File::create(path)
}

/// A new name is safe when its folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
