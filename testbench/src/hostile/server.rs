//! The server under attack: `outlive serve` on one core, and its resource usage.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::crash::database::Database;

/// The core of the server, the database and the honest caller. Attackers use the other one.
pub(super) const SERVER_CORE: &str = "1";
pub(super) const ATTACKER_CORE: &str = "0";
pub(super) const ALL_CORES: &str = "0-1";

/// Tokens of the two callers, if the server requires tokens.
pub(super) const HONEST_TOKEN: &str = "honest-caller-0123456789abcdef";
pub(super) const HOSTILE_TOKEN: &str = "hostile-caller-0123456789abcdef";

/// Maximum number of concurrent commands of all tools in [`TOOLS`].
pub(super) const MAX_PROCESSES: usize = 4 + 4 + 4 + 8 + 4 + 1 + 2;

const TOOLS: &str = r#"
[tools.echo]
description = "Prints a text."
command = ["echo", "{text}"]
arguments.text = { type = "string", default = "hello" }
max_concurrent = 4

[tools.print]
description = "Prints many bytes."
command = ["sh", "-c", 'head -c "$(($1 * 1024))" /dev/zero | tr "\0" x', "print", "{kib}"]
arguments.kib = { type = "integer", minimum = 1, maximum = 900 }
task = "never"
max_concurrent = 4

[tools.confirm]
description = "Waits for an input response."
shell = true
interactive = true
command = '''
echo '{"input": "go", "message": "Continue?"}' >&3
read -r response <&4
'''
max_concurrent = 4

[tools.slow]
description = "Takes its time."
command = ["sleep", "20"]
task = "always"
max_concurrent = 8

[tools.work]
description = "Works for a moment, as a task."
command = ["sleep", "0.2"]
task = "always"
arguments.text = { type = "string", default = "" }
max_concurrent = 4

# A tool that needs a whole core runs once at a time on the one core of this server.
[tools.report]
description = "Prints a report of almost 1 MiB."
shell = true
command = '''
printf '{"rows":[\n'
seq -f "{\"row\":%.0f,\"text\":\"report of $arg_owner with enough text for a line of a hundred bytes in all\"}," 0 10499
printf '{"row":10500}]}'
'''
arguments.owner = { type = "string" }
output = "json"
max_concurrent = 1

[tools.log]
description = "Prints a log of almost 1 MiB."
command = ["sh", "-c", 'yes "a line of the log of $1, which is about as long as a row of the report" | head -c 900000', "log", "{owner}"]
arguments.owner = { type = "string" }
max_concurrent = 2
"#;

/// A running server.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    data: PathBuf,
    log: PathBuf,
}

/// Memory of a process in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// All resident memory: private memory and mapped files.
    pub(super) resident: u64,
    /// The resident memory that no file backs.
    pub(super) anonymous: u64,
}

impl Memory {
    /// The larger value of each field.
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            resident: self.resident.max(other.resident),
            anonymous: self.anonymous.max(other.anonymous),
        }
    }

    /// The difference from `before`.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            resident: self.resident.saturating_sub(before.resident),
            anonymous: self.anonymous.saturating_sub(before.anonymous),
        }
    }
}

impl Server {
    /// Starts the server, with or without tokens.
    pub(super) fn start(
        program: &Path,
        folder: &Path,
        database: &Database,
        tokens: bool,
    ) -> Result<Self> {
        let config = folder.join("outlive.toml");
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        let mut text = String::from("[server]\nlisten = \"127.0.0.1:0\"\n");
        if tokens {
            let file = folder.join("tokens");
            write_private(&file, &format!("honest {HONEST_TOKEN}\nhostile {HOSTILE_TOKEN}\n"))?;
            text.push_str(&format!("token_file = {:?}\n", file.display().to_string()));
        }
        text.push_str(TOOLS);
        fs::write(&config, text)?;
        let log = folder.join("server.log");
        let mut command = pinned(SERVER_CORE, program);
        command.arg("serve").arg(&config).arg("--json").arg("--data-dir").arg(&data);
        command.arg("--store").arg(database.url());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(fs::File::create(&log)?);
        let mut child = command.spawn().context("could not start the server")?;
        let stdout = child.stdout.take().context("the server has a standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Ok(said) = serde_json::from_str::<Value>(&line) else {
            bail!("the server did not start; its output:\n{}", fs::read_to_string(&log)?);
        };
        let url = said["url"].as_str().unwrap_or_default();
        let address = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        Ok(Self { child, address: address.parse()?, data, log })
    }

