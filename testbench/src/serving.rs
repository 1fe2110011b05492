//! A third-party server process on a socket.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// A server process on a socket, killed on drop.
#[derive(Debug)]
pub(crate) struct Serving {
    child: Child,
    pub(crate) url: String,
}

impl Serving {
    /// Starts the server on a free port and waits until it listens.
    pub(crate) fn start(mut command: Command) -> Result<Self> {
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
