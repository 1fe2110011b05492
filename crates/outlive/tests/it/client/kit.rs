//! Our server on every transport, for the client tests.

use std::time::Duration;

use outlive::{
    Form,
    client::{Client, ClientBuilder, Target, transport::VersionCache},
    server::{Args, Cx, Durable, Prompt, Resource, Result, Server, Tool, http::HttpConfig},
    tool,
    wire::Version,
};
use serde::{Deserialize, Serialize};

/// The transport between client and server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Memory,
    Http,
}

/// Every transport with the pinned protocol version. `None` lets the client negotiate.
pub(super) const EVERYWHERE: [(Wire, Option<Version>); 10] = [
    (Wire::Memory, None),
    (Wire::Memory, Some(Version::V2026_07_28)),
    (Wire::Memory, Some(Version::V2025_11_25)),
    (Wire::Memory, Some(Version::V2025_03_26)),
    (Wire::Memory, Some(Version::V2024_11_05)),
    (Wire::Http, None),
    (Wire::Http, Some(Version::V2026_07_28)),
    (Wire::Http, Some(Version::V2025_11_25)),
    (Wire::Http, Some(Version::V2025_06_18)),
    (Wire::Http, Some(Version::V2025_03_26)),
];

/// Returns the builder of a client with its own version cache.
pub(super) fn builder() -> ClientBuilder {
    Client::builder("test", "1").version_cache(VersionCache::new())
}

/// A server on one transport. Dropping the value stops the server.
pub(super) struct Place {
    pub(super) target: Target,
    _serving: Option<outlive::server::http::HttpServer>,
}

impl Place {
    pub(super) async fn of(server: &Server, wire: Wire) -> Self {
        match wire {
            Wire::Memory => Self { target: server.into(), _serving: None },
            Wire::Http => {
                let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
                Self { target: serving.url().into(), _serving: Some(serving) }
            }
        }
    }

    pub(super) async fn connect(&self, builder: ClientBuilder, version: Option<Version>) -> Client {
        let builder = match version {
            Some(version) => builder.protocol_version(version),
            None => builder,
        };
        builder.connect(self.target.clone()).await.unwrap()
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
pub(super) struct Sum {
    a: i64,
    b: i64,
}

#[derive(Deserialize, Serialize, schemars::JsonSchema, Form, PartialEq, Debug)]
pub(super) struct Name {
    pub(super) name: String,
}

/// Elicits a name.
#[tool]
async fn greet(cx: Durable) -> Result<String> {
    let who: Name = cx.elicit("who", "Who are you?").await?;
    Ok(format!("Hello, {}!", who.name))
}

/// Returns the tool that elicits a name.
pub(super) fn greet_tool() -> Tool {
    greet::tool()
}

/// Returns a server with tools, a resource and a prompt.
pub(super) fn server() -> Server {
    builder_of_server().build().unwrap()
}

pub(super) fn builder_of_server() -> outlive::server::ServerBuilder {
    Server::builder("here", "1")
        .tool(Tool::new("add", |Args(sum): Args<Sum>| async move { (sum.a + sum.b).to_string() }))
        .tool(Tool::new("slow", |cx: Cx| async move {
            cx.progress(1.0, 2.0, "half");
            cx.progress(2.0, 2.0, "whole");
            "done".to_owned()
        }))
        .tool(Tool::new("never", || async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            "never".to_owned()
        }))
        .tool(greet::tool())
        .resource(Resource::new("file:///a", "a", || async { "contents" }))
        .prompt(Prompt::new("hi", || async { "say hi" }))
}
