//! `cargo xtask clients`: third-party clients against a server with extensions that they do not
//! know.
//!
//! The clients must get the same messages as from a server without these extensions. They are in
//! `conformance/clients`, at the versions of its lock file.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::conformance::suite::{self, Suite};
use xtask::args::Args;
use xtask::process::{self, Build};

pub(crate) fn run(mut args: Args) -> Result<()> {
    let build = Build::wanted(&mut args);
    args.finish()?;
    let program = process::built("testbench", "stream-server", build)?;
    let conformance = process::root().join("conformance");
    // The node version of the suite is new enough for these clients.
    let node = Suite::ready(&conformance)?.node().to_owned();
    let folder = conformance.join("clients");
    suite::install_once(&folder, suite::EXACTLY)?;
    let (with, without) = (Server::start(&program, "on")?, Server::start(&program, "off")?);
    unaware(&node, &folder, &with, &without)
}

fn unaware(node: &Path, folder: &Path, with: &Server, without: &Server) -> Result<()> {
    let mut script = Command::new(node);
    script.arg("unaware.mjs").args([&with.url, &without.url]).current_dir(folder);
    process::run(&mut script).context("a client got messages that it did not request")
}

/// A server process, killed on drop.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(program: &PathBuf, switch: &str) -> Result<Self> {
        let mut child = Command::new(program)
            .arg(switch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("could not start {}", program.display()))?;
        let stdout = child.stdout.take().context("the server has no standard output")?;
        let mut address = String::new();
        BufReader::new(stdout).read_line(&mut address)?;
        Ok(Self { child, url: format!("http://{}/mcp", address.trim()) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
