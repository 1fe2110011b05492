//! Starts the handler of a tool and converts its return value into a result.

use std::{future::ready, sync::Arc};

use outlive_protocol::{
    CallFuture, MethodResult, Outcome, ProtocolError, RelayedKind, RelayedResult,
};
use outlive_wire::CallToolResult;
use serde_json::value::RawValue;

use crate::server::{
    error::Error,
    exec::handler_run::{Finish, Finished, HandlerRun},
    extract::{
        cx::Cx,
        extractor::{Rejection, RejectionKind},
        handler::Handler,
        response::{IntoToolResult, Returned},
    },
    register::registered_tool::ToolSchema,
    run::replay_policy::ReplayPolicy,
};

/// Starts a handler without a run.
pub(crate) fn start<M, H>(handler: &H, cx: &Cx, schema: &Arc<ToolSchema>) -> CallFuture
where
    H: Handler<M>,
    H::Output: IntoToolResult,
{
    match handler.start(cx) {
        Ok(future) => {
            let output = schema.output.is_some().then(|| Arc::clone(schema));
            Box::pin(async move {
                match future.await.into_returned() {
                    Ok(Returned::Result(result)) => Ok(finish(result, output.as_deref())),
                    Ok(Returned::Relayed(result)) => Ok(relayed(result)),
                    Ok(Returned::Ask(_)) => Err(ProtocolError::internal(
                        "a handler without a run returned input requests",
                    )),
                    Err(error) => error.into_tool_error().map(tool_result),
                }
            })
        }
        Err(rejection) => Box::pin(ready(reject(rejection, cx, schema))),
    }
}

/// Starts a handler that emits segments and is not replayed.
pub(crate) fn start_emitting<M, H>(handler: &H, cx: &Cx, schema: &Arc<ToolSchema>) -> CallFuture
where
    H: Handler<M>,
    H::Output: IntoToolResult,
{
    let (cx, run) = cx.with_run();
    let work = start(handler, &cx, schema);
    Box::pin(async move {
        let mut outcome = work.await?;
        run.merge_segments(&mut outcome);
        Ok(outcome)
    })
}

/// Starts a handler that can be replayed.
pub(crate) fn start_durable<M, H>(handler: &Arc<H>, cx: &Cx, schema: &Arc<ToolSchema>) -> CallFuture
where
    M: 'static,
    H: Handler<M>,
    H::Output: IntoToolResult,
{
    match HandlerRun::start(cx, handler, Arc::clone(schema)) {
        Ok(run) => Box::pin(run),
        Err((rejection, schema)) => Box::pin(ready(reject(rejection, cx, &schema))),
    }
}

impl<R: IntoToolResult> Finish<R> for Arc<ToolSchema> {
    fn finish(&self, _cx: &Cx, returned: R) -> Result<Finished, ProtocolError> {
        match returned.into_returned() {
            Ok(Returned::Result(result)) => Ok(Finished::Outcome(finish(result, Some(self)))),
            Ok(Returned::Relayed(result)) => Ok(Finished::Outcome(relayed(result))),
            Ok(Returned::Ask(requests)) => Ok(Finished::Input(requests)),
            Err(error) => error.into_tool_error().map(tool_result).map(Finished::Outcome),
        }
    }

    fn give_up(&self, _cx: &Cx, error: Error) -> Result<Outcome, ProtocolError> {
        error.into_tool_error().map(tool_result)
    }

    fn replay(&self) -> &ReplayPolicy {
        &self.replay
    }
}

/// Checks a result against the output schema of its tool.
fn finish(result: CallToolResult, schema: Option<&ToolSchema>) -> Outcome {
    if let Some(schema) = schema
        && result.is_error != Some(true)
    {
        let structured = result.structured_content.as_deref().map_or("null", RawValue::get);
        if let Err(violation) = schema.check_output(structured) {
            tracing::error!(tool = schema.name, %violation, "result does not match the tool's output schema");
            return failed(format!(
                "the result of the tool does not match its output schema: {violation}"
            ));
        }
    }
    tool_result(result)
}

/// Returns invalid arguments as a tool error, so that the model can correct them.
fn reject(rejection: Rejection, cx: &Cx, schema: &ToolSchema) -> Result<Outcome, ProtocolError> {
    match rejection.0 {
        RejectionKind::Refused(error) => Err(error),
        RejectionKind::Arguments(error) => {
            let arguments = cx.call().arguments()?;
            Ok(failed(schema.input.explain(arguments, &error).to_string()))
        }
    }
}

/// Returns a tool error as the outcome.
pub(crate) fn failed(text: String) -> Outcome {
    tool_result(CallToolResult::error(text))
}

/// Returns the result of another server, which has checked it.
fn relayed(result: Box<RelayedResult>) -> Outcome {
    Outcome::Complete(MethodResult::Relayed(result, RelayedKind::Tool))
}

fn tool_result(result: CallToolResult) -> Outcome {
    Outcome::Complete(MethodResult::Tool(result))
}
