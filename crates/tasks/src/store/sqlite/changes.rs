//! Change notifications from other processes.
//!
//! The writer thread notifies listeners of changes of this process, right after the commit. For
//! other processes, a thread polls `PRAGMA data_version`, which detects foreign commits without
//! reading the file. The polling interval grows while no other process writes.

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

/// Maximum factor by which the polling interval grows while no other process writes. A late
/// notification is harmless, because readers also poll.
const QUIET: u32 = 10;

/// Handle to the watcher thread. Dropping the handle ends the thread.
#[derive(Debug)]
pub(super) struct Watcher {
    /// Starts the watch. The thread replies once it knows the last commit.
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

    /// Notifies a listener of everything that is committed after this call.
    pub(super) fn listen(&self, file: &File, listener: ChangeListener) {
        file.listeners.add(listener);
        self.begun.get_or_init(|| {
            // Waits until the thread has read the number of the last commit.
            let (begun, wait) = sync_channel(1);
            if self.begin.send(begun).is_err() || wait.recv().is_err() {
                tracing::error!(
                    "the watcher thread has ended; changes of other processes are not notified"
                );
            }
        });
    }
}

struct Thread {
    connection: Connection,
    file: Arc<File>,
    every: Duration,
    /// `PRAGMA data_version` at the last poll.
    version: Option<i64>,
    /// Number of the last commit that the thread has seen.
    seen: i64,
}

impl Thread {
    fn serve(mut self, begin: &Receiver<SyncSender<()>>) {
        let Ok(begun) = begin.recv() else { return };
        // After an error, every row of the change log counts as new.
        self.seen = in_one_piece(&self.connection, change_log::last).unwrap_or_default();
        let _ = begun.send(());
        let mut heard = Instant::now();
        // No second message is sent, so the loop ends when the store is dropped.
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
                // The next poll also returns the changes that this poll missed.
                Err(problem) => {
                    let why = problem.with(&self.file.path);
                    tracing::warn!(
                        error = %why,
                        "could not read the changes of other processes; the next poll retries"
                    );
                }
            }
        }
    }

    /// Returns the time until the next poll. The time grows with the time since the last foreign
    /// change.
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
