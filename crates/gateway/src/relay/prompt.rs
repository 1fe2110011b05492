//! The handler of an upstream's prompt.

use std::sync::Arc;

use outlive::{
    server::{Durable, Result, response::RelayedResult},
    wire::Method,
};
use serde_json::Value;

use super::{call::relay, exchange::Request, route::Route};

/// A prompt of an upstream, as its handler knows it.
#[derive(Clone, Debug)]
pub(crate) struct PromptRoute {
    pub(crate) route: Route,
    /// The upstream's own name.
    pub(crate) name: String,
}

/// Gets a prompt of an upstream.
pub(crate) async fn get_prompt(cx: Durable, prompt: Arc<PromptRoute>) -> Result<RelayedResult> {
    let reached = prompt.route.reach()?;
    let call = cx.call();
    let settings = reached.member.settings();
    let name = Value::from(prompt.name.as_str()).to_string();
    let arguments = call.arguments()?;
    let members = [r#""name":"#, name.as_str(), r#","arguments":"#, arguments];
    let request = Request {
        method: Method::PromptsGet,
        members: &members,
        arguments,
        name: &prompt.name,
        headers: &[],
        timeout: settings.policy.timeout,
        wants_progress: call.progress_token().is_some(),
        policy: None,
        max_result: settings.max_result,
        uri: None,
    };
    relay(&cx, &reached, &request).await
}
