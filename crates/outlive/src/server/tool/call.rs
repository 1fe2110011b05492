//! How a call of a tool is checked, run and answered.

use std::{future::ready, sync::Arc};

use outlive_protocol::{Call, CallFuture, MethodResult, Outcome, ProtocolError};
use outlive_wire::CallToolResult;
use serde_json::value::RawValue;

use super::ToolEntry;
use crate::server::{
    Cx, Error,
    core::Core,
    cx::Arguments,
    durable::{self, Ended, Ending, Inline, Upgrade},
    extract::{Rejection, RejectionKind},
    handler::Handler,
    meter,
    output::{IntoToolResult, Returned},
    param_headers, tasks,
    throttle::Permit,
};

/// Starts a tool: finds it, checks what can be checked, and runs its handler.
pub(in crate::server) fn call(core: &Arc<Core>, call: Arc<Call>) -> CallFuture {
    match prepare(core, &call) {
        Ok(Prepared::Run(entry, permits)) => {
            let course = match tasks::course(core, &call, &entry) {
                Ok(course) => course,
                Err(fault) => return Box::pin(ready(Err(fault))),
            };
            let cx = Cx::new(call, Arc::clone(core), Arguments::Json);
            let tool = Arc::clone(&entry);
            course.take(cx, &entry, move |cx| {
                let work = tool.start(cx, &tool);
                match permits {
                    None => work,
                    Some(permits) => Box::pin(async move {
                        let result = work.await;
                        drop(permits);
                        result
                    }),
                }
            })
        }
        Ok(Prepared::Answer(text)) => Box::pin(ready(Ok(failed(text)))),
        Err(fault) => Box::pin(ready(Err(fault))),
    }
}

enum Prepared {
    Run(Arc<ToolEntry>, Option<Vec<Permit>>),
    Answer(String),
}

fn prepare(core: &Core, call: &Call) -> Result<Prepared, ProtocolError> {
    let name = call.name()?;
    let Some(entry) = core.tools.get(&name, call.principal()) else {
        meter::unknown_tool(call, &name);
        let meant = core.tools.close_to(&name, call.principal());
        return Err(ProtocolError::UnknownTool { name: name.into_owned(), suggestion: meant });
    };
    entry.meter.watch(call, core.profile.clock.now());
    entry.access.check(call.principal())?;
    // Before anything is checked: calls that do not fit count too, and cost their sender as much.
    let permits = core.enter(&entry, call)?;
    let arguments = call.arguments()?;
    if let Some(headers) = call.mirrored_headers() {
        param_headers::check(entry.input.headers(), arguments, headers)?;
    }
    let checked = match entry.typed_input {
        true => entry.input.check_typed(arguments),
        false => entry.input.check(arguments),
    };
    Ok(match checked {
        Ok(()) => {
            durable::open(core, call, &entry.upgrade)?;
            Prepared::Run(entry, permits)
        }
        Err(violation) => Prepared::Answer(violation.to_string()),
    })
}

/// Runs a handler and makes a result of what it returns.
pub(super) fn start<M, H>(handler: &H, cx: &Cx, entry: &Arc<ToolEntry>) -> CallFuture
where
    H: Handler<M>,
    H::Output: IntoToolResult,
{
    match handler.start(cx) {
        Ok(future) => {
            let output = entry.output.is_some().then(|| Arc::clone(entry));
            Box::pin(async move {
                match future.await.into_tool_result() {
                    Ok(result) => Ok(finish(result, output.as_deref())),
                    Err(error) => error.into_tool_error().map(failed),
                }
            })
        }
        Err(rejection) => Box::pin(ready(reject(rejection, cx, entry))),
    }
}

/// Runs a handler that adds to its result while it works.
pub(super) fn start_emitting<M, H>(handler: &H, cx: &Cx, entry: &Arc<ToolEntry>) -> CallFuture
where
    H: Handler<M>,
    H::Output: IntoToolResult,
{
    let (work, cx) = (start(handler, cx, entry), cx.clone());
    Box::pin(async move { work.await.map(|outcome| durable::merged(&cx, outcome)) })
}

/// Runs a handler that may ask its client.
pub(super) fn start_durable<M, H>(handler: &Arc<H>, cx: &Cx, entry: &Arc<ToolEntry>) -> CallFuture
where
    M: 'static,
    H: Handler<M>,
    H::Output: IntoToolResult,
{
    match Inline::start(cx, handler, Arc::clone(entry)) {
        Ok(inline) => Box::pin(inline),
        Err((rejection, entry)) => Box::pin(ready(reject(rejection, cx, &entry))),
    }
}

impl<R: IntoToolResult> Ending<R> for Arc<ToolEntry> {
    fn finish(&self, _cx: &Cx, returned: R) -> Result<Ended, ProtocolError> {
        match returned.into_returned() {
            Ok(Returned::Result(result)) => Ok(Ended::Outcome(finish(result, Some(self)))),
            Ok(Returned::Ask(questions)) => Ok(Ended::Ask(questions)),
            Err(error) => error.into_tool_error().map(|text| Ended::Outcome(failed(text))),
        }
    }

    fn give_up(&self, _cx: &Cx, error: Error) -> Result<Outcome, ProtocolError> {
        error.into_tool_error().map(failed)
    }

    fn upgrade(&self) -> &Upgrade {
        &self.upgrade
    }
}

/// Holds a result against the schema that was promised for it.
fn finish(result: CallToolResult, entry: Option<&ToolEntry>) -> Outcome {
    if let Some(entry) = entry
        && let Some(schema) = &entry.output
        && result.is_error != Some(true)
    {
        let structured = result.structured_content.as_deref().map_or("null", RawValue::get);
        let checked = match entry.typed_output {
            true => schema.check_typed(structured),
            false => schema.check(structured),
        };
        if let Err(violation) = checked {
            tracing::error!(tool = entry.info.name, %violation, "a result does not fit its output schema");
            return failed(format!(
                "the tool's own result does not fit its output schema: {violation}"
            ));
        }
    }
    Outcome::Complete(MethodResult::Tool(result))
}

/// Arguments that do not fit are a result, so that the model can correct itself.
fn reject(rejection: Rejection, cx: &Cx, entry: &ToolEntry) -> Result<Outcome, ProtocolError> {
    match rejection.0 {
        RejectionKind::Refused(fault) => Err(fault),
        RejectionKind::Arguments(error) => {
            let arguments = cx.call().arguments()?;
            Ok(failed(entry.input.explain(arguments, &error).to_string()))
        }
    }
}

fn failed(text: String) -> Outcome {
    Outcome::Complete(MethodResult::Tool(CallToolResult::error(text)))
}
