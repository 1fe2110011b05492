//! The servers of a campaign: start, kill, freeze and restart. Dropping the fleet kills them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::oracle::Oracle;

/// Maximum time until a server listens or exits.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum time of repeated start attempts. The database may be down, and recover slowly on a busy
/// disk.
const PERSISTENCE: Duration = Duration::from_secs(60);

/// Settings of every server.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) store: String,
    pub(crate) lease: Duration,
    /// Additional arguments.
    pub(crate) more: &'static [&'static str],
}

/// Several servers on one store.
#[derive(Debug)]
pub(crate) struct Fleet {
    setting: Setting,
    oracle: Oracle,
    replicas: Vec<Mutex<Replica>>,
    /// The addresses that clients know. An address may be outdated by a moment.
    addresses: Vec<Mutex<Option<SocketAddr>>>,
}

#[derive(Debug, Default)]
struct Replica {
    starts: u32,
    running: Option<(Child, String)>,
    /// Thaws the server if this process is killed.
    thaws: Option<Reaped>,
}

impl Fleet {
    /// Starts `replicas` servers.
    pub(crate) fn start(setting: Setting, replicas: usize) -> Result<Self> {
        let fleet = Self {
            oracle: Oracle::open(setting.folder.join("oracle"))?,
            setting,
            replicas: (0..replicas).map(|_| Mutex::default()).collect(),
            addresses: (0..replicas).map(|_| Mutex::default()).collect(),
        };
        for number in 0..replicas {
            fleet.start_one(number)?;
        }
        Ok(fleet)
    }

    pub(crate) fn oracle(&self) -> &Oracle {
        &self.oracle
    }

    pub(crate) fn lease(&self) -> Duration {
        self.setting.lease
    }

    pub(crate) fn len(&self) -> usize {
        self.replicas.len()
    }

    /// Returns the address of a server if it is running.
    pub(crate) fn address(&self, number: usize) -> Option<SocketAddr> {
        *lock(&self.addresses[number])
    }

    /// Returns the number of the server whose process has this name.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.replicas.iter().position(|replica| {
            lock(replica).running.as_ref().is_some_and(|(_, running)| running == name)
        })
    }

    /// Starts a server that is down. Retries, because its database may be down too.
    pub(crate) fn start_one(&self, number: usize) -> Result<()> {
        let mut replica = lock(&self.replicas[number]);
        let begun = Instant::now();
        loop {
            replica.starts += 1;
            // Each process has its own name, which identifies its lines in the oracle.
            let name = format!("{number}.{}", replica.starts);
            let log = self.setting.folder.join(format!("server-{name}.log"));
            match self.spawn(&name, &log) {
                Ok((child, address)) => {
                    replica.running = Some((child, name));
                    *lock(&self.addresses[number]) = Some(address);
                    return Ok(());
                }
                Err(error) if begun.elapsed() > PERSISTENCE => {
                    return Err(error.context(format!("see {}", log.display())));
                }
                Err(_) => thread::sleep(Duration::from_millis(100)),
            }
        }
    }

    /// Kills a server with `kill -9` and returns the name of the process. The server stays down.
    pub(crate) fn kill(&self, number: usize) -> Result<String> {
        self.end(number, "kill", |child| Ok(child.kill()?))
    }

    /// Terminates a server, waits for its exit, and starts a new process.
    pub(crate) fn restart(&self, number: usize) -> Result<()> {
        self.end(number, "restart", |child| signal("TERM", child))?;
        self.start_one(number)
    }

    /// Freezes a server.
    pub(crate) fn freeze(&self, number: usize) -> Result<()> {
        let mut replica = lock(&self.replicas[number]);
        let (child, name) = replica.running.as_ref().context("the server is already down")?;
        let thaws = thaw_later(child)?;
        self.oracle.fault("freeze", name)?;
        signal("STOP", child)?;
        replica.thaws = Some(thaws);
        Ok(())
    }

    /// Thaws a server.
    pub(crate) fn thaw(&self, number: usize) -> Result<()> {
        let mut replica = lock(&self.replicas[number]);
        let (child, name) = replica.running.as_ref().context("the frozen server is gone")?;
        self.oracle.fault("thaw", name)?;
        signal("CONT", child)?;
        replica.thaws = None;
        Ok(())
    }

    fn end(
        &self,
        number: usize,
        kind: &str,
        how: impl FnOnce(&mut Child) -> Result<()>,
    ) -> Result<String> {
        let mut replica = lock(&self.replicas[number]);
        let (mut child, name) = replica.running.take().context("the server is already down")?;
        if let Some(status) = child.try_wait()? {
            let log = self.setting.folder.join(format!("server-{name}.log"));
            bail!("server {name} had exited on its own, {status}; see {}", log.display());
        }
        self.oracle.fault(kind, &name)?;
        how(&mut child)?;
        // New connections are refused, and clients try another server.
        wait(&mut child).with_context(|| format!("server {name} does not exit"))?;
        *lock(&self.addresses[number]) = None;
        Ok(name)
    }

    fn spawn(&self, name: &str, log: &Path) -> Result<(Child, SocketAddr)> {
        let setting = &self.setting;
        let mut command = Command::new(&setting.program);
        command.arg(&setting.store).arg(self.oracle.path()).arg(name);
        command.arg(setting.lease.as_millis().to_string()).args(setting.more);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(log)?);
        let child = command
            .spawn()
            .with_context(|| format!("could not start {}", setting.program.display()))?;
        let mut child = Reaped::new(child);
        let address = address(child.get())?;
        Ok((child.keep(), address))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for replica in &self.replicas {
            if let Some((child, _)) = lock(replica).running.take() {
                drop(Reaped(Some(child)));
            }
        }
    }
}

