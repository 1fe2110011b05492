//! The server under test: a process on a free port, killed on drop.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Maximum time until a server responds.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Server {
    url: String,
    child: Option<Child>,
}

impl Server {
    /// Wraps a server that is already running.
    pub(super) fn running(url: String) -> Self {
        Self { url, child: None }
    }

    /// Starts the program with these arguments and a free port in `PORT`, and waits until it
    /// responds. Its output goes to `log`.
    pub(super) fn start(program: &Path, args: &[&str], log: &Path) -> Result<Self> {
        let port = free_port()?;
        let talk = File::create(log)?;
        let mut command = Command::new(program);
        command
            .args(args)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stderr(talk.try_clone()?)
            .stdout(talk);
        let child =
            command.spawn().with_context(|| format!("could not start {}", program.display()))?;
        let mut server = Self { url: format!("http://127.0.0.1:{port}/mcp"), child: Some(child) };
        if let Err(error) = server.wait(port) {
            let said = fs::read_to_string(log).unwrap_or_default();
            bail!(
                "{error}; its output:\n{}",
                if said.is_empty() { "nothing" } else { said.trim_end() }
            );
        }
        Ok(server)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn wait(&mut self, port: u16) -> Result<()> {
        let begun = Instant::now();
        while !answers(port) {
            if let Some(status) =
                self.child.as_mut().and_then(|child| child.try_wait().transpose()).transpose()?
            {
                bail!("the server exited before it responded: {status}");
            }
            if begun.elapsed() > PATIENCE {
                bail!("the server does not respond on {} after {} s", self.url, PATIENCE.as_secs());
            }
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // The process may have exited already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns a port that is currently free.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .context("no free port on the loopback interface")?;
    Ok(listener.local_addr()?.port())
}

/// Whether a port responds to HTTP, with any status.
fn answers(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, PAUSE) else { return false };
    let request =
        format!("GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n");
    let mut start = [0; 5];
    stream.set_read_timeout(Some(Duration::from_secs(1))).is_ok()
        && stream.write_all(request.as_bytes()).is_ok()
        && stream.read_exact(&mut start).is_ok()
        && start == *b"HTTP/"
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;

    use super::{answers, free_port};

    #[test]
    fn port_serving_http_counts_as_ready() {
        assert!(!answers(free_port().unwrap()));

        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\n\r\n").unwrap();
        });
        assert!(answers(port));
        server.join().unwrap();
    }
}
