//! Admission of connections: a limit on all connections, and a limit per address.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::HttpConfig;
use crate::{
    caller::network,
    shares::{Share, Shares},
};

/// Maximum number of rejected connections that get a response at the same time. Further connections
/// are closed without a response.
const REJECTIONS: usize = 64;

/// Time within which a rejected client must read the response.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);

/// Admission control for new connections.
pub(super) struct Admission {
    /// Permits for connections from all addresses.
    pub(super) room: Arc<Semaphore>,
    shares: Arc<Shares<IpAddr>>,
    trusted_proxies: Vec<IpAddr>,
    refusals: Arc<Semaphore>,
}

/// Decision about a connection.
pub(super) enum Admitted {
    /// Accepted. The share is present if a limit applies to the address.
    Yes(Option<Share<IpAddr>>),
    /// Rejected. With a permit, the client gets a response.
    No(Option<OwnedSemaphorePermit>),
}

impl Admission {
    pub(super) fn new(config: &HttpConfig) -> Self {
        Self {
            room: Arc::new(Semaphore::new(room(config.max_connections))),
            shares: Shares::new(config.max_connections_per_address),
            trusted_proxies: config.trusted_proxies.clone(),
            refusals: Arc::new(Semaphore::new(REJECTIONS)),
        }
    }

    pub(super) fn admit(&self, peer: SocketAddr) -> Admitted {
        let address = peer.ip().to_canonical();
        if self.trusted_proxies.contains(&address) {
            return Admitted::Yes(None);
        }
        match self.shares.enter(network(address)) {
            Some(share) => Admitted::Yes(Some(share)),
            None => Admitted::No(Arc::clone(&self.refusals).try_acquire_owned().ok()),
        }
    }
}

/// Returns the maximum number of connections.
///
/// Reserves a quarter of the process's file limit for the store, for commands and for handlers that
/// open files.
fn room(wanted: usize) -> usize {
    let wanted = wanted.min(Semaphore::MAX_PERMITS);
    let Some(files) = files() else { return wanted };
    let possible = files - files / 4;
    if possible < wanted {
        tracing::info!(
            max_connections = wanted,
            files,
            "the open file limit of the process allows only {possible} connections"
        );
    }
    wanted.min(possible)
}

/// Returns the open file limit of the process.
#[cfg(unix)]
fn files() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    usize::try_from(limit).ok()
}

/// Returns `None`: other systems have no such limit.
#[cfg(not(unix))]
fn files() -> Option<usize> {
    None
}

/// Sends a 429 response and closes the connection.
pub(super) async fn refuse(mut stream: TcpStream, _place: OwnedSemaphorePermit) {
    let body = concat!(
        r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"the limit `max_connections_per_address` is used up: "#,
        r#"this address has too many connections; close one"}}"#
    );
    let head = format!(
        "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         retry-after: 1\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let told = async {
        stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).await?;
        stream.shutdown().await?;
        // Read the pending input: closing a socket with unread input resets it and discards the
        // response.
        let mut rest = [0; 512];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = timeout(REJECTION_TIMEOUT, told).await;
}
