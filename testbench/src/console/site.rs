//! `outlive serve` with a console: its files, and one process or several replicas on one store.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::bench::Bench;
use super::packages::output;
use super::people;
use super::visitor::Visitor;
use crate::crash::database::Database;
use crate::executions::Executions;
use crate::hosts::home::{end_jobs, write_private};

/// Names of paths in a configuration: the file of executions, and a program that appends its
/// arguments to it as one line.
const EXECUTIONS: &str = "@EXECUTIONS@";
const RECORD: &str = "@RECORD@";

/// The console of every configuration.
const CONSOLE: &str = r#"
[console]
operators = ["ada"]
viewers = ["eva"]
"#;

/// Bytes of the key that seals tokens.
const KEY: usize = 32;

/// Time for a killed replica to be back.
const BACK: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

/// Servers and their files.
#[derive(Debug)]
pub(super) struct Site {
    program: PathBuf,
    folder: PathBuf,
    config: PathBuf,
    /// Variables of the servers.
    environment: Vec<(&'static str, String)>,
    replicas: Vec<Mutex<Option<Server>>>,
    /// Key that seals tokens.
    pub(super) seal_key: [u8; KEY],
    pub(super) executions: Executions,
    pub(super) database: Database,
}

#[derive(Debug)]
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Site {
    /// Writes the files of a site and starts its database. `config` has everything but `[server]`
    /// and `[console]`.
    pub(super) fn new(
        bench: &Bench,
        name: &str,
        (store, replicas): (&str, usize),
        config: &str,
    ) -> Result<Self> {
        let folder = bench.folder().join(format!("{name}-{store}"));
        fs::create_dir_all(&folder)?;
        let executions = Executions::new(folder.join("executions"))?;
        let record = folder.join("record");
        let script =
            format!("#!/bin/sh\necho \"$*\" >> '{}'\nsleep 0.03\n", executions.path().display());
        fs::write(&record, format!("{script}echo \"done $1\"\n"))?;
        fs::set_permissions(&record, fs::Permissions::from_mode(0o755))?;
        let (tokens, key) = (folder.join("tokens"), folder.join("seal.key"));
        write_private(&tokens, &people::token_file())?;
        // Sites of different names have different keys.
        let byte = name.bytes().fold(7_u8, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte));
        write_private(&key, &format!("{}\n", format!("{byte:02x}").repeat(KEY)))?;
        let head = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\nseal_key_file = \"{}\"\n{}",
            tokens.display(),
            key.display(),
            CONSOLE,
        );
        let text = config
            .replace(EXECUTIONS, &executions.path().display().to_string())
            .replace(RECORD, &record.display().to_string());
        let path = folder.join("outlive.toml");
        fs::write(&path, format!("{head}{text}"))?;
        Ok(Self {
            program: bench.program().to_owned(),
            database: Database::start(store, &folder)?,
            config: path,
            environment: Vec::new(),
            replicas: (0..replicas).map(|_| Mutex::default()).collect(),
            executions,
            folder,
            seal_key: [byte; KEY],
        })
    }

    /// Changes the site to one without tokens: only people on this machine use it.
    pub(super) fn without_tokens(self) -> Result<Self> {
        self.change_config(|text| {
            let lines = text.lines().filter(|line| !line.starts_with("token_file"));
            let text: String = lines.map(|line| format!("{line}\n")).collect();
            // On this machine, the console needs no section.
            text.replace(CONSOLE.trim_start(), "")
        })?;
        Ok(self)
    }

    /// Writes the files of a site with a console and starts all its servers.
    pub(super) fn start(
        bench: &Bench,
        name: &str,
        store: (&str, usize),
        config: &str,
    ) -> Result<Self> {
        let site = Self::new(bench, name, store, config)?;
        site.launch_all()?;
        Ok(site)
    }

    /// Sets a variable of the servers that start later.
    pub(super) fn set_variable(&mut self, name: &'static str, value: String) {
        self.environment.push((name, value));
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The output of a replica, without its first line.
    pub(super) fn log(&self, replica: usize) -> PathBuf {
        self.folder.join(format!("server-{replica}.log"))
    }

    pub(super) fn replicas(&self) -> usize {
        self.replicas.len()
    }

    /// Number of replicas that are up.
    pub(super) fn up(&self) -> usize {
        (0..self.replicas.len()).filter(|&replica| self.slot(replica).is_some()).count()
    }

    /// Replaces a text in the configuration, which running servers read again.
    pub(super) fn change_config(&self, change: impl FnOnce(&str) -> String) -> Result<()> {
        let text = change(&fs::read_to_string(&self.config)?);
        let next = self.config.with_extension("next");
        fs::write(&next, text)?;
        Ok(fs::rename(next, &self.config)?)
    }

    pub(super) fn launch_all(&self) -> Result<()> {
        (0..self.replicas.len()).try_for_each(|replica| self.launch(replica))
    }

    /// Starts a replica that is down.
    pub(super) fn launch(&self, replica: usize) -> Result<()> {
        let data = self.folder.join(format!("data-{replica}"));
        fs::create_dir_all(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(&self.config).arg("--json").arg("--data-dir").arg(&data);
        command.arg("--store").arg(self.database.url());
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        let log = self.log(replica);
        let out = OpenOptions::new().append(true).create(true).open(&log)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(out);
        let mut child = command.spawn().context("could not start the server")?;
        let stdout = output(&mut child)?;
        let mut server = Server { child, address: SocketAddr::from(([0; 4], 0)) };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            bail!("the server did not start; its output:\n{}", fs::read_to_string(&log)?);
        };
        let url = said["url"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        server.address = address.parse().with_context(|| format!("`{url}` has no address"))?;
        *self.slot(replica) = Some(server);
        Ok(())
    }

    /// Kills a replica with `kill -9`. Returns `false` if the replica is down already.
    pub(super) fn kill(&self, replica: usize) -> Result<bool> {
        let Some(mut server) = self.slot(replica).take() else { return Ok(false) };
        if let Some(status) = server.child.try_wait()? {
            bail!("a server exited on its own, {status}; see {}", self.log(replica).display());
        }
        server.child.kill()?;
        server.child.wait()?;
        Ok(true)
    }

    /// Returns the address of a replica, and waits for it if the replica is down.
    pub(super) fn address(&self, replica: usize) -> Result<SocketAddr> {
        let started = Instant::now();
        loop {
            if let Some(server) = &*self.slot(replica) {
                return Ok(server.address);
            }
            if started.elapsed() > BACK {
                bail!("replica {replica} is not back after {} s", BACK.as_secs());
            }
            thread::sleep(POLL);
        }
    }

    /// Returns the process ID of a replica.
    pub(super) fn process(&self, replica: usize) -> Result<u32> {
        self.slot(replica).as_ref().map(|server| server.child.id()).context("the replica is down")
    }

    /// Returns a visitor of a replica with a token.
    pub(super) fn visitor(&self, replica: usize, token: &str) -> Result<Visitor> {
        Ok(Visitor::with_token(self.address(replica)?, token))
    }

    /// A poisoned lock is usable: a slot is replaced as a whole.
    fn slot(&self, replica: usize) -> MutexGuard<'_, Option<Server>> {
        self.replicas[replica].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Kills the servers and ends the commands that they left.
impl Drop for Site {
    fn drop(&mut self) {
        for replica in 0..self.replicas.len() {
            let _ = self.kill(replica);
        }
        let _ = end_jobs(&self.folder);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
