//! `tools/call`: finds the tool, checks the call, and executes it.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, ProtocolError};

use crate::server::{
    dispatch::core::ServerCore,
    exec::{executable::Invocation, execute::execute},
    extract::cx::Arguments,
    meter, param_headers,
    register::tool_handler::failed,
};

/// Starts a call of a tool.
pub(crate) fn call(core: &Arc<ServerCore>, call: Arc<Call>) -> CallFuture {
    let started = prepare(core, &call).and_then(|prepared| match prepared {
        Prepared::Run(invocation) => execute(&core.env, call, invocation, Arguments::Json),
        Prepared::Reply(text) => Ok(Box::pin(ready(Ok(failed(text)))) as CallFuture),
    });
    started.unwrap_or_else(|error| Box::pin(ready(Err(error))))
}

enum Prepared {
    Run(Invocation),
    /// The arguments do not match the schema: a result, so that the model can correct them.
    Reply(String),
}

fn prepare(core: &ServerCore, call: &Call) -> Result<Prepared, ProtocolError> {
    let name = call.name()?;
    let Some(tool) = core.catalog.find(&name, call.principal()) else {
        meter::unknown_tool(call, &name);
        let suggestion = core.catalog.tools.close_to(&name, call.principal());
        return Err(ProtocolError::UnknownTool { name: name.into_owned(), suggestion });
    };
    tool.meter.watch(call, core.env.profile.clock.now());
    tool.access.check(call.principal())?;
    // Before anything is checked: invalid calls count too, and cost their caller as much.
    let permits = core.enter(&tool, call)?;
    let arguments = call.arguments()?;
    if let Some(headers) = call.mirrored_headers() {
        param_headers::check(tool.schema.input.headers(), arguments, headers)?;
    }
    Ok(match tool.schema.check_input(arguments) {
        Ok(()) => Prepared::Run(Invocation { target: Arc::clone(&tool.exec), permits }),
        Err(violation) => Prepared::Reply(violation),
    })
}
