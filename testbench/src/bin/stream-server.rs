//! A server with a tool that emits, for clients that do not know partial results.
//!
//! `stream-server on|off` serves HTTP on a free port, prints its address, and ends with its
//! standard input. `on` enables all response modes and partial results.

use std::{env, error::Error, io::Read, time::Duration};

use outlive::server::{
    CallToolResult, Durable, Result, Server, Tool,
    http::HttpConfig,
    tasks::{ResponseMode, TaskConfig, TaskPolicy},
};

/// Emits three lines, with pauses.
async fn report(cx: Durable) -> Result<CallToolResult> {
    for line in ["one", "two", "three"] {
        cx.emit(line).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(CallToolResult::text("that is all"))
}

async fn plain() -> &'static str {
    "here it is"
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "the parent process reads the address from standard output"
)]
async fn main() -> Result<(), Box<dyn Error>> {
    let is_on = match env::args().nth(1).as_deref() {
        Some("on") => true,
        Some("off") => false,
        _ => return Err("usage: stream-server on|off".into()),
    };
    std::thread::spawn(|| {
        let mut input = std::io::stdin();
        while matches!(input.read(&mut [0; 64]), Ok(1..)) {}
        std::process::exit(0);
    });
    let mut tasks = TaskConfig::in_memory().poll_interval(Duration::from_millis(20));
    if is_on {
        let modes = [ResponseMode::Immediate, ResponseMode::Streaming];
        tasks = tasks.response_modes(modes).store_immediate_results(true).partial_results(true);
    }
    let server = Server::builder("streams", "1")
        .tasks(tasks)
        .tool(Tool::new("report", report).task(TaskPolicy::Always).streams_content())
        .tool(Tool::new("plain", plain))
        .build()?;
    let serving = server.serve_http("127.0.0.1:0", HttpConfig::new()).await?;
    println!("{}", serving.address());
    Ok(serving.wait().await?)
}
