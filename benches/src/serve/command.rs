//! Starts the server with a name.

use super::setting::{TOOLS, listen, runtime, say, unlimited};
use super::{
    asking, control_http, control_stdio, control_streams, control_tasks, growth, library_gateway,
    lifecycle, progress, soak, streams, tasks, tokens,
};
use crate::{echo, messages::TOKEN};
use std::io;

use anyhow::{Result, bail};
use outlive::server::{Server, http::StaticTokens};

/// Runs a server until its standard input ends. Servers with tasks get a place.
pub(crate) fn run(name: &str, place: Option<&str>) -> Result<()> {
    match (name, place) {
        ("control-tasks", Some(place)) => return listen(control_tasks::start(place)),
        ("outlive-tasks", Some(place)) => return tasks::run(place, None),
        ("outlive-streams", Some(place)) => return streams::run(place),
        ("outlive-lifecycle", Some(place)) => return listen(lifecycle::start(place)),
        ("outlive-soak", Some(place)) => return listen(soak::start(place)),
        ("outlive-tools", Some(tools)) => return listen(growth::ours(tools.parse()?)),
        ("outlive-tools-stdio", Some(tools)) => return growth::ours_stdio(tools.parse()?),
        ("outlive-gateway", Some(upstream)) => return listen(library_gateway::start(upstream)),
        // Tasks in its store keep waiting.
        ("outlive-tasks-idle", Some(place)) => return tasks::run(place, Some(0)),
        _ => {}
    }
    match name {
        "control-http" => listen(control_http::start()),
        "control-streams" => listen(control_streams::start()),
        "outlive-http" => listen(outlive_http(echo::server()?)),
        "outlive-full-http" => listen(outlive_full_http()),
        "outlive-tokens-http" => listen(tokens::start()),
        "outlive-telling-http" => tell(),
        "outlive-durable-http" => listen(outlive_http(echo::durable_server()?)),
        "control-payload" => listen(growth::control()),
        "outlive-payload" => listen(growth::ours(1)),
        "control-progress" => listen(progress::control()),
        "outlive-progress" => listen(progress::ours()),
        "control-stdio" => control_stdio::run(),
        "outlive-stdio" => outlive_stdio(),
        "outlive-asking-stdio" => asking::run(),
        _ => bail!(
            "unknown server `{name}`; use control-http, control-streams, control-payload, control-progress, control-stdio, outlive-http, outlive-full-http, outlive-tokens-http, outlive-telling-http, outlive-durable-http, outlive-payload, outlive-progress, outlive-stdio, outlive-asking-stdio; with a place: control-tasks, outlive-tasks, outlive-tasks-idle, outlive-streams, outlive-lifecycle, outlive-soak; with a number: outlive-tools, outlive-tools-stdio; and with a URL: outlive-gateway"
        ),
    }
}

pub(super) async fn outlive_http(server: Server) -> Result<(u16, impl Sized)> {
    let serving = server.serve_http("127.0.0.1:0", unlimited()).await?;
    Ok((serving.address().port(), serving))
}

/// A server with many tools that authenticates its callers.
pub(super) async fn outlive_full_http() -> Result<(u16, impl Sized)> {
    let tokens = StaticTokens::new().with("bench", TOKEN);
    let config = unlimited().authenticator(tokens);
    let serving = echo::server_of(TOOLS)?.serve_http("127.0.0.1:0", config).await?;
    Ok((serving.address().port(), serving))
}

pub(super) fn outlive_stdio() -> Result<()> {
    Ok(runtime()?.block_on(echo::server()?.serve_stdio())?)
}

/// A server that notifies all subscribers of a change for each input line.
fn tell() -> Result<()> {
    let runtime = runtime()?;
    let server = echo::server()?;
    let (port, _serving) = runtime.block_on(outlive_http(server.clone()))?;
    say(&format!("listening {port}"));
    for (number, line) in io::stdin().lines().enumerate() {
        server.add_tool(echo::tool())?;
        say(&format!("{} {number}", line?));
    }
    Ok(())
}
