//! Servers are processes of their own, started on the server's core and ended with us; so are clients that
//! are measured, on the other core.

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{
    machine::{Cores, pin},
    place::Place,
};

/// A server at work.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// What one that listens says.
    said: Option<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts one of our own servers that listens.
    pub(crate) fn listening(name: &str, cores: Cores) -> Result<(Self, SocketAddr)> {
        let program = std::env::current_exe().context("could not find this program")?;
        Self::start_listening(&program, &["serve", name], cores)
    }

    /// Starts one of our own servers that listens and keeps tasks somewhere.
    pub(crate) fn keeping(name: &str, place: &Place, cores: Cores) -> Result<(Self, SocketAddr)> {
        let program = std::env::current_exe().context("could not find this program")?;
        Self::start_listening(&program, &["serve", name, place.as_str()], cores)
    }

    /// How many statements the server has made to SQLite by now.
    pub(crate) fn statements(&mut self) -> Result<u64> {
        self.told("statements")
    }

    /// What the server has counted by now, by the name it has there.
    pub(crate) fn told(&mut self, name: &str) -> Result<u64> {
        let stdin = self.child.stdin.as_mut().context("the server has no standard input")?;
        stdin.write_all(format!("{name}\n").as_bytes())?;
        let said = self.said.as_mut().context("the server has no standard output")?;
        let mut line = String::new();
        said.read_line(&mut line)?;
        let count = line.trim().strip_prefix(name).and_then(|count| count.trim().parse().ok());
        count.with_context(|| format!("the server said `{}` instead of a number", line.trim()))
    }

    /// Starts the peer, building it if need be.
    pub(crate) fn peer(cores: Cores) -> Result<(Self, SocketAddr)> {
        Self::start_listening(&build_peers()?.with_file_name("rmcp-bench-server"), &[], cores)
    }

    /// Starts one of our own servers that speaks on its standard streams.
    pub(crate) fn piped(name: &str, cores: Cores) -> Result<(Self, ChildStdin, ChildStdout)> {
        let program = std::env::current_exe().context("could not find this program")?;
        let mut server = Self::start(&program, &["serve", name], cores)?;
        match (server.child.stdin.take(), server.child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok((server, stdin, stdout)),
            _ => bail!("the server has no standard streams"),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn start_listening(program: &Path, args: &[&str], cores: Cores) -> Result<(Self, SocketAddr)> {
        let mut server = Self::start(program, args, cores)?;
        let stdout = server.child.stdout.take().context("the server has no standard output")?;
        let mut line = String::new();
        let mut said = BufReader::new(stdout);
        said.read_line(&mut line)?;
        server.said = Some(said);
        let port = line.trim().strip_prefix("listening ").and_then(|port| port.parse::<u16>().ok());
        let port =
            port.with_context(|| format!("the server said `{}` instead of its port", line.trim()))?;
        Ok((server, SocketAddr::from(([127, 0, 0, 1], port))))
    }

    fn start(program: &Path, args: &[&str], cores: Cores) -> Result<Self> {
        // A process begins on the cores of who starts it, so that it never runs anywhere else.
        pin(cores.server)?;
        let child =
            Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        pin(cores.generator)?;
        let child = child.with_context(|| format!("could not start {}", program.display()))?;
        Ok(Self { child, said: None })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client at work, which calls when it is told to.
#[derive(Debug)]
pub(crate) struct Caller {
    child: Child,
    stdin: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Caller {
    pub(crate) fn start(program: &Path, args: &[impl AsRef<OsStr>], cores: Cores) -> Result<Self> {
        pin(cores.generator)?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not start {}", program.display()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the client has no standard streams");
        };
        let mut caller = Self { child, stdin, said: BufReader::new(stdout) };
        let line = caller.line()?;
        if line != "ready" {
            bail!("the client said `{line}` instead of `ready`");
        }
        Ok(caller)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it call for a while; says how many calls were answered.
    pub(crate) fn call(&mut self, time: Duration) -> Result<u64> {
        writeln!(self.stdin, "{}", time.as_millis())?;
        let line = self.line()?;
        line.parse().with_context(|| format!("the client said `{line}` instead of a number"))
    }

    /// The server that it has started.
    pub(crate) fn only_child(&self) -> Result<u32> {
        let mut children = Vec::new();
        for thread in fs::read_dir(format!("/proc/{}/task", self.pid()))? {
            let text = fs::read_to_string(thread?.path().join("children"))?;
            children.extend(text.split_whitespace().flat_map(str::parse::<u32>));
        }
        match children[..] {
            [child] => Ok(child),
            _ => bail!("the client has started {} programs instead of one", children.len()),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.said.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the peers, outside of the project's own build, and says where one of them is.
pub(crate) fn build_peers() -> Result<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers/Cargo.toml");
    eprintln!("building the peers (rmcp 3.8.0); the first time this takes some minutes");
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "build",
            "--release",
            "--locked",
            "--bin",
            "rmcp-bench-server",
            "--bin",
            "rmcp-bench-client",
            "--message-format",
            "json-render-diagnostics",
            "--manifest-path",
        ])
        .arg(&manifest)
        .stderr(Stdio::inherit())
        .output()
        .context("could not run cargo")?;
    if !built.status.success() {
        bail!("the peers could not be built; `--no-peers` leaves them out");
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    let program = artifacts.filter_map(|artifact| artifact.executable).next_back();
    program.context("cargo does not say where the peers are")
}

/// The one thing that is of interest in what cargo says.
#[derive(serde::Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}
