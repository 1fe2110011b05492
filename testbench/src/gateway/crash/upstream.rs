//! The upstream over HTTP: a separate process, which outlives gateways.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};

use crate::executions::Executions;
use crate::gateway::setting::Setting;

/// An upstream over HTTP, killed on drop.
#[derive(Debug)]
pub(super) struct Upstream {
    child: Child,
    url: String,
    executions: Executions,
}

impl Upstream {
    pub(super) fn start(setting: &Setting) -> Result<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let executions = Executions::new(setting.folder().join(format!("executions-{number}")))?;
        let mut command = Command::new(setting.program_beside("relay-upstream")?);
        command.arg(executions.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("could not start the upstream")?;
        let stdout = child.stdout.take().context("the upstream has a standard output")?;
        let mut upstream = Self { child, url: String::new(), executions };
        BufReader::new(stdout).read_line(&mut upstream.url)?;
        ensure!(!upstream.url.is_empty(), "the upstream did not start");
        Ok(upstream)
    }

    /// The file of a gateway in front of it.
    pub(super) fn file(&self, keys: &str) -> String {
        format!("[upstreams.render]\nurl = \"{}\"\n{keys}\n", self.url.trim())
    }

    /// Returns the number of executions by key.
    pub(super) fn executions(&self) -> Result<HashMap<String, usize>> {
        self.executions.count()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
