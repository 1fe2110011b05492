//! The control of everything durable: commits of the same bytes, as safe and as much together, with
//! nothing around them.
//!
//! The rows are those of our stores, column by column; there is no index but by name, and nothing is
//! checked, counted, told or looked up. What is queued while a commit is on its way shares the next;
//! there is no timer.

mod postgres;
mod sqlite;

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};

pub(crate) use sqlite::Reader;

use crate::place::Place;

/// How many writes may wait, and how many share a commit: as many as in our stores.
const QUEUE: usize = 1_024;
const BATCH: usize = 512;

/// Something to commit.
pub(crate) enum Write {
    Create {
        id: String,
        principal: String,
        kind: String,
        origin: String,
        request: String,
    },
    Entry {
        task: String,
        key: String,
        body: String,
    },
    End {
        task: String,
        outcome: String,
    },
    /// A line of the audit, for a task of this name.
    Event {
        task: String,
        principal: &'static str,
        what: &'static str,
    },
}

/// How long things are kept, in milliseconds.
const DAY: i64 = 86_400_000;

/// Milliseconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// A write, and who waits until it is on the disk.
type Queued = (Write, oneshot::Sender<()>);

/// Whoever commits; each lane is a connection of its own.
#[derive(Clone)]
pub(crate) struct Bare {
    lanes: Vec<mpsc::Sender<Queued>>,
}

impl Bare {
    /// Opens a database with so many connections that write; SQLite has one.
    pub(crate) async fn open(place: &Place, lanes: usize) -> Result<Self> {
        match place.file() {
            Some(path) => Ok(Self { lanes: vec![sqlite::start(path)?] }),
            None => Ok(Self { lanes: postgres::start(place, lanes).await? }),
        }
    }

    /// Commits something, down the lane of this number.
    pub(crate) async fn commit(&self, lane: usize, write: Write) -> Result<()> {
        let (reply, done) = oneshot::channel();
        let lane = &self.lanes[lane % self.lanes.len()];
        lane.send((write, reply)).await.ok().context("the bare writer has ended")?;
        done.await.context("the bare writer has ended")
    }

    /// Has something committed with what comes next, and waits for nothing.
    pub(crate) async fn leave(&self, write: Write) -> Result<()> {
        let (reply, _) = oneshot::channel();
        self.lanes[0].send((write, reply)).await.ok().context("the bare writer has ended")
    }
}
