//! Sending of a relayed request, which is repeated only if the server has not executed it.

use std::{pin::pin, sync::Arc};

use outlive_protocol::{OnDisconnect, VersionRules, era::client::ResultContext};
use outlive_transport::client::TransportErrorKind;
use outlive_wire::{Method, code};

use super::{
    clock::{Clock, alarm},
    exchange::{Inputs, RelayExchange, Way},
    request::RelayRequest,
};
use crate::client::{
    attempt::supported,
    core::{Client, Core},
    error::{ClientError, Error, Result},
    exchange::{Exchange, Failed},
    link::{Connection, Link},
};

/// Times that a request is sent again after a new handshake or on a new connection.
const RESENDS: u32 = 2;

impl Client {
    /// Sends a request and returns its exchange, whose owner gets the events.
    ///
    /// For programs that stand between a client and a server: parameters and results pass without
    /// being parsed, and input requests go to the owner. Waits until the request is sent; since
    /// 2026-07-28 over HTTP, until the response begins. Dropping the future cancels the request.
    ///
    /// The request is sent again only if the server has not executed it.
    ///
    /// # Errors
    ///
    /// If the server is unreachable, or rejects the request before it responds.
    pub async fn relay(&self, request: &RelayRequest<'_>) -> Result<RelayExchange> {
        let core = &self.core;
        let limits = core.limits();
        let total = request.total.unwrap_or(limits.max_total_timeout);
        let mut clock = Clock::new(request.timeout.unwrap_or(Some(limits.request_timeout)), total);
        let here = core.established().await?;
        let id = request.id.unwrap_or_else(|| core.next_id());
        // Registered before the request is sent, so that no input request arrives too early.
        let inputs = request.awaited_task().map(|task| Inputs::for_task(&here, &task));
        let context = ResultContext {
            method: Method::parse(request.method),
            holds_tasks: request.holds_tasks(&here),
        };
        let is_http = matches!(here.link, Link::Http { .. });
        let way = match is_http && here.rules.on_disconnect != OnDisconnect::Cancel {
            // The server may send input requests elsewhere before its response begins, so the
            // owner must not wait for the response here.
            true => {
                let (core, here, copy) = (Arc::clone(core), Arc::clone(&here), request.copied());
                Way::Opening(Box::pin(async move { open(&core, here, &copy.borrowed(), id).await }))
            }
            false => {
                let mut opening = pin!(open(core, Arc::clone(&here), request, id));
                loop {
                    tokio::select! {
                        biased;
                        opened = &mut opening => break Way::Open(opened?),
                        () = alarm(clock.deadline()) => match core.more_time(clock.span()) {
                            Some(until) => clock.extend(until),
                            None => return Err(ClientError::TimedOut(clock.elapsed()).into()),
                        },
                    }
                }
            }
        };
        let here = match &way {
            Way::Open(exchange) => Arc::clone(exchange.connection()),
            _ => here,
        };
        Ok(RelayExchange::new(core, &here, id, way, context, clock, inputs))
    }
}

/// Sends a request on this connection, or on another one if this one has ended.
async fn open(
    core: &Arc<Core>,
    mut here: Arc<Connection>,
    request: &RelayRequest<'_>,
    id: u64,
) -> Result<Exchange> {
    let (mut resent, mut versions) = (0, 0);
    loop {
        let parts = request.parts(&here, id);
        let failed = match Exchange::open(&here, &parts.outgoing()).await {
            Ok(exchange) => return Ok(exchange),
            Err(failed) => failed,
        };
        match failed {
            Failed::SessionGone if resent < RESENDS => {
                resent += 1;
                here = core.renew(Some(&here)).await?;
            }
            Failed::Status { error: Some(error), status, retry_after }
                if error.code == code::UNSUPPORTED_VERSION && versions < RESENDS =>
            {
                versions += 1;
                let named = supported(&error);
                let rules = VersionRules::newest_of(named.iter().map(String::as_str));
                match rules.and_then(|rules| other_version(core, &here, rules)) {
                    Some(agreed) => here = agreed,
                    None => {
                        let error = Some(error);
                        return Err(Failed::Status { status, error, retry_after }.into());
                    }
                }
            }
            failed => {
                let error = Error::from(failed);
                if resent >= RESENDS || !is_unsent(&error) {
                    return Err(error);
                }
                resent += 1;
                here = core.renew(Some(&here)).await?;
            }
        }
    }
}

/// Returns whether the connection ended before the request was sent.
fn is_unsent(error: &Error) -> bool {
    match error {
        Error::Transport(error) => {
            !error.may_have_been_sent() && *error.kind() == TransportErrorKind::Closed
        }
        _ => false,
    }
}

/// Returns a connection with the version that the server asks for, if it is modern and allowed.
fn other_version(
    core: &Arc<Core>,
    here: &Arc<Connection>,
    rules: &'static VersionRules,
) -> Option<Arc<Connection>> {
    let pinned = core.settings.pinned.map(|rules| rules.version);
    if rules.sessions || pinned.is_some_and(|pinned| pinned != rules.version) {
        return None;
    }
    if rules.version == here.rules.version {
        return Some(Arc::clone(here));
    }
    let made = here.by_rules_of(rules)?;
    core.adopt(Arc::clone(&made));
    Some(made)
}
