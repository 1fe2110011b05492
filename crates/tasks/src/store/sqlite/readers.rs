//! Threads that read. One statement reads one consistent state with all acknowledged writes. A read
//! of several statements uses [`in_one_piece`](super::statement::in_one_piece).

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{error::SqliteError, state::File, statement::run};
use crate::store::StoreError;

/// Capacity of the queue. Further callers wait until the queue has space.
const QUEUE: usize = 1_024;

/// Maximum number of reads that a thread takes at once. Passing the queue lock for each read would
/// cost more than the read.
const TAKEN: usize = 16;

/// Handle to the reader threads. After its drop, the threads finish the queued reads and end.
#[derive(Debug)]
pub(super) struct Readers {
    queue: mpsc::Sender<Look>,
}

type Look = Box<dyn FnOnce(&Connection) + Send>;

impl Readers {
    pub(super) fn start(connections: Vec<Connection>) -> io::Result<Self> {
        let (queue, queued) = mpsc::channel::<Look>(QUEUE);
        // One thread waits on the queue, and the others wait for the mutex.
        let queued = Arc::new(Mutex::new(queued));
        for connection in connections {
            let queued = Arc::clone(&queued);
            let serve = move || {
                let mut looks = Vec::with_capacity(TAKEN);
                while take(&queued, &mut looks) {
                    look_at(&connection, &mut looks);
                }
            };
            thread::Builder::new().name("sqlite-reader".to_owned()).spawn(serve)?;
        }
        Ok(Self { queue })
    }

    /// Executes a read on a reader thread.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        file: &Arc<File>,
        look: impl FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let gone =
            || StoreError::Unavailable("the reader threads have ended; restart the process".into());
        let file = Arc::clone(file);
        let look = move |connection: &Connection| {
            let seen = look(connection).map_err(|problem| problem.with(&file.path));
            // The caller may have been dropped.
            let _ = answer.send(seen);
        };
        self.queue.send(Box::new(look)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

/// Executes several reads in one transaction. Starting a transaction, and reloading pages that
/// changed since the last one, costs as much as a read.
fn look_at(connection: &Connection, looks: &mut Vec<Look>) {
    let together = looks.len() > 1 && run(connection, "BEGIN", []).is_ok();
    looks.drain(..).for_each(|look| look(connection));
    if together && let Err(error) = run(connection, "ROLLBACK", []) {
        tracing::error!(%error, "could not end a read transaction");
    }
}

/// Waits for reads. Returns `false` after the queue is closed.
fn take(queued: &Mutex<mpsc::Receiver<Look>>, looks: &mut Vec<Look>) -> bool {
    let mut queued = queued.lock().unwrap_or_else(PoisonError::into_inner);
    looks.extend(queued.blocking_recv());
    while !looks.is_empty() && looks.len() < TAKEN {
        let Ok(look) = queued.try_recv() else { break };
        looks.push(look);
    }
    !looks.is_empty()
}
