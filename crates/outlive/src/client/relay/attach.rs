//! Requests that outlive the process that sent them, on a pipe that outlives it too.

use outlive_protocol::era::client::ResultContext;
use outlive_wire::Method;

use super::{
    clock::Clock,
    exchange::{RelayExchange, Way},
    request::RelayRequest,
};
use crate::client::{
    core::Client,
    error::{ClientError, Result},
    exchange::Exchange,
    server_info::Handshake,
};

impl Client {
    /// Returns the outcome of the handshake of the current connection.
    pub fn handshake(&self) -> Option<Handshake> {
        let here = self.core.current()?;
        let protocol_version = here.rules.version.to_string();
        Some(Handshake { protocol_version, server: here.server.clone() })
    }

    /// Returns a request ID that this client has not used, for
    /// [`RelayRequest::id`](super::RelayRequest::id).
    pub fn next_request_id(&self) -> u64 {
        self.core.next_id()
    }

    /// Continues a request that another process sent on the same pipe, without sending it. `request`
    /// has the method and the timeouts of that request.
    ///
    /// # Errors
    ///
    /// If the pipe is closed, or the connection is not a pipe.
    pub async fn attach(&self, id: u64, request: &RelayRequest<'_>) -> Result<RelayExchange> {
        let core = &self.core;
        let limits = core.limits();
        let total = request.total.unwrap_or(limits.max_total_timeout);
        let clock = Clock::new(request.timeout.unwrap_or(Some(limits.request_timeout)), total);
        let here = core.established().await?;
        let exchange = Exchange::attach(&here, id).ok_or(ClientError::Closed)?;
        let context = ResultContext {
            method: Method::parse(request.method),
            holds_tasks: request.holds_tasks(&here),
        };
        let way = Way::Open(exchange);
        Ok(RelayExchange::new(core, &here, id, way, context, clock, None))
    }
}
