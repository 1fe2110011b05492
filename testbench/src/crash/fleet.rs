//! The servers: started, killed, frozen and started again, and gone when this value is.

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

/// How long a server may take until it listens, or until it has ended by itself.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long it is started again and again. Its database may be down, and on a busy disk for long.
const PERSISTENCE: Duration = Duration::from_secs(60);

/// What every server is started with.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) program: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) store: String,
    pub(crate) lease: Duration,
    /// What else it is told.
    pub(crate) more: &'static [&'static str],
}

/// Several servers on one store.
#[derive(Debug)]
pub(crate) struct Fleet {
    setting: Setting,
    oracle: Oracle,
    replicas: Vec<Mutex<Replica>>,
    /// What clients know: where somebody listens, or did a moment ago.
    addresses: Vec<Mutex<Option<SocketAddr>>>,
}

#[derive(Debug, Default)]
struct Replica {
    starts: u32,
    running: Option<(Child, String)>,
    /// Thaws it, should we be gone by then.
    thaws: Option<Reaped>,
}

impl Fleet {
    /// Starts so many servers.
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

    /// Where a server listens, if it is up.
    pub(crate) fn address(&self, number: usize) -> Option<SocketAddr> {
        *lock(&self.addresses[number])
    }

    /// Which server runs as a process of this name.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.replicas.iter().position(|replica| {
            lock(replica).running.as_ref().is_some_and(|(_, running)| running == name)
        })
    }

    /// Starts a server that is down. Tries again while it cannot: its database may be down too.
    pub(crate) fn start_one(&self, number: usize) -> Result<()> {
        let mut replica = lock(&self.replicas[number]);
        let begun = Instant::now();
        loop {
            replica.starts += 1;
            // Another name each time: what two processes write can be told apart.
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

    /// `kill -9`; returns the name of the process. It stays down.
    pub(crate) fn kill(&self, number: usize) -> Result<String> {
        self.end(number, "kill", |child| Ok(child.kill()?))
    }

    /// Asks a server to end, waits until it has, and starts another in its place.
    pub(crate) fn restart(&self, number: usize) -> Result<()> {
        self.end(number, "restart", |child| signal("TERM", child))?;
        self.start_one(number)
    }

    /// Makes a server stand still.
    pub(crate) fn freeze(&self, number: usize) -> Result<()> {
        let mut replica = lock(&self.replicas[number]);
        let (child, name) = replica.running.as_ref().context("the server is down already")?;
        let thaws = thaw_later(child)?;
        self.oracle.fault("freeze", name)?;
        signal("STOP", child)?;
        replica.thaws = Some(thaws);
        Ok(())
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self, number: usize) -> Result<()> {
        let mut replica = lock(&self.replicas[number]);
        let (child, name) = replica.running.as_ref().context("a frozen server is gone")?;
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
        let (mut child, name) = replica.running.take().context("the server is down already")?;
        if let Some(status) = child.try_wait()? {
            let log = self.setting.folder.join(format!("server-{name}.log"));
            bail!("server {name} had ended by itself, {status}; see {}", log.display());
        }
        self.oracle.fault(kind, &name)?;
        how(&mut child)?;
        // Clients that come now are refused, and know how to go to another one.
        wait(&mut child).with_context(|| format!("server {name} does not end"))?;
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

/// A process that is killed unless it is kept.
#[derive(Debug)]
pub(crate) struct Reaped(Option<Child>);

impl Reaped {
    pub(crate) fn new(child: Child) -> Self {
        Self(Some(child))
    }

    /// `kill -9`; whether there was somebody to kill.
    pub(crate) fn kill(mut self) -> Result<bool> {
        let is_there = self.get().try_wait()?.is_none();
        self.get().kill()?;
        self.get().wait()?;
        Ok(is_there)
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(mut self) -> Result<ExitStatus> {
        wait(self.get())
    }

    fn get(&mut self) -> &mut Child {
        self.0.as_mut().expect("it is taken once, at the end")
    }

    fn keep(mut self) -> Child {
        self.0.take().expect("it is taken once, at the end")
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended by itself; then there is nothing to kill.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads where a server listens.
fn address(child: &mut Child) -> Result<SocketAddr> {
    let stdout = child.stdout.take().context("the server has no standard output")?;
    let (say, hear) = mpsc::sync_channel(1);
    // A thread of its own, because a pipe cannot be read with patience.
    thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = say.send(line);
    });
    let line = hear.recv_timeout(PATIENCE).context("the server does not say where it listens")?;
    line.trim().parse().with_context(|| format!("the server said `{}`, no address", line.trim()))
}

/// Thaws a server after a while. Servers end when their standard input does, so none is left when
/// we are killed, but one that is frozen cannot. This is a process of its own, in a group of its
/// own, which Ctrl-C does not reach.
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
            bail!("it is still there after {} s", PATIENCE.as_secs());
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Nothing here is left half done by a panic: what was locked is a value of its own.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
