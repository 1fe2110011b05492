//! The measured client: `bench client VERSION CONNECTIONS IN_FLIGHT (URL | -- PROGRAM ARGUMENT…)`.
//!
//! It prints `ready`. Then, for every line with a number of milliseconds, it calls `echo` for that
//! time and prints the number of responses. `peers` has the same program for rmcp's client.

use std::{
    io::{self, BufRead},
    iter,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use outlive::{
    client::{Client, Target, request::result_text, transport::ChildProcess},
    wire::Version,
};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::{messages::TEXT, serve};

/// Calls until standard input ends.
#[expect(clippy::print_stdout, reason = "the parent process reads it from standard output")]
pub(crate) fn run(
    version: &str,
    connections: usize,
    in_flight: usize,
    target: &[&str],
) -> Result<()> {
    let runtime = serve::runtime()?;
    let clients = runtime.block_on(connect(version, connections, target))?;
    println!("ready");
    for line in io::stdin().lock().lines() {
        let time = Duration::from_millis(line?.parse()?);
        println!("{}", runtime.block_on(call(&clients, in_flight, time))?);
    }
    Ok(())
}

async fn connect(version: &str, connections: usize, target: &[&str]) -> Result<Vec<Client>> {
    let version =
        Version::parse(version).with_context(|| format!("unknown version `{version}`"))?;
    let mut clients = Vec::new();
    for _ in 0..connections {
        let target = match target {
            [url] => Target::from(*url),
            ["--", program, arguments @ ..] => {
                Target::from(ChildProcess::new(*program).args(arguments.iter().copied()))
            }
            _ => bail!("name a server by its URL, or by `--`, a program and its arguments"),
        };
        let connecting =
            Client::builder("bench", "1.0.0").protocol_version(version).connect(target);
        clients.push(Box::pin(connecting).await?);
    }
    Ok(clients)
}

/// Arguments of the tool.
#[derive(Serialize)]
struct Echo {
    message: &'static str,
}

/// Keeps `in_flight` calls in flight on each connection and returns the number of responses.
async fn call(clients: &[Client], in_flight: usize, time: Duration) -> Result<u64> {
    let end = Instant::now() + time;
    let mut callers = JoinSet::new();
    for client in clients.iter().flat_map(|client| iter::repeat_n(client, in_flight)) {
        let client = client.clone();
        callers.spawn(async move {
            let mut answered = 0_u64;
            while Instant::now() < end {
                let result = client.call_tool("echo", Echo { message: TEXT }).await?;
                ensure!(result_text(&result) == TEXT, "not the response to our call: {result:?}");
                answered += 1;
            }
            anyhow::Ok(answered)
        });
    }
    let mut answered = 0;
    while let Some(done) = callers.join_next().await {
        answered += done??;
    }
    Ok(answered)
}
