//! The command: starts the peers, runs every pair, and writes the table.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::legs::{self, Host, Leg, Peer, Side, Transport};
use super::table::{self, Row};
use crate::conformance::suite::{self, Suite};
use crate::python;
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

/// A server process on a socket, killed on drop.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    /// Starts the server on a free port and waits until it listens.
    fn start(mut command: Command) -> Result<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        command.env("PORT", port.to_string()).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (said, heard) = std::sync::mpsc::channel();
        let out: [Option<Box<dyn std::io::Read + Send>>; 2] = [
            child.stdout.take().map(|it| Box::new(it) as _),
            child.stderr.take().map(|it| Box::new(it) as _),
        ];
        for pipe in out.into_iter().flatten() {
            let said = said.clone();
            // Read to the end, so that the server never blocks on its output.
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let _ = said.send(line);
                }
            });
        }
        drop(said);
        let serving = Self { child, url: format!("http://127.0.0.1:{port}/mcp") };
        let patience = std::time::Duration::from_secs(60);
        loop {
            let line = heard.recv_timeout(patience).context("the server does not listen")?;
            if line.to_lowercase().contains("listening") || line.contains("running on") {
                return Ok(serving);
            }
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
