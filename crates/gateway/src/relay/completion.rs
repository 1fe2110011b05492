//! The completer of an upstream's prompts and resource templates.

use std::{sync::Arc, time::Duration};

use outlive::{
    client::{
        Error as UpstreamError, ServerErrorKind,
        relay::{RelayEvent, RelayOutcome, RelayRequest},
    },
    server::{Cx, Error, Result, response::RelayedResult},
    wire::Method,
};
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::{
    failure, meta,
    route::{Reached, Route},
};
use crate::upstream::ConnectionKey;

/// Timeout of a completion, which a user waits for while typing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The prompt or template whose arguments are completed.
#[derive(Clone, Debug)]
pub(crate) struct CompletionRoute {
    pub(crate) route: Route,
    /// The reference with the upstream's own name or template, as JSON text.
    pub(crate) reference: String,
    pub(crate) name: String,
}

impl CompletionRoute {
    pub(crate) fn of_prompt(route: Route, name: &str) -> Self {
        let reference = json!({"type": "ref/prompt", "name": name}).to_string();
        Self { route, reference, name: name.to_owned() }
    }

    pub(crate) fn of_template(route: Route, template: &str) -> Self {
        let reference = json!({"type": "ref/resource", "uri": template}).to_string();
        Self { route, reference, name: template.to_owned() }
    }
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    argument: &'a RawValue,
    #[serde(borrow, default)]
    context: Option<&'a RawValue>,
}

/// Completes an argument.
pub(crate) async fn complete(cx: Cx, target: Arc<CompletionRoute>) -> Result<RelayedResult> {
    let reached = target.route.reach()?;
    let params: Params<'_> = serde_json::from_str(cx.call().params())
        .map_err(|error| Error::invalid_params(format!("`params` are invalid: {error}")))?;
    let mut members =
        vec![r#""ref":"#, target.reference.as_str(), r#","argument":"#, params.argument.get()];
    if let Some(context) = params.context {
        members.extend([r#","context":"#, context.get()]);
    }
    let result = match send(&cx, &reached, &target.name, &members).await? {
        Ok(result) => result,
        // An upstream without completion has no suggestions.
        Err(error) if error.kind() == Some(ServerErrorKind::MethodNotFound) => {
            json!({"completion": {"values": []}}).to_string().into()
        }
        Err(error) => return Err(failure::of_call(&reached, error, None)),
    };
    RelayedResult::new(result).map_err(|error| failure::invalid(&reached, &error.to_string()))
}

async fn send(
    cx: &Cx,
    reached: &Reached,
    name: &str,
    members: &[&str],
) -> Result<std::result::Result<bytes::Bytes, UpstreamError>> {
    let settings = reached.member.settings();
    let (key, alive) = ConnectionKey::of_call(&settings, reached.shared.rules, cx.call());
    let lease = reached.member.runtime.acquire(&key, &alive).await;
    let lease = lease.map_err(|error| failure::of_acquire(reached, error))?;
    let meta = meta::members(cx.call(), &reached.shared.id, None, None)?;
    let request = RelayRequest::new(Method::Complete.as_str())
        .params(members)
        .meta(&meta)
        .name(name)
        .class(lease.connection().class())
        .timeout(TIMEOUT)
        .max_total_timeout(TIMEOUT);
    let mut exchange = match lease.connection().client.relay(&request).await {
        Ok(exchange) => exchange,
        Err(error) => return Ok(Err(error)),
    };
    loop {
        match exchange.next().await {
            Ok(RelayEvent::Outcome(RelayOutcome::Complete(result))) => return Ok(Ok(result)),
            Ok(RelayEvent::Outcome(_)) => {
                return Err(failure::invalid(reached, "a completion cannot request input"));
            }
            // A completion has no progress, and an input request in it is dropped.
            Ok(_) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
}
