//! Who listens, and how they hear of what other processes have changed.
//!
//! What this process changes is told by its writer, right after the commit. For the others a thread
//! looks, while somebody listens, whether anybody has written to the file: SQLite knows that
//! without reading it. The longer nobody else has, the less often it looks.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;

use super::{
    change_log,
    error::SqliteError,
    state::File,
    statement::{in_one_piece, one},
};
use crate::store::{ChangeListener, ChangeSource, TaskId};

/// How many times longer the watcher waits when nothing has happened for a while. Nobody depends
/// on it: a change that is seen late is one that somebody may also find by looking.
const QUIET: u32 = 10;

/// The way to the thread that watches. When it is dropped, the thread ends.
#[derive(Debug)]
pub(super) struct Watcher {
    /// What is sent through it, once, is answered when the watch has begun.
    begin: Sender<SyncSender<()>>,
    begun: OnceLock<()>,
}

impl Watcher {
    pub(super) fn start(
        connection: Connection,
        file: Arc<File>,
        every: Duration,
    ) -> io::Result<Self> {
        let (begin, begun) = channel();
        let thread = Thread { connection, file, every, version: None, seen: 0 };
        thread::Builder::new()
            .name("sqlite-watcher".to_owned())
            .spawn(move || thread.serve(&begun))?;
        Ok(Self { begin, begun: OnceLock::new() })
    }

    /// Tells a listener of everything that is committed after this.
    pub(super) fn listen(&self, file: &File, listener: ChangeListener) {
        file.listeners.add(listener);
        self.begun.get_or_init(|| {
            // Waits until the thread knows where to begin: one look at the file.
            let (begun, wait) = sync_channel(1);
            if self.begin.send(begun).is_err() || wait.recv().is_err() {
                tracing::error!("the watcher has ended; nobody hears of other processes");
            }
        });
    }
}

struct Thread {
    connection: Connection,
    file: Arc<File>,
    every: Duration,
    /// What SQLite called the state of the file when it was last looked at.
    version: Option<i64>,
    /// The last commit that is known.
    seen: i64,
}

impl Thread {
    fn serve(mut self, begin: &Receiver<SyncSender<()>>) {
        let Ok(begun) = begin.recv() else { return };
        // If that fails, everything that is remembered is news.
        self.seen = in_one_piece(&self.connection, change_log::last).unwrap_or_default();
        let _ = begun.send(());
        let mut heard = Instant::now();
        // Nothing more is sent: this ends when the store is dropped.
        while let Err(RecvTimeoutError::Timeout) = begin.recv_timeout(self.pause(heard)) {
            match self.look() {
                Ok(changed) => {
                    if !changed.is_empty() {
                        heard = Instant::now();
                    }
                    changed
                        .iter()
                        .for_each(|task| self.file.listeners.notify(task, ChangeSource::Other));
                }
                // What was not seen now is seen next time.
                Err(problem) => {
                    let why = problem.with(&self.file.path);
                    tracing::warn!(error = %why, "changes by other processes were not looked for");
                }
            }
        }
    }

    /// How long to wait before the next look, if there was something to hear then.
    fn pause(&self, heard: Instant) -> Duration {
        (heard.elapsed() / 4).clamp(self.every, self.every * QUIET)
    }

    fn look(&mut self) -> Result<Vec<TaskId>, SqliteError> {
        let version: Option<i64> =
            one(&self.connection, "PRAGMA data_version", [], |row| row.get(0))?;
        if version.is_some() && self.version == version {
            return Ok(Vec::new());
        }
        let (origin, seen) = (self.file.origin, self.seen);
        let (changed, seen) = in_one_piece(&self.connection, |connection| {
            change_log::since(connection, origin, seen)
        })?;
        (self.version, self.seen) = (version, seen);
        Ok(changed)
    }
}
