//! Resolves host names to addresses that the network policy allows.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    task::{Context, Poll},
    vec,
};

use hyper_util::client::legacy::connect::dns::Name;
use tower_service::Service;

use crate::client::{
    error::{TransportError, TransportErrorKind},
    network_policy::NetworkPolicy,
};

/// Resolver that applies a network policy.
///
/// The client connects to the address that was checked, so a later change of the DNS record has no
/// effect (DNS rebinding).
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicyResolver(pub(super) NetworkPolicy);

impl PolicyResolver {
    /// Returns the allowed addresses of `host`, which is a name or an IP address.
    pub(super) async fn resolve(
        self,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, TransportError> {
        let found = tokio::net::lookup_host((host, port)).await;
        let found = found
            .map_err(|error| TransportError::unsent(TransportErrorKind::Connect).because(error))?;
        let (allowed, blocked): (Vec<SocketAddr>, Vec<SocketAddr>) =
            found.partition(|address| self.0.allows(address.ip()));
        match (allowed.is_empty(), blocked.first()) {
            (true, Some(first)) => Err(blocked_address(first.ip())),
            _ => Ok(allowed),
        }
    }

    /// Checks a host that is an IP address. Connectors do not resolve IP addresses.
    pub(super) fn check_literal(self, host: &str) -> Result<(), TransportError> {
        match host.trim_matches(['[', ']']).parse::<IpAddr>() {
            Ok(ip) if !self.0.allows(ip) => Err(blocked_address(ip)),
            _ => Ok(()),
        }
    }
}

impl Service<Name> for PolicyResolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolver = *self;
        Box::pin(async move { Ok(resolver.resolve(name.as_str(), 0).await?.into_iter()) })
    }
}

fn blocked_address(ip: IpAddr) -> TransportError {
    TransportError::unsent(TransportErrorKind::BlockedAddress(ip))
}
