//! The same server behind a gateway, over HTTP.
//!
//! Counts are those of the gateway: the upstream is in another thread, for allocations, or in
//! another process, for instructions.

use std::{
    env,
    io::{self, BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::{Arc, mpsc},
    thread,
};

use anyhow::{Context, Result, ensure};
use outlive::{
    server::{Server, http::HttpConfig, tasks::TaskConfig},
    store::MemoryStore,
};
use outlive_gateway::{Gateway, Upstream};

use crate::{
    echo::{self, Path},
    messages,
};

/// The argument of this program that serves the upstream.
pub const UPSTREAM: &str = "upstream";

/// A gateway in front of an upstream.
#[derive(Debug)]
pub struct Relayed {
    path: Path,
    _gateway: Gateway,
}

impl Relayed {
    /// Opens the path of a modern call through a gateway to the server at a URL, and makes one
    /// call. Needs a runtime with I/O.
    ///
    /// # Errors
    ///
    /// Returns an error if the upstream does not respond.
    pub async fn open(url: &str) -> Result<Self> {
        let gateway =
            Gateway::builder().upstream(Upstream::url("bench", url).prefix("")).build()?;
        // As in the program, calls may become tasks.
        let tasks = TaskConfig::new(Arc::new(MemoryStore::new()));
        let server = gateway.attach(Server::builder("bench", "1.0.0").tasks(tasks)).build()?;
        gateway.start(&server);
        let headers = messages::MODERN_CALL_HEADERS;
        let path = Path::to(server.endpoint(), headers, messages::small_modern_call())?;
        let mut out = Vec::new();
        path.answer_later(path.arrive(), &mut out).await?;
        let text = String::from_utf8_lossy(&out);
        ensure!(text.contains("fox jumps"), "the first call failed: {text}");
        Ok(Self { path, _gateway: gateway })
    }

    /// The path of a call.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Serves the upstream in another thread, until the process ends. Returns its URL.
///
/// # Errors
///
/// Returns an error if the server cannot listen.
pub fn upstream_thread() -> Result<String> {
    let (said, heard) = mpsc::channel();
    thread::spawn(move || serve(|url| said.send(url).map_err(io::Error::other)));
    heard.recv().context("the upstream did not start")
}

/// Serves the upstream and prints its URL, until standard input ends.
///
/// # Errors
///
/// Returns an error if the server cannot listen.
pub fn serve_upstream() -> Result<()> {
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        std::process::exit(0);
    });
    serve(|url| writeln!(io::stdout(), "{url}"))
}

fn serve(say: impl FnOnce(String) -> io::Result<()>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let serving = echo::server()?.serve_http("127.0.0.1:0", HttpConfig::new()).await?;
        say(serving.url())?;
        Ok(serving.wait().await?)
    })
}

/// The upstream in a separate process, killed on drop.
#[derive(Debug)]
pub(crate) struct UpstreamProcess {
    child: Child,
    pub(crate) url: String,
}

impl UpstreamProcess {
    pub(crate) fn start() -> Result<Self> {
        let mut child = Command::new(env::current_exe()?)
            .arg(UPSTREAM)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("could not start the upstream")?;
        let stdout = child.stdout.take().context("the upstream has no standard output")?;
        let mut upstream = Self { child, url: String::new() };
        BufReader::new(stdout).read_line(&mut upstream.url)?;
        upstream.url.truncate(upstream.url.trim_end().len());
        Ok(upstream)
    }
}

impl Drop for UpstreamProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
