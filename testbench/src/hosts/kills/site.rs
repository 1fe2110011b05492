//! The server that is killed and restarted.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::commits::Commits;
use crate::hosts::home::{Home, Server};

/// Maximum time until a lost connection is explained by a kill.
const EXPLANATION: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// One server at a time on the same files.
pub(super) struct Site<'h> {
    home: &'h Home,
    pub(super) commits: Commits,
    state: Mutex<State<'h>>,
}

struct State<'h> {
    /// Number of the current or next process.
    process: u64,
    server: Option<Server<'h>>,
    /// The tasks in the store when a process was killed, by process and key.
    at_kill: HashMap<u64, HashMap<String, usize>>,
}

impl<'h> Site<'h> {
    pub(super) fn start(home: &'h Home) -> Result<Self> {
        let server = Some(home.start()?);
        let commits = Commits::open(&home.store())?;
        let state = Mutex::new(State { process: 0, server, at_kill: HashMap::new() });
        Ok(Self { home, commits, state })
    }

    /// Returns the running process and its address; `None` while the server is down.
    pub(super) fn current(&self) -> Option<(u64, SocketAddr)> {
        let state = self.state();
        state.server.as_ref().map(|server| (state.process, server.address))
    }

    /// Kills the server, reads the store, and starts the next process.
    pub(super) fn kill(&self) -> Result<()> {
        let server = self.state().server.take().context("the server is already down")?;
        server.kill()?;
        let tasks = self.commits.count()?;
        {
            let mut state = self.state();
            let process = state.process;
            state.at_kill.insert(process, tasks);
            state.process += 1;
        }
        let next = self.home.start()?;
        self.state().server = Some(next);
        Ok(())
    }

    /// Returns the number of tasks with this key when the process was killed.
    pub(super) fn tasks_at_kill(&self, process: u64, key: &str) -> Result<usize> {
        let started = Instant::now();
        loop {
            if let Some(tasks) = self.state().at_kill.get(&process) {
                return Ok(tasks.get(key).copied().unwrap_or(0));
            }
            if started.elapsed() > EXPLANATION {
                bail!("the server closed the connection of {key} without a kill");
            }
            thread::sleep(POLL);
        }
    }

    /// A poisoned lock is usable: no value here is left inconsistent by a panic.
    fn state(&self) -> MutexGuard<'_, State<'h>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
