//! The program `outlive`, beside this program, in front of upstreams.

use std::{
    env,
    fs::{self, File},
    io::{BufRead, BufReader},
    net::SocketAddr,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{
    child::Server,
    machine::{Cores, pin},
};

/// A running `outlive serve` on the server's core, with its files.
#[derive(Debug)]
pub(crate) struct Gateway {
    // Dropped first: it writes to the folder.
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    /// Time from the start of the process until it listens.
    pub(crate) listening_after: Duration,
    folder: TempFolder,
}

/// `outlive serve --stdio` on the server's core.
#[derive(Debug)]
pub(crate) struct StdioGateway {
    pub(crate) server: Server,
    _folder: TempFolder,
}

impl Gateway {
    /// Starts the program with the text of an `outlive.toml`, and waits until it listens.
    pub(crate) fn start(file: &str, cores: Cores) -> Result<Self> {
        let folder = TempFolder::new()?;
        let text = format!("[server]\nlisten = \"127.0.0.1:0\"\n{file}");
        let mut command = folder.serve(&text)?;
        command.arg("--json").stdin(Stdio::null());
        let begun = Instant::now();
        let mut child = spawn(&mut command, cores)?;
        let stdout = child.stdout.take().context("the program has no standard output")?;
        let server = Server::from_child(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let listening_after = begun.elapsed();
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            bail!("the program did not start; its output:\n{}", folder.log()?);
        };
        let url = said["url"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let address = address.parse().with_context(|| format!("`{url}` has no address"))?;
        Ok(Self { server, address, listening_after, folder })
    }

    /// The supervisors of its upstream processes.
    pub(crate) fn supervisors(&self) -> Result<Vec<u32>> {
        let ours = self.folder.0.as_os_str().as_encoded_bytes();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let path = entry?.path();
            let words = fs::read(path.join("cmdline")).unwrap_or_default();
            let has = |part: &[u8]| memchr::memmem::find(&words, part).is_some();
            if has(b"\0__supervise") && has(ours) {
                let id = path.file_name().and_then(|name| name.to_str());
                found.extend(id.and_then(|id| id.parse::<u32>().ok()));
            }
        }
        Ok(found)
    }
}

impl StdioGateway {
    /// Starts the program on standard input and output.
    pub(crate) fn start(file: &str, cores: Cores) -> Result<(Self, ChildStdin, ChildStdout)> {
        let folder = TempFolder::new()?;
        let mut command = folder.serve(file)?;
        command.arg("--stdio").stdin(Stdio::piped());
        let mut child = spawn(&mut command, cores)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the program has no standard streams");
        };
        let gateway = Self { server: Server::from_child(child), _folder: folder };
        Ok((gateway, stdin, stdout))
    }
}

/// Starts a command on the server's core.
pub(crate) fn spawn(command: &mut Command, cores: Cores) -> Result<Child> {
    pin(cores.server)?;
    let child = command.stdout(Stdio::piped()).spawn();
    pin(cores.generator)?;
    child.with_context(|| format!("could not start {}", command.get_program().display()))
}

/// Returns the program that `cargo xtask bench` builds.
fn program() -> Result<PathBuf> {
    let program = env::current_exe()?.with_file_name("outlive");
    ensure!(program.exists(), "{} is missing; `cargo xtask bench` builds it", program.display());
    Ok(program)
}

/// Returns a word of this program for an array in TOML.
pub(crate) fn upstream_command(words: &[&str]) -> Result<String> {
    let program = env::current_exe().context("could not find this program")?;
    let program = program.to_str().context("the path of this program is not UTF-8")?;
    let words: Vec<&str> = [program, "serve"].into_iter().chain(words.iter().copied()).collect();
    Ok(serde_json::to_string(&words)?)
}

/// A new folder with the files of one process, removed on drop.
#[derive(Debug)]
struct TempFolder(PathBuf);

impl TempFolder {
    fn new() -> Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlive-bench-gateway-{}-{number}", std::process::id());
        let folder = Self(env::temp_dir().join(name));
        fs::create_dir_all(folder.data())?;
        fs::set_permissions(folder.data(), fs::Permissions::from_mode(0o700))?;
        Ok(folder)
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.path("log"))?)
    }

    /// Writes the file, and returns the command that serves it.
    fn serve(&self, text: &str) -> Result<Command> {
        let file = self.path("outlive.toml");
        write_private(&file, text)?;
        let mut command = Command::new(program()?);
        command.arg("serve").arg(file).arg("--data-dir").arg(self.data());
        command.stderr(File::create(self.path("log"))?);
        Ok(command)
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes a file that only its owner reads.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    Ok(std::io::Write::write_all(&mut file, text.as_bytes())?)
}
