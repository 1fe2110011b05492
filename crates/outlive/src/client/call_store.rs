//! Calls that the client saves before it sends them, so that another process can resume them.
//!
//! The client saves a call before it sends it, and an input response before it submits it. It saves
//! the outcome before it deletes the call. After a crash, the saved state covers everything that
//! the server has received.

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

/// Storage for saved calls.
pub trait CallStore: Send + Sync + 'static {
    /// Saves a call and replaces an older entry with the same ID. The entry must be durable
    /// (flushed to disk) when this returns.
    ///
    /// # Errors
    ///
    /// If the entry is not durable.
    fn save(&self, call: &SavedCall) -> io::Result<()>;

    /// Deletes a call. A missing call is not an error.
    ///
    /// # Errors
    ///
    /// If the call still exists.
    fn delete(&self, id: &str) -> io::Result<()>;

    /// Returns all saved calls.
    ///
    /// # Errors
    ///
    /// If the saved calls cannot be read.
    fn load(&self) -> io::Result<Vec<SavedCall>>;
}

/// A call as data, complete enough for another process to resume it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedCall {
    /// ID of the call in the store.
    pub id: String,
    /// Name of the server, from [`ClientBuilder::label`](super::ClientBuilder::label).
    pub server: String,
    /// Account of the client, from [`ClientBuilder::account`](super::ClientBuilder::account).
    pub account: Option<String>,
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the tool.
    pub arguments: RawJson,
    /// Idempotency key of the call; `None` if the server does not support such keys.
    pub key: Option<String>,
    /// Whether the server declares the tool idempotent.
    pub idempotent: bool,
    /// Progress of the call.
    pub stage: CallStage,
    /// Input responses for the task of the call, by key.
    #[serde(default)]
    pub answers: BTreeMap<String, SavedInputResponse>,
}

/// Progress of a saved call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CallStage {
    /// The call is sent or about to be sent, with its current round.
    Calling(Option<SavedRound>),
    /// The call is a task.
    Task(SavedTask),
    /// The call ended with a result.
    Done(Box<CallToolResult>),
    /// The call failed.
    Failed(ErrorObject),
}

/// One round of a multi round-trip request, as sent with the call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedRound {
    /// Input responses, by key.
    pub answers: Vec<(String, RawJson)>,
    /// Request state from the server.
    pub state: Option<String>,
}

/// A task as data.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedTask {
    /// Task ID.
    pub id: String,
    /// Protocol version of the server that created the task.
    pub version: String,
    /// TTL of the task from its creation, in milliseconds.
    pub ttl: Option<u64>,
    /// Poll interval, in milliseconds.
    pub poll: Option<u64>,
}

/// An input response for a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SavedInputResponse {
    /// The input response.
    pub answer: RawJson,
    /// Whether the server has acknowledged the response.
    pub acknowledged: bool,
}

impl SavedCall {
    /// Creates a saved call of which only the task is known. Its tool name is empty.
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

    /// Returns whether the call has ended.
    pub fn is_terminal(&self) -> bool {
        matches!(self.stage, CallStage::Done(_) | CallStage::Failed(_))
    }
}

/// A call and the store that saves it, if the client has one.
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

    /// Changes the call and saves it, before the client acts on the change.
    pub(crate) async fn change(&self, change: impl FnOnce(&mut SavedCall)) -> Result<()> {
        let mut saved = Arc::clone(&self.saved).lock_owned().await;
        change(&mut saved);
        let Some(notebook) = self.notebook.clone() else { return Ok(()) };
        // The lock is held until the write ends, even if the caller is dropped, because concurrent
        // writes would corrupt the file.
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

/// Runs store operations on a thread that may block.
pub(crate) async fn run<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| ClientError::CallStore(error.to_string()).into())
}

/// Store in a folder, with one file per call.
#[derive(Debug)]
pub struct FileCallStore {
    folder: PathBuf,
}

impl FileCallStore {
    /// Opens the folder and creates it if it is missing.
    ///
    /// # Errors
    ///
    /// If the folder cannot be created.
    pub fn open(folder: impl Into<PathBuf>) -> io::Result<Self> {
        let folder = folder.into();
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    fn path(&self, id: &str) -> io::Result<PathBuf> {
        // A foreign file with a crafted ID must not lead out of the folder.
        let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        match is_plain {
            true => Ok(self.folder.join(format!("{id}.json"))),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "invalid ID of a saved call")),
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
            // Files with another extension are incomplete writes.
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

/// Creates a file that only its owner can read, because arguments and input responses may be
/// private.
#[cfg(unix)]
fn create(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create(path: &Path) -> io::Result<fs::File> {
    fs::File::create(path)
}

/// Flushes the folder: a renamed file is durable only after its folder is.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}