    /// Current memory of the server.
    pub(super) fn memory(&self) -> Result<Memory> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let bytes = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib = line.and_then(|line| line.split_whitespace().next());
            let kib = kib.with_context(|| format!("the process has no {name}"))?.parse::<u64>()?;
            anyhow::Ok(kib * 1024)
        };
        Ok(Memory { resident: bytes("VmRSS:")?, anonymous: bytes("RssAnon:")? })
    }

    /// Number of jobs with a supervisor.
    pub(super) fn supervisors(&self) -> Result<usize> {
        let ours = self.data.as_os_str().as_encoded_bytes();
        let mut count = 0;
        for entry in fs::read_dir("/proc")? {
            let command = fs::read(entry?.path().join("cmdline")).unwrap_or_default();
            let is_supervisor = command.windows(12).any(|word| word == b"\0__supervise");
            count += usize::from(is_supervisor && contains(&command, ours));
        }
        Ok(count)
    }

    /// Size of the store in bytes.
    pub(super) fn store_bytes(&self, database: &Database) -> Result<u64> {
        match database {
            Database::Sqlite { url } => {
                let file = url.trim_start_matches("sqlite:");
                let size =
                    |suffix| fs::metadata(format!("{file}{suffix}")).map_or(0, |at| at.len());
                Ok(["", "-wal", "-shm"].into_iter().map(size).sum())
            }
            Database::Postgres(postgres) => folder_bytes(&postgres.tables()),
        }
    }

    /// Log lines about lost leases or failed heartbeats.
    pub(super) fn lease_warnings(&self) -> Result<Vec<String>> {
        let log = fs::read_to_string(&self.log)?;
        let tells = |line: &&str| {
            line.contains("could not be renewed") || line.contains("lease") && line.contains("lost")
        };
        Ok(log.lines().filter(tells).map(str::to_owned).collect())
    }

    /// Stops the server and all its processes.
    pub(super) fn stop(mut self) -> Result<()> {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let started = Instant::now();
        while self.child.try_wait()?.is_none() {
            if started.elapsed() > Duration::from_secs(20) {
                self.child.kill()?;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let folder = self.data.display().to_string();
        let _ =
            Command::new("pkill").args(["-KILL", "-f", &format!("__supervise {folder}")]).status();
        Ok(())
    }
}

/// A command pinned to one core, if the system supports it, and in its own session. Linux divides
/// processor time among sessions, and real attackers do not share the session of the service.
pub(super) fn pinned(core: &str, program: &Path) -> Command {
    let has_taskset = Command::new("taskset").arg("--version").output().is_ok();
    if !has_taskset {
        return Command::new(program);
    }
    let mut command = Command::new("setsid");
    command.args(["taskset", "-c", core]).arg(program);
    command
}

/// Moves a running process and its future children to these cores.
pub(super) fn move_to(cores: &str, process: u32) {
    let mut taskset = Command::new("taskset");
    // Without `taskset` nothing is pinned.
    let _ = taskset.args(["-cp", cores, &process.to_string()]).stdout(Stdio::null()).status();
}

fn write_private(file: &Path, text: &str) -> Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(file)?;
    Ok(std::io::Write::write_all(&mut file, text.as_bytes())?)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn folder_bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // The database creates and deletes files meanwhile.
        let Ok(metadata) = entry.metadata() else { continue };
        bytes += if metadata.is_dir() { folder_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
