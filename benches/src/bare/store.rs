//! A bare store of either kind.

use super::write::{Queued, Write};
use super::{postgres, sqlite};
use crate::place::Place;
use anyhow::{Context, Result};
use tokio::sync::{mpsc, oneshot};

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
