//! A PostgreSQL server that ends with its parent process.

use std::env;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::Programs;
use xtask::{
    args::Args,
    process::{self, Build},
};

/// The variable with the address of the database for tests.
const ADDRESS: &str = "OUTLIVE_TEST_POSTGRES";

/// PostgreSQL refuses to run as root, so it runs as user 65534.
const NOBODY: u32 = 65534;

/// Maximum time to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Starts a server for the command after `--`, with the address in its environment. Without a
/// command, prints the address and waits for the end of standard input.
pub(crate) fn run(mut args: Args) -> Result<()> {
    let command = args.command();
    let wheel = args.flag("--wheel");
    let may_skip = args.flag("--or-skip");
    // The option selected the build of this program and has no further effect.
    let _ = Build::wanted(&mut args);
    args.finish()?;
    let programs = match if wheel { Programs::packaged() } else { Programs::find() } {
        Err(error) if may_skip => {
            eprintln!("NOT RUN, and not counted as a failure: {error:#}");
            return Ok(());
        }
        found => found?,
    };
    let postgres = Postgres::start(&programs)?;
    if let Some([program, words @ ..]) = command.as_deref() {
        eprintln!("with {}", programs.version());
        return process::run(Command::new(program).args(words).env(ADDRESS, postgres.url()));
    }
    eprintln!("{} is ready; stop it with Ctrl-C or the end of standard input", programs.version());
    println!("{ADDRESS}={}", postgres.url());
    // Ctrl-C ends this process; the keeper then stops the server.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    Ok(())
}

/// A running server. It ends with this value or this process, however the process ends.
#[derive(Debug)]
pub(crate) struct Postgres {
    bin: PathBuf,
    folder: PathBuf,
    server: Child,
    keeper: Keeper,
}

impl Postgres {
    /// Creates a new database and starts the server.
    pub(crate) fn start(programs: &Programs) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // The path of a socket has a length limit.
        let name = format!("outlive-pg-{}-{number}", std::process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir(&folder)
            .with_context(|| format!("could not create the folder {}", folder.display()))?;
        give_away(&folder)?;
        let keeper = Keeper::start(&folder)?;
        let bin = programs.unpacked(&folder)?;
        let mut postgres = Self::start_in(&bin, &folder, keeper)?;
        if let Err(error) = postgres.wait_until_ready() {
            bail!("{error}; its output:\n{}", said(&folder));
        }
        Ok(postgres)
    }

    fn start_in(bin: &Path, folder: &Path, mut keeper: Keeper) -> Result<Self> {
        let mut initdb = as_nobody(&bin.join("initdb"), folder);
        initdb.args(["--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8"]);
        let made = initdb.args(["--locale=C", "--pgdata=data"]).output().context("no initdb")?;
        if !made.status.success() {
            bail!("initdb failed:\n{}", String::from_utf8_lossy(&made.stderr));
        }
        // One user has a password, for the tests of wrong passwords.
        let rules = folder.join("data/pg_hba.conf");
        let trusted = fs::read_to_string(&rules)?;
        fs::write(&rules, format!("local all outlive_with_password scram-sha-256\n{trusted}"))?;
        let server = launch(bin, folder)?;
        keeper.watch(server.id())?;
        Ok(Self { bin: bin.to_owned(), folder: folder.to_owned(), server, keeper })
    }

