//! Server processes on the server's core, and measured client processes on the other core. They end
//! with this process.

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
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    machine::{Cores, children_of, pin},
    place::Place,
};

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// The output of a listening server.
    said: Option<BufReader<ChildStdout>>,
    /// The files of a server that leads a process group; removed with the whole group.
    folder: Option<PathBuf>,
}

impl Server {
    /// Starts one of our servers that listens.
    pub(crate) fn listening(name: &str, cores: Cores) -> Result<(Self, SocketAddr)> {
        let program = std::env::current_exe().context("could not find this program")?;
        let (server, address, _) = Self::start_listening(&program, &["serve", name], cores)?;
        Ok((server, address))
    }

    /// Starts one of our servers that listens and prints additional data for its callers.
    pub(crate) fn telling(name: &str, cores: Cores) -> Result<(Self, SocketAddr, String)> {
        let program = std::env::current_exe().context("could not find this program")?;
        Self::start_listening(&program, &["serve", name], cores)
    }

    /// Starts one of our servers that listens and stores tasks at `place`.
    pub(crate) fn keeping(name: &str, place: &Place, cores: Cores) -> Result<(Self, SocketAddr)> {
        let program = std::env::current_exe().context("could not find this program")?;
        let words = ["serve", name, place.as_str()];
        let (server, address, _) = Self::start_listening(&program, &words, cores)?;
        Ok((server, address))
    }

    /// Starts one of our servers that listens, with a count as argument.
    pub(crate) fn counting(name: &str, count: usize, cores: Cores) -> Result<(Self, SocketAddr)> {
        let program = std::env::current_exe().context("could not find this program")?;
        let words = ["serve", name, &count.to_string()];
        let (server, address, _) = Self::start_listening(&program, &words, cores)?;
        Ok((server, address))
    }

    /// Number of SQLite statements of the server so far.
    pub(crate) fn statements(&mut self) -> Result<u64> {
        self.told("statements")
    }

    /// A counter of the server, by name.
    pub(crate) fn told(&mut self, name: &str) -> Result<u64> {
        let stdin = self.child.stdin.as_mut().context("the server has no standard input")?;
        stdin.write_all(format!("{name}\n").as_bytes())?;
        let said = self.said.as_mut().context("the server has no standard output")?;
        let mut line = String::new();
        said.read_line(&mut line)?;
        let count = line.trim().strip_prefix(name).and_then(|count| count.trim().parse().ok());
        count.with_context(|| format!("the server printed `{}` instead of a number", line.trim()))
    }

    /// Starts one of our servers on stdio.
    pub(crate) fn piped(name: &str, cores: Cores) -> Result<(Self, ChildStdin, ChildStdout)> {
        Self::piped_with(&["serve", name], cores)
    }

    fn piped_with(words: &[&str], cores: Cores) -> Result<(Self, ChildStdin, ChildStdout)> {
        let program = std::env::current_exe().context("could not find this program")?;
        let mut server = Self::start(&program, words, cores)?;
        match (server.child.stdin.take(), server.child.stdout.take()) {
            (Some(stdin), Some(stdout)) => Ok((server, stdin, stdout)),
            _ => bail!("the server has no standard streams"),
        }
    }

    /// Wraps a process that was started elsewhere.
    pub(crate) fn from_child(child: Child) -> Self {
        Self { child, said: None, folder: None }
    }

    /// Wraps a process that leads a process group, and its folder.
    pub(crate) fn with_group(child: Child, folder: PathBuf) -> Self {
        Self { child, said: None, folder: Some(folder) }
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Starts one of our servers on stdio, with a count as argument.
    pub(crate) fn piped_counting(
        name: &str,
        count: usize,
        cores: Cores,
    ) -> Result<(Self, ChildStdin, ChildStdout)> {
        Self::piped_with(&["serve", name, &count.to_string()], cores)
    }

    /// Keeps the standard input of a server open as long as this value lives.
    pub(crate) fn keep_open(&mut self, stdin: ChildStdin) {
        self.child.stdin = Some(stdin);
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts a server and waits for the line with its port. Returns the rest of the line.
    pub(crate) fn start_listening(
        program: &Path,
        args: &[&str],
        cores: Cores,
    ) -> Result<(Self, SocketAddr, String)> {
        let mut server = Self::start(program, args, cores)?;
        let stdout = server.child.stdout.take().context("the server has no standard output")?;
        let mut line = String::new();
        let mut said = BufReader::new(stdout);
        said.read_line(&mut line)?;
        server.said = Some(said);
        let words = line.trim().strip_prefix("listening ");
        let (port, note) = words.map(|words| words.split_once(' ').unwrap_or((words, ""))).unzip();
        let port = port.and_then(|port| port.parse::<u16>().ok());
        let port = port
            .with_context(|| format!("the server printed `{}` instead of its port", line.trim()))?;
        let note = note.unwrap_or_default().to_owned();
        Ok((server, SocketAddr::from(([127, 0, 0, 1], port)), note))
    }

    fn start(program: &Path, args: &[&str], cores: Cores) -> Result<Self> {
        // A process inherits the cores of its parent, so it never runs on another core.
        pin(cores.server)?;
        let child =
            Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        pin(cores.generator)?;
        let child = child.with_context(|| format!("could not start {}", program.display()))?;
        Ok(Self::from_child(child))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.folder.is_some() {
            let _ = kill_group(self.pid());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Kills all processes of a group.
fn kill_group(leader: u32) -> Result<()> {
    let leader = Pid::from_raw(i32::try_from(leader)?).context("no process has the ID 0")?;
    Ok(kill_process_group(leader, Signal::KILL)?)
}

/// A running client that calls on request.
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
            bail!("the client printed `{line}` instead of `ready`");
        }
        Ok(caller)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the client call for `time` and returns the number of responses.
    pub(crate) fn call(&mut self, time: Duration) -> Result<u64> {
        writeln!(self.stdin, "{}", time.as_millis())?;
        let line = self.line()?;
        line.parse().with_context(|| format!("the client printed `{line}` instead of a number"))
    }

    /// The server that the client started.
    pub(crate) fn only_child(&self) -> Result<u32> {
        let children = children_of(self.pid())?;
        match children[..] {
            [child] => Ok(child),
            _ => bail!("the client started {} programs instead of one", children.len()),
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
