//! `outlive serve` in front of upstreams: its folder, and its process.
//!
//! The folder has `outlive.toml`, the data folder and the log. It survives the process, so a
//! gateway can be killed and started again at the same address.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::hosts::home::end_jobs;

/// A gateway. Dropping it kills its process with `kill -9`.
#[derive(Debug)]
pub(crate) struct GatewayProcess {
    program: PathBuf,
    folder: PathBuf,
    env: Vec<(String, OsString)>,
    address: SocketAddr,
    child: Child,
}

impl GatewayProcess {
    /// Writes `outlive.toml` into a folder, which is created if it does not exist, and starts
    /// `outlive serve` there on a free port. Returns when it listens.
    pub(crate) fn start(program: &Path, folder: &Path, config: &str) -> Result<Self> {
        Self::start_with(program, folder, config, Vec::new())
    }

    /// As [`GatewayProcess::start`], with further environment variables.
    pub(crate) fn start_with(
        program: &Path,
        folder: &Path,
        config: &str,
        env: Vec<(String, OsString)>,
    ) -> Result<Self> {
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        fs::write(folder.join("outlive.toml"), config)?;
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        let (child, address) = serve(program, folder, &env, free)?;
        Ok(Self { program: program.to_owned(), folder: folder.to_owned(), env, address, child })
    }

    /// The URL of its MCP endpoint.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The address on which it listens, also after a restart.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills the process with `kill -9` and waits for its exit.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the gateway exited on its own, {status}; its log:\n{}", self.log());
        }
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Starts the process again at the same address, with the same files.
    pub(crate) fn restart(&mut self) -> Result<()> {
        let (child, _) = serve(&self.program, &self.folder, &self.env, self.address)?;
        self.child = child;
        Ok(())
    }

    /// Stops the process with SIGTERM, and asserts its success.
    pub(crate) fn stop(mut self) -> Result<()> {
        let id = self.child.id().to_string();
        ensure!(Command::new("kill").arg(id).status()?.success(), "the gateway is not running");
        let status = self.child.wait()?;
        ensure!(status.success(), "the gateway stopped with {status}; its log:\n{}", self.log());
        Ok(())
    }

    /// The status of its upstreams, as `outlive upstreams --json` prints it.
    pub(crate) fn status(&self) -> Result<Value> {
        let mut program = Command::new(&self.program);
        program.args(["upstreams", "outlive.toml", "--json", "--data-dir"]).arg("data");
        // Exits with 1 if an upstream does not work, which is a status too.
        let output = program.current_dir(&self.folder).output()?;
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("no status: {}", String::from_utf8_lossy(&output.stderr)))
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("server.log")).unwrap_or_default()
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = end_jobs(&self.folder.join("data"));
    }
}

/// Starts the process, and returns the address on which it listens.
fn serve(
    program: &Path,
    folder: &Path,
    env: &[(String, OsString)],
    address: SocketAddr,
) -> Result<(Child, SocketAddr)> {
    let log = folder.join("server.log");
    let mut command = Command::new(program);
    command.args(["serve", "outlive.toml", "--json", "--listen"]).arg(address.to_string());
    command.arg("--data-dir").arg(folder.join("data")).current_dir(folder);
    command.envs(env.iter().cloned());
    let stderr = OpenOptions::new().append(true).create(true).open(&log)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr);
    let mut child =
        command.spawn().with_context(|| format!("could not start {}", program.display()))?;
    let stdout = child.stdout.take().context("the gateway has a standard output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let Ok(started) = serde_json::from_str::<Value>(&line) else {
        let _ = child.kill();
        let _ = child.wait();
        bail!("the gateway did not start; its output:\n{}", fs::read_to_string(&log)?);
    };
    let url = started["url"].as_str().unwrap_or_default();
    let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
    let address = address.parse().with_context(|| format!("`{url}` has no address"))?;
    Ok((child, address))
}