/// A process that is killed on drop, unless `keep` is called.
#[derive(Debug)]
pub(crate) struct Reaped(Option<Child>);

impl Reaped {
    pub(crate) fn new(child: Child) -> Self {
        Self(Some(child))
    }

    /// Kills the process with `kill -9`. Returns whether it was still running.
    pub(crate) fn kill(mut self) -> Result<bool> {
        let is_there = self.get().try_wait()?.is_none();
        self.get().kill()?;
        self.get().wait()?;
        Ok(is_there)
    }

    /// Waits until the process exits.
    pub(crate) fn wait(mut self) -> Result<ExitStatus> {
        wait(self.get())
    }

    fn get(&mut self) -> &mut Child {
        self.0.as_mut().expect("the process is taken only once")
    }

    fn keep(mut self) -> Child {
        self.0.take().expect("the process is taken only once")
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // The process may have exited already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads the address of a server from its output.
fn address(child: &mut Child) -> Result<SocketAddr> {
    let stdout = child.stdout.take().context("the server has no standard output")?;
    let (say, hear) = mpsc::sync_channel(1);
    // A thread, because reading a pipe has no timeout.
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = say.send(line);
    });
    let line = hear.recv_timeout(PATIENCE).context("the server did not print its address")?;
    line.trim()
        .parse()
        .with_context(|| format!("the server printed `{}` instead of an address", line.trim()))
}

/// Thaws a server after ten seconds. Servers exit with their standard input, so none survives this
/// process, but a frozen server cannot exit. The helper has its own process group, which Ctrl-C
/// does not reach.
fn thaw_later(child: &Child) -> Result<Reaped> {
    let mut later = Command::new("sh");
    later.args(["-c", "sleep 10; kill -CONT $0"]).arg(child.id().to_string());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut later, 0);
    Ok(Reaped(Some(later.spawn().context("could not start `sh`")?)))
}

fn signal(name: &str, child: &Child) -> Result<()> {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    if !status.context("could not start `kill`")?.success() {
        bail!("`kill -{name}` failed");
    }
    Ok(())
}

fn wait(child: &mut Child) -> Result<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if begun.elapsed() > PATIENCE {
            bail!("the process is still running after {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// A poisoned lock is usable: no value here is left inconsistent by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
