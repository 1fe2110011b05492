//! Which connections are let in: as many as there may be, and of each address its share.

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

/// Connections that are told at once why they are refused. Others are closed without a word.
const REFUSALS: usize = 64;

/// How long a refused client may take to read why.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// What decides about new connections.
pub(super) struct Admission {
    /// How many more there may be of all addresses.
    pub(super) room: Arc<Semaphore>,
    shares: Arc<Shares<IpAddr>>,
    trusted_proxies: Vec<IpAddr>,
    refusals: Arc<Semaphore>,
}

/// What becomes of a connection.
pub(super) enum Admitted {
    /// It is let in, and counted if there is a limit for its address.
    Yes(Option<Share<IpAddr>>),
    /// It is refused; with a place it is told why.
    No(Option<OwnedSemaphorePermit>),
}

impl Admission {
    pub(super) fn new(config: &HttpConfig) -> Self {
        Self {
            room: Arc::new(Semaphore::new(room(config.max_connections))),
            shares: Shares::new(config.max_connections_per_address),
            trusted_proxies: config.trusted_proxies.clone(),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
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

/// How many connections there may be: as many as are wanted, but a quarter of the files that the
/// process may open is left for the store, for commands and for calls that open some themselves.
fn room(wanted: usize) -> usize {
    let wanted = wanted.min(Semaphore::MAX_PERMITS);
    let Some(files) = files() else { return wanted };
    let possible = files - files / 4;
    if possible < wanted {
        tracing::info!(
            max_connections = wanted,
            files,
            "the process may open so few files that there can be {possible} connections at once"
        );
    }
    wanted.min(possible)
}

/// How many files the process may open.
#[cfg(unix)]
fn files() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current?;
    usize::try_from(limit).ok()
}

/// Other systems have no such limit.
#[cfg(not(unix))]
fn files() -> Option<usize> {
    None
}

/// Tells a client why its connection is refused, and closes it.
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
        // What is still on its way has to be read: closing before that would take the answer back.
        let mut rest = [0; 512];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = timeout(REFUSAL_TIMEOUT, told).await;
}
