//! The threads that read. What one statement sees is one state of the file, in which everything is
//! that was acknowledged before; a look of several asks for that.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{error::SqliteError, state::File, statement::run};
use crate::store::StoreError;

/// How many looks may wait. A caller beyond that waits for its place in the queue.
const QUEUE: usize = 1_024;

/// How many looks a thread takes at once. Taking turns for each costs more than the look.
const TAKEN: usize = 16;

/// The way to the threads that read. When it is dropped, they do what is queued and end.
#[derive(Debug)]
pub(super) struct Readers {
    queue: mpsc::Sender<Look>,
}

type Look = Box<dyn FnOnce(&Connection) + Send>;

impl Readers {
    pub(super) fn start(connections: Vec<Connection>) -> io::Result<Self> {
        let (queue, queued) = mpsc::channel::<Look>(QUEUE);
        // One thread waits in the queue, the others for their turn to.
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

    /// Looks at something.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        file: &Arc<File>,
        look: impl FnOnce(&Connection) -> Result<T, SqliteError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let gone = || StoreError::Unavailable("its readers have ended; restart the process".into());
        let file = Arc::clone(file);
        let look = move |connection: &Connection| {
            let seen = look(connection).map_err(|problem| problem.with(&file.path));
            // Nobody may wait any more.
            let _ = answer.send(seen);
        };
        self.queue.send(Box::new(look)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }
}

/// Several looks at once are at one state of the file: to find out which that is, and to read again
/// what has changed since the last, costs as much as a look.
fn look_at(connection: &Connection, looks: &mut Vec<Look>) {
    let together = looks.len() > 1 && run(connection, "BEGIN", []).is_ok();
    looks.drain(..).for_each(|look| look(connection));
    if together && let Err(error) = run(connection, "ROLLBACK", []) {
        tracing::error!(%error, "a look could not be ended");
    }
}

/// Waits for something to look at. False if there will be nothing any more.
fn take(queued: &Mutex<mpsc::Receiver<Look>>, looks: &mut Vec<Look>) -> bool {
    let mut queued = queued.lock().unwrap_or_else(PoisonError::into_inner);
    looks.extend(queued.blocking_recv());
    while !looks.is_empty() && looks.len() < TAKEN {
        let Ok(look) = queued.try_recv() else { break };
        looks.push(look);
    }
    !looks.is_empty()
}
