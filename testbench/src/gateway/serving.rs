//! `outlive serve` in front of upstreams: its files, which survive the process, and its processes.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::setting::Setting;
use crate::hosts::home::{end_jobs, write_private};

/// The names and tokens of the principals.
pub(super) const PRINCIPALS: [(&str, &str); 3] = [
    ("ada", "ada-0123456789abcdef"),
    ("bob", "bob-0123456789abcdef"),
    ("eve", "eve-0123456789abcdef"),
];

/// The token of the first principal.
pub(super) const ADA: &str = PRINCIPALS[0].1;

/// A line of an upstream, so that its processes are found. [`FOLDER`] stands for the folder.
pub(super) const MARKED: &str = "env.CAMPAIGN = \"@FOLDER@\"";

/// The name of the folder of a gateway in its file.
pub(super) const FOLDER: &str = "@FOLDER@";

/// Time for a process to exit.
const EXIT: Duration = Duration::from_secs(20);

/// Configuration, data folder and log of a gateway.
#[derive(Debug)]
pub(super) struct Home {
    program: PathBuf,
    folder: PathBuf,
    store: Option<String>,
}

impl Home {
    /// Writes the files of a gateway. `file` is the text of its `outlive.toml`, without `[server]`;
    /// [`FOLDER`] in it stands for the folder of the gateway.
    pub(super) fn new(setting: &Setting, name: &str, file: &str) -> Result<Self> {
        let folder = setting.folder().join(name);
        let home = Self { program: setting.program().to_owned(), folder, store: None };
        fs::create_dir_all(home.data())?;
        fs::set_permissions(home.data(), fs::Permissions::from_mode(0o700))?;
        let tokens: Vec<String> =
            PRINCIPALS.iter().map(|(name, token)| format!("{name} {token}\n")).collect();
        write_private(&home.path("tokens"), &tokens.concat())?;
        home.write(file)?;
        Ok(home)
    }

    /// The same with a store that replicas share. Each replica has a separate data folder.
    pub(super) fn with_store(mut self, url: &str) -> Self {
        self.store = Some(url.to_owned());
        self
    }

    /// Writes the file, which a running server reloads.
    pub(super) fn write(&self, file: &str) -> Result<()> {
        let tokens = self.path("tokens");
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\n{}",
            tokens.display(),
            file.replace(FOLDER, &self.folder.display().to_string()),
        );
        // Renamed, so that the server never reads a part of it.
        let beside = self.path("outlive.toml.new");
        fs::write(&beside, text)?;
        Ok(fs::rename(beside, self.file())?)
    }

    pub(super) fn file(&self) -> PathBuf {
        self.path("outlive.toml")
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Starts a gateway on a free port and waits until it listens.
    pub(super) fn start(&self) -> Result<Gateway<'_>> {
        let log_path = self.path("server.log");
        let log = OpenOptions::new().append(true).create(true).open(&log_path)?;
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(self.file()).arg("--json").arg("--data-dir").arg(self.data());
        if let Some(store) = &self.store {
            command.arg("--store").arg(store);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().context("could not start the gateway")?;
        let stdout = child.stdout.take().context("the gateway has a standard output")?;
        let mut gateway = Gateway { child, address: SocketAddr::from(([0; 4], 0)), home: self };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            let log = fs::read_to_string(&log_path)?;
            bail!("the gateway did not start; its output:\n{log}");
        };
        let url = said["url"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        gateway.address = address.parse().with_context(|| format!("`{url}` has no address"))?;
        Ok(gateway)
    }

    /// Returns the status of an upstream, as the running gateway wrote it.
    pub(super) fn status(&self, upstream: &str) -> Result<Value> {
        let Ok(text) = fs::read_to_string(self.data().join("status.json")) else {
            return Ok(Value::Null);
        };
        let status: Value = serde_json::from_str(&text)?;
        let all = status["upstreams"].as_array().context("a status without upstreams")?;
        Ok(all.iter().find(|it| it["name"] == upstream).cloned().unwrap_or_default())
    }

    /// Runs a command of the program for this gateway, such as `upstreams restart NAME`.
    pub(super) fn outlive(&self, words: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(words).arg("--file").arg(self.file());
        command.arg("--data-dir").arg(self.data()).stdin(Stdio::null());
        let output = command.output().context("could not start the program")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`outlive {}` failed: {said}", words.join(" "));
        Ok(())
    }

    /// Returns the processes whose command line or environment names this folder, without gateways.
    pub(super) fn processes(&self) -> Result<Vec<u32>> {
        let ours = self.folder.as_os_str().as_encoded_bytes();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let path = entry?.path();
            let Some(id) = path.file_name().and_then(|id| id.to_str()?.parse().ok()) else {
                continue;
            };
            // A process may end meanwhile.
            let read = |name: &str| fs::read(path.join(name)).unwrap_or_default();
            let (words, variables) = (read("cmdline"), read("environ"));
            let is_gateway = contains(&words, b"\0serve\0");
            let names = |text: &[u8]| contains(text, ours);
            if !is_gateway && (names(&words) || names(&variables)) {
                found.push(id);
            }
        }
        Ok(found)
    }

    /// Waits until no process of this folder is left. Returns those that are.
    pub(super) fn wait_for_no_processes(&self, timeout: Duration) -> Result<Vec<u32>> {
        let end = Instant::now() + timeout;
        loop {
            let left = self.processes()?;
            if left.is_empty() || Instant::now() > end {
                return Ok(left);
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Ends the processes of the folder. Gateways were killed when they were dropped.
impl Drop for Home {
    fn drop(&mut self) {
        let _ = end_jobs(&self.data());
        for process in self.processes().unwrap_or_default() {
            let _ = signal("KILL", process);
        }
    }
}

/// A running gateway, killed with `kill -9` on drop.
#[derive(Debug)]
pub(super) struct Gateway<'h> {
    child: Child,
    pub(super) address: SocketAddr,
    home: &'h Home,
}

impl Gateway<'_> {
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the gateway with `kill -9` and waits for its exit.
    pub(super) fn kill(mut self) -> Result<()> {
        self.check()?;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Terminates the gateway and waits for its exit.
    pub(super) fn stop(mut self) -> Result<()> {
        self.check()?;
        signal("TERM", self.id())?;
        let started = Instant::now();
        while self.child.try_wait()?.is_none() {
            ensure!(started.elapsed() < EXIT, "the gateway does not exit");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Fails if the gateway has exited on its own.
    pub(super) fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let log = self.home.path("server.log");
            bail!("the gateway exited on its own, {status}; see {}", log.display());
        }
        Ok(())
    }
}

impl Drop for Gateway<'_> {
    fn drop(&mut self) {
        // The process may have exited already, or be frozen.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
pub(super) fn signal(name: &str, process: u32) -> Result<()> {
    let mut kill = Command::new("kill");
    let status = kill.args([&format!("-{name}"), &process.to_string()]).stderr(Stdio::null());
    ensure!(status.status()?.success(), "`kill -{name} {process}` failed");
    Ok(())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
