//! Third-party servers: read from `peers.toml`, built or installed before the measurement.
//!
//! A peer that is not available is skipped with a message, because our figures must not depend on a
//! reachable registry.

use std::{
    cell::RefCell,
    collections::HashMap,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use crate::{
    child::Server,
    gateways,
    machine::Cores,
    wanted::{Wanted, is_named, run},
};

/// All selected peers that are available.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    ready: Vec<Peer>,
    /// Third-party gateways.
    pub(crate) gateways: Vec<gateways::Gateway>,
    left_out: RefCell<Vec<String>>,
}

/// A third-party server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peer {
    name: String,
    version: String,
    config: String,
    language: String,
    folder: PathBuf,
    cargo: Option<String>,
    #[serde(default)]
    install: Vec<Vec<String>>,
    installed_from: Option<String>,
    start: Vec<String>,
    pub(crate) path: String,
    wires: Vec<String>,
    serves: Vec<Serves>,
    pub(crate) most_tools: usize,
    #[serde(default)]
    pub(crate) has_helpers: bool,
}

/// A kind of load that a peer can serve.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Serves {
    Calls,
    Progress,
    Tasks,
}

/// A running peer.
#[derive(Debug)]
pub(crate) struct Serving<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    /// Its name in tables, with the additional data that it printed.
    pub(crate) name: String,
}

#[derive(Deserialize)]
struct Entries {
    peer: Vec<Peer>,
}

/// Fails if a selected name is neither a peer nor a third-party gateway.
pub(crate) fn check_names(wanted: &Wanted) -> Result<()> {
    let Wanted::Named(wanted) = wanted else { return Ok(()) };
    let mut names: Vec<String> = entries()?.into_iter().map(|peer| peer.name).collect();
    names.extend(gateways::names()?);
    names.dedup();
    match wanted.iter().find(|wanted| !names.iter().any(|name| is_named(name, wanted))) {
        Some(unknown) => {
            bail!("unknown peer `--peers {unknown}`; use one of {}", names.join(", "))
        }
        None => Ok(()),
    }
}

fn entries() -> Result<Vec<Peer>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers.toml");
    let text =
        fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
    let Entries { peer } = toml::from_str(&text).context("peers.toml")?;
    Ok(peer)
}

impl Peers {
    /// Reads the file, and builds and installs the selected peers. Runs before the process is
    /// pinned, because compilers use several cores.
    pub(crate) fn prepare(wanted: &Wanted) -> Result<Self> {
        if matches!(wanted, Wanted::None) {
            return Ok(Self::default());
        }
        let entries = entries()?;
        let mut peers = Self::default();
        // Entries may share a program, which is built once.
        let mut built = HashMap::new();
        for mut peer in entries {
            if let Wanted::Named(names) = wanted
                && !names.iter().any(|name| peer.is(name))
            {
                continue;
            }
            match peer.make(&mut built) {
                Ok(()) => peers.ready.push(peer),
                Err(error) => peers.leave_out(&peer.label(), &error),
            }
        }
        Ok(peers)
    }

    /// Whether a peer with this name is available.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.ready.iter().any(|peer| peer.is(name))
    }

    /// All peers that can serve `what` in this version.
    pub(crate) fn serving(&self, what: Serves, wire: &str) -> impl Iterator<Item = &Peer> {
        self.ready.iter().filter(move |peer| {
            peer.serves.contains(&what) && peer.wires.iter().any(|it| it == wire)
        })
    }

    /// Starts all peers that can serve `what` in this version, with these arguments.
    pub(crate) fn start(
        &self,
        what: Serves,
        wire: &str,
        words: impl Fn(&Peer) -> Option<Vec<String>>,
        cores: Cores,
    ) -> Vec<Serving<'_>> {
        let mut all = Vec::new();
        for peer in self.serving(what, wire) {
            let Some(words) = words(peer) else { continue };
            match peer.serve(&words, cores) {
                Ok(serving) => all.push(serving),
                Err(error) => self.leave_out(&peer.label(), &error),
            }
        }
        all
    }

    /// Keeps a working target. A peer whose first calls fail is skipped too.
    pub(crate) fn keep<T>(&self, name: &str, opened: Result<T>) -> Option<T> {
        opened.inspect_err(|error| self.leave_out(name, error)).ok()
    }

    /// Installs the selected third-party gateways.
    pub(crate) fn prepare_gateways(&mut self, wanted: &Wanted) -> Result<()> {
        self.gateways = gateways::prepare(wanted, |name, error| self.leave_out(name, error))?;
        Ok(())
    }

    fn leave_out(&self, name: &str, error: &anyhow::Error) {
        // One line, because a response may be long.
        let why = format!("{error:#}").replace(['\n', '\r'], " ");
        let why: String = why.chars().take(300).collect();
        let line = format!("LEFT OUT: {name}: {why}");
        eprintln!("!!! {line}");
        self.left_out.borrow_mut().push(line);
    }

    /// One line per skipped peer.
    pub(crate) fn left_out(&self) -> Vec<String> {
        self.left_out.borrow().clone()
    }
}

