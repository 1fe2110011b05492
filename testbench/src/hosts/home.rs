//! `outlive serve`: its files, which survive the process, and its processes.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::bench::Bench;
use crate::executions::Executions;

/// Tokens of the two principals.
pub(super) const ALICE: &str = "alice-0123456789abcdef";
pub(super) const BOB: &str = "bob-0123456789abcdef";

/// The name of the file of executions in a configuration.
pub(super) const EXECUTIONS: &str = "@EXECUTIONS@";
/// The name of the token file in a configuration.
pub(super) const TOKENS: &str = "@TOKENS@";

/// Configuration, data folder and log of a server.
#[derive(Debug)]
pub(super) struct Home {
    program: PathBuf,
    config: PathBuf,
    data: PathBuf,
    log: PathBuf,
    pub(super) executions: Executions,
}

impl Home {
    /// Writes the files of a server. In `config`, [`EXECUTIONS`] and [`TOKENS`] stand for paths.
    pub(super) fn new(bench: &Bench, name: &str, config: &str) -> Result<Self> {
        let folder = bench.folder().join(name);
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        let tokens = folder.join("tokens");
        write_private(&tokens, &format!("alice {ALICE}\nbob {BOB}\n"))?;
        let executions = Executions::new(folder.join("executions"))?;
        let text = config
            .replace(EXECUTIONS, &executions.path().display().to_string())
            .replace(TOKENS, &tokens.display().to_string());
        let config = folder.join("outlive.toml");
        fs::write(&config, text)?;
        let program = bench.program().to_owned();
        Ok(Self { program, config, data, log: folder.join("server.log"), executions })
    }

    /// URL of the store.
    pub(super) fn store(&self) -> String {
        format!("sqlite:{}", self.data.join("tasks.db").display())
    }

    /// The command of a server on stdio, with the same files.
    pub(super) fn stdio(&self) -> Vec<String> {
        let paths = [&self.program, &self.config, &self.data];
        let [program, config, data] = paths.map(|path| path.display().to_string());
        vec![program, "serve".into(), config, "--stdio".into(), "--data-dir".into(), data]
    }

    /// Starts a server on a free port.
    pub(super) fn start(&self) -> Result<Server<'_>> {
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(&self.config).arg("--json").arg("--data-dir").arg(&self.data);
        let log = OpenOptions::new().append(true).create(true).open(&self.log)?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().context("could not start the server")?;
        let stdout = child.stdout.take().context("the server has a standard output")?;
        let mut server = Server { child, address: SocketAddr::from(([0; 4], 0)), home: self };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            bail!("the server did not start; its output:\n{}", fs::read_to_string(&self.log)?);
        };
        let url = said["url"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        server.address = address.parse().with_context(|| format!("`{url}` has no address"))?;
        Ok(server)
    }
}

/// Ends the processes of the folder. Servers were killed when they were dropped.
impl Drop for Home {
    fn drop(&mut self) {
        let _ = end_jobs(&self.data);
    }
}

/// A running server, killed with `kill -9` on drop.
#[derive(Debug)]
pub(super) struct Server<'h> {
    child: Child,
    pub(super) address: SocketAddr,
    home: &'h Home,
}

impl Server<'_> {
    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Kills the server with `kill -9` and waits for its exit.
    pub(super) fn kill(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server exited on its own, {status}; see {}", self.home.log.display());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server<'_> {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends the commands that servers left, with their supervisors. Their data folder is `folder`, or
/// below it.
pub(crate) fn end_jobs(folder: &Path) -> Result<()> {
    let ours = folder.as_os_str().as_encoded_bytes();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let command = fs::read(path.join("cmdline")).unwrap_or_default();
        let is_supervisor = contains(&command, b"\0__supervise") && contains(&command, ours);
        if let Some(id) = path.file_name().filter(|_| is_supervisor) {
            // The supervisor may have exited meanwhile.
            let _ = Command::new("kill").arg(id).stderr(Stdio::null()).status();
        }
    }
    Ok(())
}

/// Returns the resident memory of a process in bytes.
pub(crate) fn resident(process: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    Ok(kib.context("the process has no resident memory")?.parse::<u64>()? * 1024)
}

/// Writes a file that only its owner reads.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut options = OpenOptions::new();
    let mut file: File = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
