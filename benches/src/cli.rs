//! What can be typed: figures by default, and the parts that they are taken with.

use std::{process::ExitCode, str::FromStr, time::Duration};

use anyhow::{Context, Result, bail};

use crate::{client, echo::Path, machine::pin, messages, place::Kind, serve, suite};

const HELP: &str = "\
Measures what calls and open streams cost, beside a bare server and a peer.

  cargo xtask bench [OPTIONS]

  --rounds N     rounds of paired slices (default 24)
  --quick        short slices, few rounds, few streams: to see that it works
  --no-peers     leaves rmcp out, which has to be built first
  --only PART    http, stdio, client, memory or tasks
  --figure NAME  of the tasks, one alone: creations, lives, http, polls, parked,
                 stream or streams
  --store STORE  where tasks are kept: sqlite (default) or postgres

  bench serve NAME [PLACE]  runs one of the servers
  bench on CORE …       does what follows on this core
  bench client VERSION CONNECTIONS IN_FLIGHT (URL | -- PROGRAM …)
                        calls for as many milliseconds as each line of its input says
  bench loop PATH N     answers N calls without a transport, for counting instructions:
                        modern-http, durable-http, legacy-http or modern-pipe
";

/// Does what was typed. A bar that is not kept is a failure.
///
/// # Errors
///
/// When that makes no sense, or something could not be measured.
pub fn run(args: impl Iterator<Item = String>) -> Result<ExitCode> {
    let args: Vec<String> = args.collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    do_it(&words)
}

#[expect(clippy::print_stdout, reason = "the report is the product")]
fn do_it(words: &[&str]) -> Result<ExitCode> {
    match words {
        ["help" | "--help" | "-h"] => print!("{HELP}"),
        ["serve", name] => serve::run(name, None)?,
        ["serve", name, place] => serve::run(name, Some(place))?,
        ["on", core, rest @ ..] => {
            pin(number(core)?)?;
            return do_it(rest);
        }
        ["client", version, connections, in_flight, target @ ..] => {
            client::run(version, number(connections)?, number(in_flight)?, target)?;
        }
        ["loop", path, times] => repeat(path, number(times)?)?,
        _ => {
            let report = suite::run(&plan(words)?)?;
            print!("{report}");
            if !report.is_good() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn plan(words: &[&str]) -> Result<suite::Plan> {
    let mut plan = suite::Plan {
        rounds: 24,
        slice: Duration::from_millis(300),
        held: 5_000,
        stored: 1_000_000,
        parked: 100_000,
        peers: true,
        http: true,
        stdio: true,
        client: true,
        memory: true,
        tasks: true,
        store: Kind::Sqlite,
        figure: None,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
        match *word {
            "--rounds" => plan.rounds = number(value()?)?,
            "--quick" => {
                (plan.rounds, plan.slice, plan.held) = (6, Duration::from_millis(100), 1_000);
                (plan.stored, plan.parked) = (100_000, 10_000);
            }
            "--store" => plan.store = value()?.parse()?,
            "--figure" => plan.figure = Some(value()?.to_string()),
            "--no-peers" => plan.peers = false,
            "--only" => {
                let part = *value()?;
                (plan.http, plan.stdio) = (part == "http", part == "stdio");
                (plan.memory, plan.tasks) = (part == "memory", part == "tasks");
                plan.client = part == "client";
                if !["http", "stdio", "client", "memory", "tasks"].contains(&part) {
                    bail!("`--only {part}`: there are http, stdio, client, memory and tasks");
                }
            }
            _ => bail!("`{word}` is not known here; `--help` tells what is"),
        }
    }
    if plan.rounds == 0 {
        bail!("`--rounds 0` measures nothing");
    }
    Ok(plan)
}

fn repeat(path: &str, times: u64) -> Result<()> {
    let path = match path {
        "durable-http" => Path::modern_http(messages::small_modern_call())?.to_durable()?,
        "modern-http" => Path::modern_http(messages::small_modern_call())?,
        "legacy-http" => Path::legacy_http(messages::legacy_call())?,
        "modern-pipe" => Path::modern_pipe(messages::small_modern_call())?,
        _ => bail!(
            "there is no path `{path}`; there are modern-http, durable-http, legacy-http and modern-pipe"
        ),
    };
    path.repeat(times)
}

fn number<T: FromStr>(text: &str) -> Result<T> {
    text.parse().ok().with_context(|| format!("`{text}` is not a number"))
}
