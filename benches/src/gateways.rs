//! Third-party gateways: read from `gateways.toml`, installed before the measurement.
//!
//! As with peers, one that is not available is skipped with a message.

use std::{
    collections::BTreeMap,
    env, fs,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::{
    child::Server,
    machine::Cores,
    place, program,
    wanted::{Wanted, is_named, run},
};

/// Maximum time of a start.
const PATIENCE: Duration = Duration::from_secs(120);

/// A third-party gateway, ready to start.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gateway {
    name: String,
    version: String,
    config: String,
    folder: PathBuf,
    cache: Option<String>,
    install: Vec<Vec<String>>,
    installed_from: Option<String>,
    file: Option<String>,
    start: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    path: String,
    tool: String,
    pub(crate) client: Client,
    pub(crate) upstream: Upstream,
    /// Least ratio of its processor time to ours.
    pub(crate) times: Option<f64>,
    only_named: Option<String>,
    /// Values of the placeholders that do not depend on a start.
    #[serde(skip)]
    fill: Vec<(&'static str, String)>,
}

/// Connection between clients and a gateway.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Client {
    Modern,
    Legacy,
    Stdio,
}

/// Connection between a gateway and the measured server.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Upstream {
    Http,
    Stdio,
}

/// A running gateway.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) tool: String,
    /// Standard streams of a gateway whose clients use them.
    pub(crate) streams: Option<(ChildStdin, ChildStdout)>,
}

#[derive(Deserialize)]
struct Entries {
    gateway: Vec<Gateway>,
}

/// Returns the names of all entries.
pub(crate) fn names() -> Result<Vec<String>> {
    Ok(entries()?.into_iter().map(|gateway| gateway.name).collect())
}

/// Installs the selected gateways. Returns those that are available; `leave_out` gets the others.
pub(crate) fn prepare(
    wanted: &Wanted,
    leave_out: impl Fn(&str, &anyhow::Error),
) -> Result<Vec<Gateway>> {
    let mut ready = Vec::new();
    for mut gateway in entries()? {
        let named = match wanted {
            Wanted::None => continue,
            Wanted::All => false,
            Wanted::Named(names) if names.iter().any(|name| gateway.is(name)) => true,
            Wanted::Named(_) => continue,
        };
        let allowed = match (&gateway.only_named, named) {
            (Some(reason), false) => {
                let name = &gateway.name;
                Err(anyhow::anyhow!("{reason}; measure it with `--peers {name}`, if you may"))
            }
            _ => Ok(()),
        };
        match allowed.and_then(|()| gateway.install()) {
            Ok(()) => ready.push(gateway),
            Err(error) => leave_out(&gateway.label(), &error),
        }
    }
    Ok(ready)
}

fn entries() -> Result<Vec<Gateway>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("gateways.toml");
    let text =
        fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
    let Entries { gateway } = toml::from_str(&text).context("gateways.toml")?;
    Ok(gateway)
}

impl Gateway {
    /// The name in tables.
    pub(crate) fn label(&self) -> String {
        format!("{} {} ({})", self.name, self.version, self.config)
    }

    fn is(&self, name: &str) -> bool {
        is_named(&self.name, name)
    }