    /// Kills the server as a crash would, without a shutdown.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.server.kill()?;
        self.server.wait()?;
        Ok(())
    }

    /// Restarts a killed server on its data.
    pub(crate) fn restart(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            self.server = launch(&self.bin, &self.folder)?;
            self.keeper.watch(self.server.id())?;
            match self.wait_until_ready() {
                Ok(()) => return Ok(()),
                // The remaining backends notice late that the server is gone, and block its start.
                Err(_) if begun.elapsed() < PATIENCE => thread::sleep(PAUSE),
                Err(error) => bail!("{error}; its output:\n{}", said(&self.folder)),
            }
        }
    }

    /// The URL for `tokio-postgres` and `psql`.
    pub(crate) fn url(&self) -> String {
        let folder = self.folder.to_string_lossy().replace('%', "%25").replace('/', "%2F");
        format!("postgres://postgres@{folder}/postgres")
    }

    /// The process ID of the postmaster.
    pub(crate) fn id(&self) -> u32 {
        self.server.id()
    }

    /// The output of the server.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// The folder of the tables, without the write-ahead log.
    pub(crate) fn tables(&self) -> PathBuf {
        self.folder.join("data/base")
    }

    /// Waits for the ready line in `postmaster.pid`.
    fn wait_until_ready(&mut self) -> Result<()> {
        let state = self.folder.join("data/postmaster.pid");
        let id = self.server.id().to_string();
        let begun = Instant::now();
        loop {
            let lines = fs::read_to_string(&state).unwrap_or_default();
            // A killed server leaves its file behind.
            let is_ours = lines.lines().next() == Some(&id);
            if is_ours && lines.lines().any(|line| line.trim_end() == "ready") {
                return Ok(());
            }
            if let Some(status) = self.server.try_wait()? {
                bail!("postgres exited before it was ready: {status}");
            }
            if begun.elapsed() > PATIENCE {
                bail!("postgres is not ready after {} s", PATIENCE.as_secs());
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Disconnects all clients without a checkpoint.
        signal("QUIT", self.server.id());
        let begun = Instant::now();
        while matches!(self.server.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
            thread::sleep(PAUSE);
        }
        let _ = self.server.kill();
        // A child process stays a zombie until it is waited for.
        let _ = self.server.wait();
        self.keeper.end();
    }
}

/// A helper that stops the server and removes its folder when this process ends. It notices the end
/// of its standard input.
#[derive(Debug)]
struct Keeper {
    child: Child,
    input: Option<ChildStdin>,
}

impl Keeper {
    fn start(folder: &Path) -> Result<Self> {
        let keep = "trap '' INT TERM HUP
             pid=; while read -r line; do pid=$line; done
             if [ -n \"$pid\" ]; then
                 kill -QUIT \"$pid\" 2>/dev/null
                 for _ in 1 2 3 4 5 6 7 8 9 10; do
                     kill -0 \"$pid\" 2>/dev/null || break; sleep 1
                 done
             fi
             rm -rf \"$1\"";
        let mut keeper = Command::new("sh");
        keeper.args(["-c", keep, "sh"]).arg(folder).stdin(Stdio::piped());
        let mut child = keeper.stdout(Stdio::null()).spawn().context("could not start sh")?;
        let input = child.stdin.take();
        Ok(Self { child, input })
    }

    /// Makes the helper responsible for this process.
    fn watch(&mut self, pid: u32) -> Result<()> {
        use std::io::Write;
        let input = self.input.as_mut().context("the keeper has exited")?;
        writeln!(input, "{pid}").context("the keeper has exited")
    }

    fn end(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

fn launch(bin: &Path, folder: &Path) -> Result<Child> {
    let log = File::options().create(true).append(true).open(folder.join("log"))?;
    let mut server = as_nobody(&bin.join("postgres"), folder);
    server
        .args(["-D", "data", "-c", "listen_addresses=", "-c", "max_connections=300"])
        .arg("-c")
        .arg(format!("unix_socket_directories={}", folder.display()))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log);
    server.spawn().context("could not start postgres")
}

/// A command in the folder, as a user who may run PostgreSQL.
fn as_nobody(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env_remove("PGDATA").env("TZ", "UTC");
    #[cfg(unix)]
    if is_root() {
        use std::os::unix::process::CommandExt;
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// Changes the owner of a folder to the database user.
fn give_away(folder: &Path) -> Result<()> {
    #[cfg(unix)]
    if is_root() {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY))?;
    }
    #[cfg(unix)]
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Whether this process runs as root.
#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
        || env::var_os("USER").is_some_and(|user| user == "root")
}

fn signal(name: &str, pid: u32) {
    let _ = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
}

fn said(folder: &Path) -> String {
    let said = fs::read_to_string(folder.join("log")).unwrap_or_default();
    if said.is_empty() { "nothing".to_owned() } else { said.trim_end().to_owned() }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixStream, thread, time::Duration};

    use super::{Postgres, Programs};

    #[test]
    fn postgres_runs_until_dropped() {
        let mut postgres = Postgres::start(&Programs::find().unwrap()).unwrap();
        let (folder, socket) = (postgres.folder.clone(), postgres.folder.join(".s.PGSQL.5432"));
        assert!(UnixStream::connect(&socket).is_ok());
        assert!(postgres.url().starts_with("postgres://postgres@%2F"));
        postgres.kill().unwrap();
        // A backend that is just starting may hold the socket a moment longer.
        while UnixStream::connect(&socket).is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
        postgres.restart().unwrap();
        assert!(UnixStream::connect(&socket).is_ok());
        drop(postgres);
        assert!(UnixStream::connect(&socket).is_err());
        assert!(!folder.exists());
    }
}