impl Peer {
    /// The name in tables.
    pub(crate) fn label(&self) -> String {
        format!("{} {} ({})", self.name, self.version, self.config)
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.language == "Rust"
    }

    fn is(&self, name: &str) -> bool {
        is_named(&self.name, name)
    }

    /// Starts the peer with these arguments after its command.
    pub(crate) fn serve(&self, words: &[String], cores: Cores) -> Result<Serving<'_>> {
        let (program, first) = self.start.split_first().context("`start` is empty")?;
        let words: Vec<&str> = first.iter().chain(words).map(String::as_str).collect();
        let (server, address, note) = Server::start_listening(Path::new(program), &words, cores)?;
        let name = match note.is_empty() {
            true => self.label(),
            false => format!("{}, {note}", self.label()),
        };
        Ok(Serving { peer: self, server, address, name })
    }

    /// Builds or installs the peer and completes its `start` command.
    fn make(&mut self, built: &mut HashMap<String, PathBuf>) -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().context("the project folder is gone")?;
        let folder = root.join(&self.folder);
        let target = std::env::current_exe()?;
        let target = target.ancestors().nth(2).context("the path of this program has no folder")?;
        let cache = target.join("bench-peers").join(self.name.replace(' ', "-"));
        let mut fill: Vec<(&str, String)> = vec![
            ("{folder}", folder.display().to_string()),
            ("{cache}", cache.display().to_string()),
        ];
        if let Some(bin) = &self.cargo {
            if !built.contains_key(bin) {
                eprintln!("building {} {}; the first time takes minutes", self.name, self.version);
                built.insert(bin.clone(), build(&folder, bin)?);
            }
            fill.push(("{cargo}", built[bin].display().to_string()));
        }
        let filled = |words: &[String]| -> Vec<String> {
            let one = |word: &String| {
                fill.iter().fold(word.clone(), |word, (name, value)| word.replace(name, value))
            };
            words.iter().map(one).collect()
        };
        self.start = filled(&self.start);
        if let Some(from) = &self.installed_from {
            let wanted =
                fs::read(folder.join(from)).with_context(|| format!("{from} is missing"))?;
            let stamp = cache.with_extension("installed");
            if fs::read(&stamp).ok().as_ref() != Some(&wanted) {
                eprintln!("installing {} {}", self.name, self.version);
                for command in &self.install {
                    run(&filled(command), &folder)?;
                }
                fs::create_dir_all(target.join("bench-peers"))?;
                fs::write(&stamp, &wanted)?;
            }
        }
        Ok(())
    }
}

/// Builds a program outside of the workspace build and returns its path.
pub(crate) fn build(folder: &Path, bin: &str) -> Result<PathBuf> {
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--profile", "dist", "--locked", "--bin", bin])
        .args(["--message-format", "json-render-diagnostics", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .stderr(Stdio::inherit())
        .output()
        .context("could not run cargo")?;
    ensure!(built.status.success(), "`{bin}` could not be built");
    let messages = String::from_utf8_lossy(&built.stdout);
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    let program = artifacts.filter_map(|artifact| artifact.executable).next_back();
    program.with_context(|| format!("cargo did not report the path of `{bin}`"))
}

/// The only relevant member of cargo's messages.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}
