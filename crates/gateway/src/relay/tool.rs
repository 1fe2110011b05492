//! The handler of an upstream's tool.

use std::{sync::Arc, time::Duration};

use outlive::{
    client::relay::ParamHeaders,
    server::{Durable, Result, response::RelayedResult},
    wire::Method,
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{call::relay, exchange::Request, journal::CallPolicy, route::Route};

/// A tool of an upstream, as its handler knows it.
#[derive(Clone, Debug)]
pub(crate) struct ToolRoute {
    pub(crate) route: Route,
    /// The upstream's own name.
    pub(crate) name: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_result: usize,
    pub(crate) headers: ParamHeaders,
    /// Whether a call may become a task of the server.
    pub(crate) may_be_task: bool,
    /// Policy of calls after a crash.
    pub(crate) policy: CallPolicy,
}

/// Name of the tool that calls another one.
pub(crate) const CALL_TOOL: &str = "call_tool";

/// Arguments of `call_tool`.
#[derive(Deserialize)]
pub(crate) struct Inner<'a> {
    /// Name of the tool, as `find_tools` returns it.
    pub(crate) name: String,
    /// Arguments of the tool.
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
}

/// Calls a tool of an upstream.
pub(crate) async fn call_tool(cx: Durable, tool: Arc<ToolRoute>) -> Result<RelayedResult> {
    let reached = tool.route.reach()?;
    let call = cx.call();
    let arguments = call.arguments()?;
    // A call through `call_tool` has the arguments one level deeper.
    let arguments = match call.name()? == CALL_TOOL && tool.name != CALL_TOOL {
        true => {
            let inner: Inner<'_> = serde_json::from_str(arguments)?;
            inner.arguments.map_or("{}", RawValue::get)
        }
        false => arguments,
    };
    let headers = tool.headers.values(arguments);
    let name = Value::from(tool.name.as_str()).to_string();
    let members = [r#""name":"#, name.as_str(), r#","arguments":"#, arguments];
    let request = Request {
        method: Method::ToolsCall,
        members: &members,
        arguments,
        name: &tool.name,
        headers: &headers,
        timeout: tool.timeout,
        wants_progress: tool.may_be_task || call.progress_token().is_some(),
        policy: Some(tool.policy),
        max_result: tool.max_result,
        uri: None,
    };
    relay(&cx, &reached, &request).await
}
