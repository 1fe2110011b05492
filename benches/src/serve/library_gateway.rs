//! A gateway as a library, with the settings of the other measured servers.

use std::sync::Arc;

use anyhow::Result;
use outlive::{
    server::{Server, tasks::TaskConfig},
    store::MemoryStore,
};
use outlive_gateway::{Gateway, Upstream};

/// A gateway in front of the server at a URL.
pub(super) async fn start(url: &str) -> Result<(u16, impl Sized)> {
    let gateway = Gateway::builder().upstream(Upstream::url("bench", url).prefix("")).build()?;
    // As in the program, calls may become tasks.
    let tasks = TaskConfig::new(Arc::new(MemoryStore::new()));
    let server = gateway.attach(Server::builder("bench", "1.0.0").tasks(tasks)).build()?;
    gateway.start(&server);
    let serving = server.serve_http("127.0.0.1:0", super::unlimited()).await?;
    Ok((serving.address().port(), (serving, gateway)))
}
