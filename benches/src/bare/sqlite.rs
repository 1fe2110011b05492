//! Bare commits to SQLite: one writer thread and one reader thread.

use std::{path::Path, thread};

use anyhow::{Context, Result};
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::{mpsc, oneshot};

use super::{BATCH, DAY, QUEUE, Queued, Write, now};

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS task (id TEXT PRIMARY KEY, principal TEXT, kind TEXT, origin TEXT,
    phase INTEGER, epoch INTEGER, owner TEXT, due INTEGER, created INTEGER, updated INTEGER,
    ttl INTEGER, base_ttl INTEGER, max_ttl INTEGER, expires INTEGER, purge INTEGER, begun INTEGER,
    crashes INTEGER, open INTEGER, listed INTEGER, clean_up INTEGER, outcome TEXT);
CREATE TABLE IF NOT EXISTS request (task INTEGER PRIMARY KEY, body TEXT);
CREATE TABLE IF NOT EXISTS entry (task TEXT, key TEXT, answer INTEGER, body TEXT,
    PRIMARY KEY (task, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS event (number INTEGER PRIMARY KEY, at INTEGER, expires INTEGER, task TEXT,
    principal TEXT, what TEXT, cause TEXT);";
const CREATE: &str =
    "INSERT INTO task (id, principal, kind, origin, phase, epoch, owner, due, created,
    updated, ttl, base_ttl, max_ttl, expires, begun, crashes, open, listed, clean_up)
    VALUES (?1, ?2, ?3, ?4, 1, 1, 'bench', ?5, ?5, ?5, ?6, ?6, ?6, ?5 + ?6, 1, 0, 0, 0, 0)";
const REQUEST: &str = "INSERT INTO request VALUES (last_insert_rowid(), ?1)";
const ENTRY: &str = "INSERT INTO entry VALUES (?1, ?2, 0, ?3)";
const END: &str =
    "UPDATE task SET outcome = ?2, phase = 3, owner = NULL, due = NULL, expires = NULL,
    updated = ?3, purge = ?3 + ?4 WHERE id = ?1";
const EVENT: &str = "INSERT INTO event (at, expires, task, principal, what)
    VALUES (?1, ?1 + ?2, ?3, ?4, ?5)";
const READ: &str = "SELECT outcome FROM task WHERE id = ?1";

/// Starts the writer thread.
pub(super) fn start(path: &Path) -> Result<mpsc::Sender<Queued>> {
    let connection = open(path)?;
    connection.execute_batch(TABLES)?;
    let (queue, queued) = mpsc::channel(QUEUE);
    thread::Builder::new().name("bare-writer".to_owned()).spawn(move || {
        if let Err(error) = serve(&connection, queued) {
            eprintln!("the bare writer failed: {error}");
        }
    })?;
    Ok(queue)
}

/// The settings of our store: a commit is durable on disk.
fn open(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.query_row("PRAGMA wal_autocheckpoint = 4000", [], |_| Ok(()))?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -8192")?;
    Ok(connection)
}

fn serve(connection: &Connection, mut queued: mpsc::Receiver<Queued>) -> rusqlite::Result<()> {
    let mut replies = Vec::with_capacity(BATCH);
    while let Some((first, reply)) = queued.blocking_recv() {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        write(connection, &first)?;
        replies.push(reply);
        while replies.len() < BATCH
            && let Ok((next, reply)) = queued.try_recv()
        {
            write(connection, &next)?;
            replies.push(reply);
        }
        connection.prepare_cached("COMMIT")?.execute([])?;
        replies.drain(..).for_each(|reply| _ = reply.send(()));
    }
    Ok(())
}

fn write(connection: &Connection, write: &Write) -> rusqlite::Result<()> {
    match write {
        Write::Create { id, principal, kind, origin, request } => {
            let row = (id, principal, kind, origin, now(), DAY);
            connection.prepare_cached(CREATE)?.execute(row)?;
            connection.prepare_cached(REQUEST)?.execute([request])?;
        }
        Write::Entry { task, key, body } => {
            connection.prepare_cached(ENTRY)?.execute((task, key, body))?;
        }
        Write::End { task, outcome } => {
            connection.prepare_cached(END)?.execute((task, outcome, now(), DAY))?;
        }
        Write::Event { task, principal, what } => {
            let row = (now(), DAY, task, principal, what);
            connection.prepare_cached(EVENT)?.execute(row)?;
        }
    }
    Ok(())
}

/// A read of one task. The result is its outcome, `Some(None)` if it has not ended, or `None` if it
/// is unknown.
type Look = (String, oneshot::Sender<Option<Option<String>>>);

/// The handle of the reader thread.
#[derive(Clone)]
pub(crate) struct Reader {
    queue: mpsc::Sender<Look>,
}

impl Reader {
    /// Starts the reader thread. The tables exist.
    pub(crate) fn start(path: &Path) -> Result<Self> {
        let connection = open(path)?;
        let (queue, mut queued) = mpsc::channel::<Look>(QUEUE);
        thread::Builder::new().name("bare-reader".to_owned()).spawn(move || {
            while let Some((id, reply)) = queued.blocking_recv() {
                match read(&connection, &id) {
                    Ok(found) => drop(reply.send(found)),
                    Err(error) => eprintln!("the bare reader: {error}"),
                }
            }
        })?;
        Ok(Self { queue })
    }

    /// Returns the outcome of a task so far.
    pub(crate) async fn read(&self, id: String) -> Result<Option<Option<String>>> {
        let (reply, found) = oneshot::channel();
        self.queue.send((id, reply)).await.ok().context("the bare reader has stopped")?;
        found.await.context("the bare reader failed")
    }
}

fn read(connection: &Connection, id: &str) -> rusqlite::Result<Option<Option<String>>> {
    connection.prepare_cached(READ)?.query_row([id], |row| row.get(0)).optional()
}
