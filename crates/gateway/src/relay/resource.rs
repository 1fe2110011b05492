//! The handler of an upstream's resources.

use outlive::{
    server::{Durable, Result, response::RelayedResult},
    wire::Method,
};
use serde_json::Value;

use super::{call::relay, exchange::Request, route::Route, uris};

/// Reads a resource of an upstream.
pub(crate) async fn read_resource(cx: Durable, route: Route) -> Result<RelayedResult> {
    let reached = route.reach()?;
    let call = cx.call();
    let settings = reached.member.settings();
    let shown = call.uri()?;
    let uri = uris::own(&settings.name, &shown);
    let text = Value::from(uri).to_string();
    let members = [r#""uri":"#, text.as_str()];
    let request = Request {
        method: Method::ResourcesRead,
        members: &members,
        arguments: uri,
        name: uri,
        headers: &[],
        timeout: settings.policy.timeout,
        wants_progress: call.progress_token().is_some(),
        policy: None,
        max_result: settings.max_result,
        uri: Some(&shown),
    };
    relay(&cx, &reached, &request).await
}
