//! Requests whose response stream another process has read.

use std::sync::{Arc, Mutex};

use http::HeaderValue;
use outlive_protocol::{EventIdMode, VersionRules, era::client::ResultContext};
use outlive_wire::Method;
use serde_json::json;

use super::{
    clock::Clock,
    exchange::{RelayExchange, Way},
    point::StreamPoint,
    request::RelayRequest,
};
use crate::client::{
    core::Client,
    error::{Error, Result},
    exchange::Exchange,
    link::{Connection, Link},
};

impl Client {
    /// Continues a request at a point of its response stream, without sending it again: the server
    /// sends the rest of the stream, with the response. `request` has the method and the timeouts.
    ///
    /// The exchange fails if the server has forgotten the session or the events, and may have
    /// executed the request.
    ///
    /// # Errors
    ///
    /// If the server is unreachable, or is not a legacy server over HTTP.
    pub async fn resume_at(
        &self,
        point: &StreamPoint,
        request: &RelayRequest<'_>,
    ) -> Result<RelayExchange> {
        let core = &self.core;
        let here = core.established().await?;
        let there = at(&here, point)?;
        let last = header(&point.event)?;
        let limits = core.limits();
        let total = request.total.unwrap_or(limits.max_total_timeout);
        let clock = Clock::new(request.timeout.unwrap_or(Some(limits.request_timeout)), total);
        let context = ResultContext {
            method: Method::parse(request.method),
            holds_tasks: request.holds_tasks(&there),
        };
        let way = Way::Open(Exchange::resumed(&there, point.request, last));
        Ok(RelayExchange::new(core, &there, point.request, way, context, clock, None))
    }

    /// Cancels a request at a point of its response stream.
    ///
    /// # Errors
    ///
    /// If the server is unreachable, or is not a legacy server over HTTP.
    pub async fn cancel_at(&self, point: &StreamPoint, reason: &str) -> Result<()> {
        let here = self.core.established().await?;
        let there = at(&here, point)?;
        let params = json!({"requestId": point.request, "reason": reason});
        there.notify(Method::Cancelled, &params.to_string()).await
    }
}

/// Returns a connection over the same link in the session of a point.
fn at(here: &Connection, point: &StreamPoint) -> Result<Arc<Connection>> {
    let rules = VersionRules::find(&point.protocol_version)
        .filter(|rules| rules.event_ids != EventIdMode::None);
    let (Some(rules), Link::Http { link, .. }) = (rules, &here.link) else {
        return Err(Error::not_offered("the server has no streams that can be resumed"));
    };
    let session = point.session.as_deref().map(header).transpose()?;
    Ok(Arc::new(Connection {
        env: Arc::clone(&here.env),
        rules,
        server: here.server.clone(),
        link: Link::Http { link: link.clone(), session },
        inputs: Arc::default(),
        background: Mutex::default(),
    }))
}

fn header(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text)
        .map_err(|_| Error::not_offered("the stored position in the stream is not valid"))
}
