//! The connection that holds the liveness lock and exchanges change notifications.
//!
//! The connection holds an advisory lock while it is open. When the process dies, the lock is
//! released, and other replicas reclaim its tasks before the leases expire. If only the connection
//! is lost, the process reconnects with another lock and moves its tasks to that lock. After a
//! reconnection or a restart of the database, other replicas get time to reconnect, too
//! (`schema/claim.sql`).
//!
//! Listeners in this process are notified right after a commit. Other processes are notified a
//! moment later. A notification needs a separate commit in the database, which several changes
//! share.

use std::{
    collections::HashSet,
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_postgres::Notification;

use super::{changes::Listeners, column, connect::Session, error::PostgresError, state::Shared};
use crate::store::{ChangeSource, TaskId};

/// Maximum number of commits that wait for their notification. Further notifications are dropped,
/// because they are only hints.
pub(super) const QUEUE: usize = 1_024;

/// Delay between two notifications.
const PAUSE: Duration = Duration::from_millis(10);

/// Maximum delay between two connection attempts. Other replicas reclaim the tasks of a process
/// that reconnects too late.
const LONGEST: Duration = Duration::from_millis(100);

/// Interval of checks that an idle connection still works.
const ASK: Duration = Duration::from_secs(5);

/// Maximum bytes of a notification. PostgreSQL accepts less than 8000.
const MESSAGE: usize = 7_800;

/// Age of changes that may have been missed during an outage, in milliseconds. A slow transaction
/// commits later than its `updated_at`.
const MISSED: i64 = 60_000;

const LIVE: &str = "SELECT register_replica($1, $2)";
const TELL: &str = "SELECT pg_notify($1, $2)";
const SINCE: &str = "SELECT id FROM task WHERE updated_at >= now_ms(0) - $1";

/// Opens the connection. `before` is the lock that this process held earlier.
pub(super) async fn open(
    shared: &Arc<Shared>,
    before: Option<i64>,
) -> Result<Session, PostgresError> {
    let (listeners, origin) = (Arc::clone(&shared.listeners), shared.origin);
    let hear = move |told: &Notification| hear(&listeners, origin, told.payload());
    let mut session = match before {
        None => shared.database.open(hear).await?,
        Some(_) => shared.database.reopen(LONGEST, hear).await?,
    };
    // No caller waits for the commits of this connection.
    let channel = shared.database.channel().replace('"', "\"\"");
    let listen = format!("SET synchronous_commit = off; LISTEN \"{channel}\"");
    session.client.batch_execute(&listen).await?;
    let lock = random();
    session.client.execute("SELECT pg_advisory_lock($1)", &[&lock]).await?;
    session.prepare(LIVE).await?;
    session.prepare(TELL).await?;
    session.client.query(session.prepared(LIVE)?, &[&lock, &before]).await?;
    shared.set_lock(lock);
    Ok(session)
}

/// Returns a random number, which is unique among processes.
pub(super) fn random() -> i64 {
    i64::from_ne_bytes(RandomState::new().build_hasher().finish().to_ne_bytes())
}

/// Keeps the connection open until all senders of changes are dropped.
pub(super) async fn keep(
    shared: Arc<Shared>,
    mut session: Session,
    mut changed: mpsc::Receiver<Vec<TaskId>>,
) {
    loop {
        let Err(problem) = serve(&shared, &mut session, &mut changed).await else { return };
        let error = problem.with(&shared.database.place);
        tracing::warn!(%error, "liveness connection lost; reconnecting");
        session.abort();
        session = loop {
            match open(&shared, Some(shared.lock())).await {
                Ok(session) => break session,
                Err(problem) => {
                    let error = problem.with(&shared.database.place);
                    tracing::warn!(%error, "could not reconnect the liveness connection; retrying");
                    // The store was dropped, so the process needs no liveness lock.
                    if changed.is_closed() && changed.is_empty() {
                        return;
                    }
                    sleep(PAUSE).await;
                }
            }
        };
        if let Err(problem) = catch_up(&shared, &session).await {
            let error = problem.with(&shared.database.place);
            tracing::warn!(%error, "could not read the changes during the outage");
        }
    }
}

/// Sends change notifications. Returns `Ok` when all senders are dropped.
async fn serve(
    shared: &Shared,
    session: &mut Session,
    changed: &mut mpsc::Receiver<Vec<TaskId>>,
) -> Result<(), PostgresError> {
    loop {
        tokio::select! {
            tasks = changed.recv() => {
                let Some(mut tasks) = tasks else { return Ok(()) };
                while let Ok(more) = changed.try_recv() {
                    tasks.extend(more);
                }
                for message in messages(shared.origin, tasks) {
                    let tell = [&shared.database.channel() as _, &message as _];
                    answered(session.client.query(session.prepared(TELL)?, &tell)).await?;
                }
                sleep(PAUSE).await;
            }
            () = session.closed() => return Err(PostgresError::Silent),
            () = sleep(ASK) => answered(session.client.batch_execute("")).await?,
        }
    }
}

async fn answered<T>(
    asked: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, PostgresError> {
    Ok(timeout(ASK, asked).await.map_err(|_| PostgresError::Silent)??)
}

/// Notifies local listeners of everything that may have changed while the connection was lost.
async fn catch_up(shared: &Shared, session: &Session) -> Result<(), PostgresError> {
    for row in session.client.query(SINCE, &[&MISSED]).await? {
        shared.listeners.tell(&TaskId::new(column::name(&row, 0)?), ChangeSource::Other);
    }
    Ok(())
}

/// Packs the task IDs into as few notifications as possible.
fn messages(origin: i64, tasks: Vec<TaskId>) -> Vec<String> {
    let mut told = HashSet::new();
    let mut messages = Vec::new();
    let mut message = String::new();
    for task in tasks {
        // JSON, because a task ID may contain any character.
        let Ok(name) = serde_json::to_string(&task) else { continue };
        if !told.insert(task) || name.len() > MESSAGE {
            continue;
        }
        if message.len() + name.len() > MESSAGE {
            messages.push(std::mem::take(&mut message) + "]]");
        }
        match message.is_empty() {
            true => message = format!("[{origin},["),
            false => message.push(','),
        }
        message.push_str(&name);
    }
    if !message.is_empty() {
        messages.push(message + "]]");
    }
    messages
}

/// Notifies local listeners of the changes of another process.
fn hear(listeners: &Listeners, origin: i64, message: &str) {
    match serde_json::from_str::<(i64, Vec<TaskId>)>(message) {
        Ok((from, tasks)) if from != origin => {
            tasks.iter().for_each(|task| listeners.tell(task, ChangeSource::Other));
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(%error, "could not read a change notification of another process")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::{Listeners, MESSAGE, hear, messages};
    use crate::store::TaskId;

    #[test]
    fn messages_stay_below_limit_and_name_each_task_once() {
        let tasks: Vec<TaskId> = (0..1_000).map(|n| TaskId::new(format!("\"ü\0-{n}"))).collect();
        let messages = messages(7, [tasks.clone(), tasks.clone()].concat());
        assert!(messages.iter().all(|message| message.len() < MESSAGE + 10));
        let listeners = Listeners::default();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ears = Arc::clone(&heard);
        listeners.add(Arc::new(move |task, _| ears.lock().unwrap().push(task.clone())));
        messages.iter().for_each(|message| hear(&listeners, 7, message));
        assert!(heard.lock().unwrap().is_empty(), "a process ignores its own notifications");
        messages.iter().for_each(|message| hear(&listeners, 8, message));
        assert_eq!(*heard.lock().unwrap(), tasks);
    }
}
