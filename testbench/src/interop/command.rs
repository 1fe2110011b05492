//! The command: starts the peers, runs every pair, and writes the table.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::gateway;
use super::legs::{self, Host, Leg, Peer, Side, Transport};
use super::table::{self, Row};
use crate::conformance::suite::{self, Suite};
use crate::python;
use crate::serving::Serving;
use xtask::args::Args;
use xtask::process::{self, Build};

/// Programs and folders of a run.
struct Tools {
    node: PathBuf,
    folder: PathBuf,
    /// Our client and our server.
    client: PathBuf,
    server: PathBuf,
    /// The Python environments of the packages.
    environments: PathBuf,
    /// A program of `peers`, if any is selected. The others are in the same folder.
    peers: Option<PathBuf>,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    if args.flag("--gateway") {
        return gateway::run(args);
    }
    let build = Build::wanted(&mut args);
    let short = args.flag("--short");
    let only = args.values("--peer")?;
    args.finish()?;
    let chosen = |leg: &Leg| {
        (only.is_empty() || only.iter().any(|it| leg.peer.name().contains(it.as_str())))
            && (!short || leg.peer.is_short())
    };
    let legs: Vec<Leg> = legs::all().into_iter().filter(chosen).collect();
    let tools = Tools::ready(build, &legs)?;
    let mut rows = Vec::new();
    for leg in legs {
        eprintln!("interop: {leg}");
        let row = tools.play(&leg).with_context(|| format!("{leg} could not run"))?;
        rows.push(Row { leg, row });
    }
    let page = table::page(&rows);
    println!("{page}");
    if !short && only.is_empty() {
        let path = process::root().join("docs/interop.md");
        fs::write(&path, &page).with_context(|| format!("could not write {}", path.display()))?;
    }
    let wrong: Vec<String> = rows.iter().flat_map(Row::wrong).collect();
    if !wrong.is_empty() {
        bail!("{} cells differ from the expectation:\n{}", wrong.len(), wrong.join("\n"));
    }
    Ok(())
}

impl Tools {
    fn ready(build: Build, legs: &[Leg]) -> Result<Self> {
        let server = process::built("outlive-conformance", "everything-server", build)?;
        let client = server.with_file_name("interop-client");
        let conformance = process::root().join("conformance");
        // The node version of the suite is new enough for these peers.
        let node = Suite::ready(&conformance)?.node().to_owned();
        let folder = conformance.join("interop");
        suite::install_once(&folder, suite::LENIENTLY)?;
        let environments = python::environments(&server)?;
        let peers = match legs.iter().any(|leg| leg.peer.host() == Host::Rust) {
            true => Some(process::built_peers(&["rmcp-server", "rmcp-client"])?),
            false => None,
        };
        Ok(Self { node, folder, client, server, environments, peers })
    }

    /// Runs one leg. Returns each feature with the reason if it fails.
    fn play(&self, leg: &Leg) -> Result<Vec<(String, Option<String>)>> {
        let mut command = match leg.side() {
            Side::Server => {
                let mut ours = Command::new(&self.client);
                ours.args([leg.peer.profile(), leg.era]);
                ours
            }
            Side::Client => self.script(leg, leg.peer.script(), &[leg.era])?,
        };
        let peer = match leg.side() {
            Side::Server => self.peer(leg)?,
            Side::Client => Command::new(&self.server),
        };
        let serving = match leg.transport {
            Transport::Stdio => {
                command.arg("--").arg(peer.get_program()).args(peer.get_args()).args(leg.stdio());
                None
            }
            Transport::Http => {
                let serving = Serving::start(peer)?;
                command.arg(&serving.url);
                Some(serving)
            }
        };
        command.current_dir(&self.folder).stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().context("could not be started")?;
        drop(serving);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = said.lines().filter_map(|line| {
            let line: serde_json::Value = serde_json::from_str(line).ok()?;
            let why = line["why"].as_str().map(str::to_owned);
            Some((line["feature"].as_str()?.to_owned(), why))
        });
        let lines: Vec<_> = lines.collect();
        if lines.is_empty() {
            let mut again = command;
            again.stderr(Stdio::inherit());
            bail!("no result was reported ({}); try `{again:?}`", output.status);
        }
        Ok(lines)
    }

    /// The command of a third-party server.
    fn peer(&self, leg: &Leg) -> Result<Command> {
        match leg.peer {
            Peer::EverythingServer => {
                let mut node = Command::new(&self.node);
                let module = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
                node.arg(self.folder.join(module));
                if matches!(leg.transport, Transport::Http) {
                    node.arg("streamableHttp");
                }
                Ok(node)
            }
            _ => self.script(leg, leg.peer.script(), &[]),
        }
    }

    /// The command of a script in `conformance/interop`, or of a program of `peers`.
    fn script(&self, leg: &Leg, name: &str, args: &[&str]) -> Result<Command> {
        let mut command = match leg.peer.host() {
            Host::Node => Command::new(&self.node),
            Host::Python(requirements) => {
                let list = self.folder.join(requirements);
                Command::new(python::with(&list, &self.environments)?)
            }
            Host::Rust => {
                let peers = self.peers.as_ref().context("the peers were not built")?;
                let mut command = Command::new(peers.with_file_name(name));
                command.args(args);
                return Ok(command);
            }
        };
        command.arg(self.folder.join(name)).args(args);
        Ok(command)
    }
}