    /// Installs the packages, unless they are installed.
    fn install(&mut self) -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folder = root.canonicalize().context("the project folder is gone")?.join(&self.folder);
        let target = env::current_exe()?;
        let target = target.ancestors().nth(2).context("the path of this program has no folder")?;
        let cache = self.cache.clone().unwrap_or_else(|| self.name.replace(' ', "-"));
        let cache = target.join("bench-peers").join(cache);
        self.fill = vec![
            ("{folder}", folder.display().to_string()),
            ("{cache}", cache.display().to_string()),
        ];
        let from = self.installed_from.as_ref().map(|from| fs::read(folder.join(from)));
        let commands: Vec<Vec<String>> =
            self.install.iter().map(|words| filled(words, &self.fill)).collect();
        let wanted = match from.transpose().context("its list of packages is missing")? {
            Some(wanted) => wanted,
            None => format!("{commands:?}").into_bytes(),
        };
        let stamp = cache.with_extension("installed");
        if fs::read(&stamp).ok().as_ref() != Some(&wanted) {
            eprintln!("installing {} {}; the first time takes minutes", self.name, self.version);
            commands.iter().try_for_each(|command| run(command, &folder))?;
            fs::create_dir_all(target.join("bench-peers"))?;
            fs::write(&stamp, &wanted)?;
        }
        Ok(())
    }

    /// Starts the gateway in front of the server at `upstream`, or of a server on stdio.
    pub(crate) fn start(&self, upstream: &str, cores: Cores) -> Result<Running> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let data = data_folder()?;
        let mut fill = self.fill.clone();
        let program = env::current_exe().context("could not find this program")?;
        fill.extend([
            ("{port}", port.to_string()),
            ("{upstream}", upstream.to_owned()),
            ("{command}", format!("{} serve outlive-stdio", program.display())),
            ("{data}", data.display().to_string()),
            ("{secret}", place::fresh_id()),
        ]);
        if let Some(text) = &self.file {
            let file = data.join("config.yaml");
            program::write_private(&file, &fill_in(text, &fill))?;
            fill.push(("{file}", file.display().to_string()));
        }
        let words = filled(&self.start, &fill);
        let (first, words) = words.split_first().context("`start` is empty")?;
        let mut command = Command::new(first);
        command.args(words).current_dir(&data).stdin(Stdio::piped());
        // Of its own, so that its helpers end with it.
        command.process_group(0);
        command.envs(self.env.iter().map(|(name, value)| (name, fill_in(value, &fill))));
        let log = data.join("log");
        command.stderr(fs::File::create(&log)?);
        let mut child = program::spawn(&mut command, cores)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let streams = match (self.client, child.stdin.take(), child.stdout.take()) {
            (Client::Stdio, Some(stdin), Some(stdout)) => Some((stdin, stdout)),
            (_, stdin, stdout) => {
                child.stdin = stdin;
                // Read to its end, so that the gateway never blocks on its output.
                thread::spawn(move || {
                    stdout.map(|mut stdout| std::io::copy(&mut stdout, &mut std::io::sink()))
                });
                None
            }
        };
        let (path, tool) = (self.path.clone(), self.tool.clone());
        let server = Server::with_group(child, data);
        let mut running = Running { server, address, path, tool, streams };
        if self.client != Client::Stdio {
            let prepared = running.prepare(&filled(&self.after, &fill));
            let log = || fs::read_to_string(&log).unwrap_or_default();
            prepared.with_context(|| last_chars(&log(), 300))?;
        }
        Ok(running)
    }
}

impl Running {
    /// Waits until the gateway listens, and runs the command after that until it succeeds.
    fn prepare(&mut self, after: &[String]) -> Result<()> {
        let begun = Instant::now();
        let left = || PATIENCE.checked_sub(begun.elapsed()).context("it is not ready in time");
        while TcpStream::connect(self.address).is_err() {
            left()?;
            ensure!(self.server.is_running(), "it exited");
            thread::sleep(Duration::from_millis(50));
        }
        let Some((program, words)) = after.split_first() else { return Ok(()) };
        loop {
            let output = Command::new(program).args(words).stdin(Stdio::null()).output()?;
            if output.status.success() {
                let said = String::from_utf8_lossy(&output.stdout).into_owned();
                let line = said.lines().next_back().unwrap_or_default();
                let Some((path, tool)) = line.split_once(' ') else {
                    bail!("it printed `{line}` instead of a path and a tool");
                };
                (self.path, self.tool) = (path.to_owned(), tool.to_owned());
                return Ok(());
            }
            left().with_context(|| last_chars(&String::from_utf8_lossy(&output.stderr), 300))?;
            thread::sleep(Duration::from_millis(500));
        }
    }
}

/// A new folder for the files of one process.
fn data_folder() -> Result<PathBuf> {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("outlive-bench-third-party-{}-{number}", std::process::id());
    let folder = env::temp_dir().join(name);
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn filled(words: &[String], fill: &[(&str, String)]) -> Vec<String> {
    words.iter().map(|word| fill_in(word, fill)).collect()
}

fn fill_in(text: &str, fill: &[(&str, String)]) -> String {
    fill.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
}

fn last_chars(text: &str, count: usize) -> String {
    let skipped = text.chars().count().saturating_sub(count);
    text.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::{entries, fill_in, last_chars};

    #[test]
    fn every_entry_has_a_program_and_a_unique_name() {
        let entries = entries().unwrap();
        assert!(entries.iter().all(|gateway| !gateway.start.is_empty()));
        let mut names: Vec<String> = entries.into_iter().map(|gateway| gateway.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn placeholders_are_filled_in_and_other_braces_stay() {
        let fill = [("{port}", "80".to_owned())];
        assert_eq!(fill_in("{ port: {port} }", &fill), "{ port: 80 }");
        assert_eq!(last_chars("añb", 2), "ñb");
    }
}
