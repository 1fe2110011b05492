//! One call from its start to its result, with what is recorded about it.

use std::time::Instant;

use outlive::{
    server::{Durable, Result, response::RelayedResult},
    wire::Method,
};
use sha2::{Digest, Sha256};

use super::{exchange::Request, failure, rounds, route::Reached, times::Times, uris};
use crate::{excerpt::excerpt, metrics::CallOutcome, settings::CallAudit};

/// Action of the audit event of a call.
const ACTION: &str = "relayed";

/// Relays a request. Returns its result with the URIs that clients see.
pub(super) async fn relay(
    cx: &Durable,
    reached: &Reached,
    request: &Request<'_>,
) -> Result<RelayedResult> {
    let mut record = Record::start(cx, reached, request);
    let result = rounds::run(cx, reached, request, &record.times).await.and_then(|result| {
        let read = request.uri.map(|shown| (request.name, shown));
        let result = uris::shown(reached, cx.call(), read, result);
        RelayedResult::new(result).map_err(|error| failure::invalid(reached, &error.to_string()))
    });
    record.end(&result);
    result
}

/// A call that is recorded at its end.
struct Record<'a> {
    cx: &'a Durable,
    reached: &'a Reached,
    request: &'a Request<'a>,
    started: Instant,
    times: Times,
    is_ended: bool,
}

impl<'a> Record<'a> {
    fn start(cx: &'a Durable, reached: &'a Reached, request: &'a Request<'a>) -> Self {
        let (started, times) = (Instant::now(), Times::default());
        Self { cx, reached, request, started, times, is_ended: false }
    }

    fn end(&mut self, result: &Result<RelayedResult>) {
        self.is_ended = true;
        let outcome = match result {
            Ok(result) if !result.is_error() => CallOutcome::Completed,
            _ if self.cx.is_cancelled() => CallOutcome::Cancelled,
            _ => CallOutcome::Failed,
        };
        self.write(outcome);
    }

    fn write(&self, outcome: CallOutcome) {
        let tool = match self.request.method {
            Method::ToolsCall => self.request.name,
            // URIs and names of prompts are not labels: there are too many.
            method => method.as_str(),
        };
        let meter = self.reached.member.state().meter();
        meter.call(tool, outcome);
        meter.time(self.times.upstream(), self.times.added(self.started.elapsed()));
        if self.reached.shared.config().settings.audit == CallAudit::Store {
            self.audit(tool, outcome);
        }
    }

    /// Adds an audit event without contents.
    fn audit(&self, tool: &str, outcome: CallOutcome) {
        let Some(handle) = self.reached.shared.handle() else { return };
        let reason = format!(
            "upstream={} tool={} outcome={} duration_ms={} arguments=sha256:{:x}",
            self.reached.name(),
            excerpt(tool),
            outcome.name(),
            self.started.elapsed().as_millis(),
            Hex(Sha256::digest(self.request.arguments).into()),
        );
        let principal = self.cx.call().principal().key();
        handle.audit(principal, self.cx.task_id().as_deref(), ACTION, reason);
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        // A run that only waits for input is dropped, too, and continues later.
        if !self.is_ended && self.cx.is_cancelled() {
            self.write(CallOutcome::Cancelled);
        }
    }
}

struct Hex([u8; 32]);

impl std::fmt::LowerHex for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
