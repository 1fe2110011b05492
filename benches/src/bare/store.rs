//! A bare store of either kind.

use super::write::{Queued, Write};
use super::{postgres, sqlite};
use crate::place::Place;
use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};

/// The writers; each lane is a connection.
#[derive(Clone)]
pub(crate) struct Bare {
    lanes: Vec<mpsc::Sender<Queued>>,
}

impl Bare {
    /// Opens a database with `lanes` writing connections; SQLite has one.
    pub(crate) async fn open(place: &Place, lanes: usize) -> Result<Self> {
        match place.file() {
            Some(path) => Ok(Self { lanes: vec![sqlite::start(path)?] }),
            None => Ok(Self { lanes: postgres::start(place, lanes).await? }),
        }
    }

    /// Commits a write on this lane.
    pub(crate) async fn commit(&self, lane: usize, write: Write) -> Result<()> {
        let (reply, done) = oneshot::channel();
        let lane = &self.lanes[lane % self.lanes.len()];
        lane.send((write, reply)).await.ok().context("the bare writer has stopped")?;
        done.await.context("the bare writer has stopped")
    }

    /// Queues a write for the next commit without waiting.
    pub(crate) async fn leave(&self, write: Write) -> Result<()> {
        let (reply, _) = oneshot::channel();
        self.lanes[0].send((write, reply)).await.ok().context("the bare writer has stopped")
    }
}
