//! A server on standard input and output whose tools sleep, echo, print and panic.

use std::{error::Error, io::Write, time::Duration};

use outlive::server::{Args, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

#[derive(Deserialize, JsonSchema)]
struct Nap {
    ms: u64,
}

async fn nap(Args(nap): Args<Nap>) -> &'static str {
    sleep(Duration::from_millis(nap.ms)).await;
    "rested"
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(Args(echo): Args<Echo>) -> String {
    echo.text
}

/// Writes to standard output in every way a handler might.
#[expect(clippy::print_stdout, reason = "the tool writes to standard output on purpose")]
async fn noisy() -> outlive::server::Result<&'static str> {
    println!("printed by a handler");
    print!("without an end of line");
    std::io::stdout().flush()?;
    eprintln!("said on standard error");
    let child = std::process::Command::new("echo").arg("printed by a child").status()?;
    assert!(child.success());
    Ok("quiet")
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "output after serving must not reach standard output either"
)]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder("process", "1")
        .tool(Tool::new("nap", nap))
        .tool(Tool::new("echo", echo))
        .tool(Tool::new("noisy", noisy))
        .tool(Tool::new("panic", async || -> &'static str { panic!("on purpose") }))
        .build()?;
    server.serve_stdio().await?;
    println!("printed after the end");
    Ok(())
}
