//! A connection without sockets: client and server in one process.

use outlive_protocol::{Endpoint, Principal};
use tokio::io::{DuplexStream, duplex, split};

use crate::lines;

/// How much either side may write ahead of the other's reading.
const BUFFER: usize = 64 << 10;

/// The client's end of a connection to a server in this process: one message per line.
///
/// The server runs until this end is dropped or shut down.
#[derive(Debug)]
pub struct Connection {
    /// Lines in, lines out.
    pub stream: DuplexStream,
    server: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Connection {
    /// Waits until the server has answered everything, after this end was shut down.
    ///
    /// # Errors
    ///
    /// When the server's side of the connection failed.
    pub async fn closed(self) -> std::io::Result<()> {
        drop(self.stream);
        self.server.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }
}

/// Connects to a server in this process, as `principal`. Must be called inside a runtime.
pub fn connect(endpoint: Endpoint, principal: Principal) -> Connection {
    let (client, server) = duplex(BUFFER);
    let (input, output) = split(server);
    let server = tokio::spawn(lines::serve(endpoint, principal, input, output));
    Connection { stream: client, server }
}
