//! In-memory connection between a client and a server in one process.

use outlive_protocol::{Endpoint, Principal};
use tokio::io::{DuplexStream, duplex, split};

use crate::lines;

/// Bytes that each side may write before the other side reads.
const BUFFER: usize = 64 << 10;

/// Client end of a connection to a server in this process, with one message per line.
///
/// The server runs until this end is dropped or shut down.
#[derive(Debug)]
pub struct Connection {
    /// Byte stream to the server.
    pub stream: DuplexStream,
    server: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Connection {
    /// Closes this end, and waits until the server has finished all calls.
    ///
    /// # Errors
    ///
    /// Returns an error if the server side of the connection failed.
    pub async fn closed(self) -> std::io::Result<()> {
        drop(self.stream);
        self.server.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }
}

/// Connects to a server in this process as `principal`.
///
/// # Panics
///
/// Panics outside of a tokio runtime.
pub fn connect(endpoint: Endpoint, principal: Principal) -> Connection {
    let (client, server) = duplex(BUFFER);
    let (input, output) = split(server);
    let server = tokio::spawn(lines::serve(endpoint, principal, input, output));
    Connection { stream: client, server }
}
