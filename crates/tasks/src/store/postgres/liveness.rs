//! One connection that says that this process lives, and hears and tells what has changed.
//!
//! It holds a lock for as long as it is open. When the process dies the lock is free, and others
//! take its tasks at once instead of waiting for its leases to end. If only the connection is lost,
//! another one with another lock takes its place, and the tasks are told. Who comes back, and a database
//! that has just started, gives the others time to come back, too (`schema/sparing.sql`).
//!
//! What this process changes is told to those who listen here right after the commit, and to other
//! processes a moment later: a message costs the database a commit that no other can share, so many
//! changes go into one.

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

/// How many commits may wait to be told. Beyond that they are not: it is a hint.
pub(super) const QUEUE: usize = 1_024;

/// How long to wait after a message before the next.
const PAUSE: Duration = Duration::from_millis(10);

/// How long to wait before it is opened again, at most: others take a process for dead that is back too
/// late.
const LONGEST: Duration = Duration::from_millis(100);

/// How often to ask whether the connection still works, if nothing else is said.
const ASK: Duration = Duration::from_secs(5);

/// PostgreSQL takes messages of less than 8000 bytes.
const MESSAGE: usize = 7_800;

/// Who was away may have missed what was changed this much earlier, by somebody whose commit took
/// its time.
const MISSED: i64 = 60_000;

const LIVE: &str = "SELECT register_replica($1, $2)";
const TELL: &str = "SELECT pg_notify($1, $2)";
const SINCE: &str = "SELECT id FROM task WHERE updated_at >= now_ms(0) - $1";

/// Opens the connection, for a process that held another lock before.
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
    // Nobody waits for these commits.
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

/// A number that nobody else has.
pub(super) fn random() -> i64 {
    i64::from_ne_bytes(RandomState::new().build_hasher().finish().to_ne_bytes())
}

/// Keeps the connection, until nobody has anything to tell any more.
pub(super) async fn keep(
    shared: Arc<Shared>,
    mut session: Session,
    mut changed: mpsc::Receiver<Vec<TaskId>>,
) {
    loop {
        let Err(problem) = serve(&shared, &mut session, &mut changed).await else { return };
        let error = problem.with(&shared.database.place);
        tracing::warn!(%error, "the lifeline is lost; it is opened again");
        session.abort();
        session = loop {
            match open(&shared, Some(shared.lock())).await {
                Ok(session) => break session,
                Err(problem) => {
                    let error = problem.with(&shared.database.place);
                    tracing::warn!(%error, "the lifeline cannot be opened; trying on");
                    // The store is dropped: there is nothing to live for.
                    if changed.is_closed() && changed.is_empty() {
                        return;
                    }
                    sleep(PAUSE).await;
                }
            }
        };
        if let Err(problem) = catch_up(&shared, &session).await {
            let error = problem.with(&shared.database.place);
            tracing::warn!(%error, "what has changed meanwhile is not known");
        }
    }
}

/// Tells others what has changed. Ends without a problem when there will be nothing any more.
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

/// Tells those who listen here of everything that may have changed while nothing was heard.
async fn catch_up(shared: &Shared, session: &Session) -> Result<(), PostgresError> {
    for row in session.client.query(SINCE, &[&MISSED]).await? {
        shared.listeners.tell(&TaskId::new(column::name(&row, 0)?), ChangeSource::Other);
    }
    Ok(())
}

/// The names of tasks, in as few messages as they fit into.
fn messages(origin: i64, tasks: Vec<TaskId>) -> Vec<String> {
    let mut told = HashSet::new();
    let mut messages = Vec::new();
    let mut message = String::new();
    for task in tasks {
        // As JSON, whatever stands in it.
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

/// Tells those who listen here what another process has changed.
fn hear(listeners: &Listeners, origin: i64, message: &str) {
    match serde_json::from_str::<(i64, Vec<TaskId>)>(message) {
        Ok((from, tasks)) if from != origin => {
            tasks.iter().for_each(|task| listeners.tell(task, ChangeSource::Other));
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "a message of another process cannot be read"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::{Listeners, MESSAGE, hear, messages};
    use crate::store::TaskId;

    #[test]
    fn messages_are_short_enough_and_tell_of_every_task_once() {
        let tasks: Vec<TaskId> = (0..1_000).map(|n| TaskId::new(format!("\"ü\0-{n}"))).collect();
        let messages = messages(7, [tasks.clone(), tasks.clone()].concat());
        assert!(messages.iter().all(|message| message.len() < MESSAGE + 10));
        let listeners = Listeners::default();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let ears = Arc::clone(&heard);
        listeners.add(Arc::new(move |task, _| ears.lock().unwrap().push(task.clone())));
        messages.iter().for_each(|message| hear(&listeners, 7, message));
        assert!(heard.lock().unwrap().is_empty(), "one's own");
        messages.iter().for_each(|message| hear(&listeners, 8, message));
        assert_eq!(*heard.lock().unwrap(), tasks);
    }
}
