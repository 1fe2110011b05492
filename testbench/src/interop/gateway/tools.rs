//! The programs and packages of a run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::process::{self, Build};

use super::peers::{Host, Peer, Transport};
use super::plan::Leg;
use crate::conformance::suite::{self, Suite};
use crate::python;

/// Programs and folders.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) node: PathBuf,
    /// The folder of the scripts.
    scripts: PathBuf,
    /// The folder of the programs of this workspace.
    programs: PathBuf,
    /// A program of `peers`, if any is needed. The others are in the same folder.
    peers: Option<PathBuf>,
}

impl Tools {
    /// Builds and installs what the legs need.
    pub(super) fn ready(build: Build, legs: &[Leg]) -> Result<Self> {
        let server = process::built("outlive-conformance", "everything-server", build)?;
        let conformance = process::root().join("conformance");
        // The node version of the suite is new enough for these packages.
        let node = Suite::ready(&conformance)?.node().to_owned();
        let scripts = conformance.join("interop");
        suite::install_once(&scripts, suite::LENIENTLY)?;
        let is_rmcp = |leg: &Leg| [leg.client, leg.upstream].iter().any(|it| it.host == Host::Rmcp);
        let peers = match legs.iter().any(is_rmcp) {
            true => Some(process::built_peers(&["rmcp-server", "rmcp-client"])?),
            false => None,
        };
        let programs = server.parent().context("a program is in a folder")?.to_owned();
        Ok(Self { node, scripts, programs, peers })
    }

    /// A program of this workspace.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// A Python with the packages of a requirements file in `conformance`.
    pub(super) fn python(&self, list: &str) -> Result<PathBuf> {
        let environments = python::environments(&self.program("outlive"))?;
        python::with(&process::root().join("conformance").join(list), &environments)
    }

    /// The command of a client, without the address of its server.
    pub(super) fn client(&self, leg: &Leg) -> Result<Command> {
        let mut command = self.script(leg.client)?;
        if leg.client.is_outlive() {
            command.arg("ours");
        }
        command.arg(leg.versions.0.name()).env("FEATURES", leg.drivers.join(","));
        command.current_dir(&self.scripts);
        Ok(command)
    }

    /// The command of an upstream.
    pub(super) fn upstream(&self, leg: &Leg) -> Result<Command> {
        let mut command = self.script(leg.upstream)?;
        match leg.transports.1 {
            Transport::Stdio => command.arg("--stdio"),
            Transport::HttpSse => command.arg("--sse"),
            Transport::Http => &mut command,
        };
        if leg.upstream.is_outlive() && leg.drivers.contains(&"partials") {
            command.arg("--partials");
        }
        Ok(command)
    }

    fn script(&self, peer: &Peer) -> Result<Command> {
        let mut command = Command::new(match peer.host {
            Host::Node => self.node.clone(),
            Host::Python(list) => self.python(list)?,
            Host::Outlive => return Ok(Command::new(self.program(peer.script))),
            Host::Rmcp => {
                let peers = self.peers.as_deref().context("`peers` were not built")?;
                return Ok(Command::new(peers.with_file_name(peer.script)));
            }
        });
        command.arg(self.scripts.join(peer.script));
        Ok(command)
    }
}

/// The words of a command, to be written into a configuration.
pub(super) fn words(command: &Command) -> Vec<String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// A folder for the files of a run.
pub(super) fn folder(name: &str) -> PathBuf {
    let run = format!("outlive-gateway-{}", std::process::id());
    Path::new(&std::env::temp_dir()).join(run).join(name)
}
