//! `tools/call`: finds the tool, checks the call, and executes it.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, ProtocolError};

use crate::server::{
    caller_key::caller_key,
    dispatch::{core::ServerCore, fallback_tools},
    exec::{executable::Invocation, execute::execute},
    extract::cx::Arguments,
    meter, param_headers,
    register::{catalog::Lookup, registered_tool::RegisteredTool, tool_handler::failed},
    throttle::Permit,
};

/// Starts a call of a tool.
pub(crate) fn call(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    let prepared =
        call.name().and_then(|name| match core.registered.tools.get(&name, call.principal()) {
            Some(tool) => prepare(core, &call, &tool),
            None => unregistered(core, &call, &name),
        });
    let started = prepared.and_then(|prepared| start(core, call, prepared));
    started.unwrap_or_else(|error| Box::pin(ready(Err(error))))
}

enum Prepared {
    Run(Invocation),
    /// A call of a fallback tool, or of a tool that the catalog does not have in memory.
    Work(CallFuture),
    /// The arguments do not match the schema: a tool error, so that the model can correct them.
    Reply(String),
}

fn start(
    core: &ServerCore,
    call: Arc<Call>,
    prepared: Prepared,
) -> Result<CallFuture, ProtocolError> {
    match prepared {
        Prepared::Run(invocation) => execute(&core.env, call, invocation, Arguments::Json),
        Prepared::Work(work) => Ok(work),
        Prepared::Reply(text) => Ok(Box::pin(ready(Ok(failed(text))))),
    }
}

/// Prepares a call of a tool that is not registered.
fn unregistered(
    core: &Arc<ServerCore>,
    call: &Arc<Call>,
    name: &str,
) -> Result<Prepared, ProtocolError> {
    if let Some(work) = fallback_tools::start(core, call, name) {
        return Ok(Prepared::Work(work));
    }
    match core.catalog_tool(call, name) {
        Lookup::Found(tool) => in_catalog(core, call, name, Some(&tool)),
        Lookup::Unknown => in_catalog(core, call, name, None),
        Lookup::Pending(pending) => {
            let (core, call, name) = (Arc::clone(core), Arc::clone(call), name.to_owned());
            Ok(Prepared::Work(Box::pin(async move {
                let tool = pending.await?;
                let prepared = in_catalog(&core, &call, &name, tool.as_deref())?;
                start(&core, call, prepared)?.await
            })))
        }
    }
}

/// Prepares a call of a tool that the catalog returned.
fn in_catalog(
    core: &ServerCore,
    call: &Call,
    name: &str,
    tool: Option<&RegisteredTool>,
) -> Result<Prepared, ProtocolError> {
    if let Some(tool) = tool {
        return prepare(core, call, tool);
    }
    meter::unknown_tool(call, name);
    let suggestion = core.registered.tools.close_to(name, call.principal());
    Err(ProtocolError::UnknownTool { name: name.to_owned(), suggestion })
}

fn prepare(
    core: &ServerCore,
    call: &Call,
    tool: &RegisteredTool,
) -> Result<Prepared, ProtocolError> {
    tool.meter.watch(call, core.env.profile.clock.now());
    tool.access.check(call.principal())?;
    // Limits apply before validation, because invalid calls cost as much as valid ones.
    let permits = enter(core, tool, call)?;
    let arguments = call.arguments()?;
    if let Some(headers) = call.mirrored_headers() {
        param_headers::check(tool.schema.input.headers(), arguments, headers)?;
    }
    Ok(match tool.schema.check_input(arguments) {
        Ok(()) => Prepared::Run(Invocation { target: Arc::clone(&tool.exec), permits }),
        Err(violation) => Prepared::Reply(violation),
    })
}

/// Counts a call against the limits of its tool. Allocates only if the tool has limits.
fn enter(
    core: &ServerCore,
    tool: &RegisteredTool,
    call: &Call,
) -> Result<Option<Vec<Permit>>, ProtocolError> {
    let limits =
        [(&core.callers, true), (&tool.limits.all, false), (&tool.limits.per_caller, true)];
    if limits.iter().all(|(throttle, _)| throttle.is_none()) {
        return Ok(None);
    }
    let now = core.env.profile.clock.now();
    let mut permits = Vec::new();
    for (throttle, per_caller) in limits {
        let Some(throttle) = throttle else { continue };
        let key = if per_caller { caller_key(call) } else { String::new() };
        let permit = throttle.enter(&key, now).map_err(|busy| ProtocolError::OverLimit {
            limit: busy.what.name(per_caller).into(),
            retry_after: busy.retry_after,
        })?;
        permits.push(permit);
    }
    Ok(Some(permits))
}
