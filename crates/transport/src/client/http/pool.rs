//! Connections to one origin, kept between requests.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};

use super::{Address, HttpOptions, request_body::RequestBody};
use crate::client::{TransportError, TransportErrorKind};

/// A connection that a request can be sent on.
pub(super) type Connection = SendRequest<RequestBody>;

pub(super) struct Pool {
    // A std mutex: nothing awaits while it is held.
    idle: Mutex<Vec<Connection>>,
    host: String,
    port: u16,
    most_idle: usize,
    timeout: Duration,
    admits: Option<fn(IpAddr) -> bool>,
    #[cfg(feature = "tls")]
    tls: Option<crate::client::tls::Tls>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(address: &Address, options: &HttpOptions) -> Result<Self, TransportError> {
        #[cfg(not(feature = "tls"))]
        if address.is_tls() {
            return Err(TransportError::unsent(TransportErrorKind::Address(
                "https: needs the feature `tls` of the crate `outlive`; switch it on".to_owned(),
            )));
        }
        Ok(Self {
            idle: Mutex::default(),
            host: address.host().trim_matches(['[', ']']).to_owned(),
            port: address.port(),
            most_idle: options.idle_connections,
            timeout: options.connect_timeout,
            admits: options.admits,
            #[cfg(feature = "tls")]
            tls: match address.is_tls() {
                true => Some(crate::client::tls::Tls::new(address, options.roots.as_deref())?),
                false => None,
            },
        })
    }

    /// A connection that is free, and whether it is a new one.
    pub(super) async fn take(&self) -> Result<(Connection, bool), TransportError> {
        while let Some(mut connection) = self.pop() {
            // Ready as soon as the answer before has been read to its end.
            if connection.ready().await.is_ok() {
                return Ok((connection, false));
            }
        }
        // In a box, so that requests on a connection that is there have no room for making one.
        let connecting = Box::pin(tokio::time::timeout(self.timeout, self.connect()));
        match connecting.await {
            Ok(connected) => connected.map(|connection| (connection, true)),
            Err(late) => Err(TransportError::unsent(TransportErrorKind::Connect).because(late)),
        }
    }

    /// Keeps a connection whose answer has been read.
    pub(super) fn put(&self, connection: Connection) {
        if !connection.is_closed() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < self.most_idle {
                idle.push(connection);
            }
        }
    }

    fn pop(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let stream = self.reach().await?;
        // Messages are small and somebody waits for each.
        let _ = stream.set_nodelay(true);
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return shake_hands(tls.connect(stream).await?).await;
        }
        shake_hands(stream).await
    }

    /// Connects to the host. The address that was judged is the one that is connected to: a name that
    /// stands for another one a moment later changes nothing.
    async fn reach(&self) -> Result<TcpStream, TransportError> {
        let broken = |error| TransportError::unsent(TransportErrorKind::Connect).because(error);
        let place = (self.host.as_str(), self.port);
        let Some(admits) = self.admits else {
            return TcpStream::connect(place).await.map_err(broken);
        };
        let found: Vec<SocketAddr> =
            tokio::net::lookup_host(place).await.map_err(broken)?.collect();
        let (may, not): (Vec<SocketAddr>, _) = found.into_iter().partition(|it| admits(it.ip()));
        match (may.is_empty(), not.first()) {
            (true, Some(first)) => {
                Err(TransportError::unsent(TransportErrorKind::BlockedAddress(first.ip())))
            }
            _ => TcpStream::connect(may.as_slice()).await.map_err(broken),
        }
    }
}

async fn shake_hands<S>(stream: S) -> Result<Connection, TransportError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| TransportError::unsent(TransportErrorKind::Connect).because(error))?;
    // Owned by its sender: it ends when that is dropped.
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection ended");
        }
    });
    Ok(sender)
}
