//! `outlive serve` with tool workers: its files, which survive the process, and its processes.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::bench::Bench;
use crate::hosts::caller::Caller;
use crate::hosts::home::write_private;

/// Token of the principal.
const ALICE: &str = "alice-0123456789abcdef";

const SERVER: &str = "[server]\nlisten = \"127.0.0.1:0\"\nmax_connections_per_address = 4000\n";

/// Configuration and folder of one or several servers.
#[derive(Debug)]
pub(super) struct Site {
    program: PathBuf,
    folder: PathBuf,
    /// URL of the store; `None` is a file in the data folder of each server.
    store: Option<String>,
}

impl Site {
    /// Creates the folder of a site.
    pub(super) fn new(bench: &Bench, name: &str, store: Option<String>) -> Result<Self> {
        let folder = bench.folder().join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self { program: bench.program().to_owned(), folder, store })
    }

    /// The file in which tools record their executions.
    pub(super) fn executions(&self) -> PathBuf {
        self.folder.join("executions")
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the configuration, which has these sections.
    pub(super) fn configure(&self, sections: &str) -> Result<()> {
        let tokens = self.folder.join("tokens");
        write_private(&tokens, &format!("alice {ALICE}\n"))?;
        let tokens = format!("token_file = \"{}\"\n\n", tokens.display());
        fs::write(self.folder.join("outlive.toml"), [SERVER, &tokens, sections].concat())?;
        Ok(())
    }

    /// Starts a server on a free port. Servers with the same number have the same data folder.
    pub(super) fn start(&self, number: usize) -> Result<Server> {
        let data = self.folder.join(format!("data-{number}"));
        fs::create_dir_all(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        let log = self.folder.join(format!("server-{number}.log"));
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(self.folder.join("outlive.toml")).arg("--json");
        command.arg("--data-dir").arg(data);
        if let Some(store) = &self.store {
            command.args(["--store", store]);
        }
        let output = OpenOptions::new().append(true).create(true).open(&log)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(output);
        let mut child = command.spawn().context("could not start the server")?;
        let stdout = child.stdout.take().context("the server has a standard output")?;
        let address = SocketAddr::from(([0; 4], 0));
        let mut server = Server { child, address, log: log.clone(), number };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            bail!("the server did not start; its output:\n{}", fs::read_to_string(log)?);
        };
        let url = said["url"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        server.address = address.parse().with_context(|| format!("`{url}` has no address"))?;
        Ok(server)
    }
}

/// A running server, killed with `kill -9` on drop.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    /// Number of the data folder.
    pub(super) number: usize,
}

impl Server {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A caller of 2026-07-28 with tasks.
    pub(super) fn caller(&self) -> Caller {
        Caller::with_tasks(self.address, Some(ALICE))
    }

    /// Kills the server with `kill -9` and waits for its exit.
    pub(super) fn kill(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server exited on its own, {status}; see {}", self.log.display());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
