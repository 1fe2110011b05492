//! Serves every feature over HTTP: `PORT=8001 everything-server`, or `--stdio`.
//!
//! Tasks are in memory, or in a store with `--store URL`. `--partials` enables partial results and
//! response modes; all other settings of tasks are defaults.

use std::error::Error;

use outlive::server::{
    http::HttpConfig,
    tasks::{ResponseMode, TaskConfig},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--store").skip(1);
    let mut tasks = match arguments.next() {
        Some(url) => TaskConfig::open(&url).await?,
        None => TaskConfig::in_memory(),
    };
    if std::env::args().any(|argument| argument == "--partials") {
        let modes = [ResponseMode::Immediate, ResponseMode::Streaming];
        tasks = tasks.response_modes(modes).partial_results(true);
    }
    let server = outlive_conformance::everything(tasks)?;
    if std::env::args().any(|argument| argument == "--stdio") {
        return Ok(server.serve_stdio().await?);
    }
    let port: u16 = std::env::var("PORT").ok().map_or(Ok(8001), |port| port.parse())?;
    let serving = server.serve_http(("127.0.0.1", port), HttpConfig::new()).await?;
    eprintln!("listening on {}", serving.url());
    Ok(serving.wait().await?)
}
