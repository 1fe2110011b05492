//! What can be typed: figures by default, and the parts that they are taken with.

use std::{fs, process::ExitCode, str::FromStr, time::Duration};

use anyhow::{Context, Result, bail};

use crate::{
    client, echo::Path, machine::pin, messages, peers::Wanted, place::Kind, serve, soak, suite,
};

const HELP: &str = "\
Measures what calls, streams and tasks cost, beside bare servers and beside peers.

  cargo xtask bench [OPTIONS]

  --rounds N     rounds of paired slices (default 24)
  --quick        short slices, few rounds, few streams: to see that it works
  --only SUITE   one suite alone; repeatable, or several with commas between them
  --peers NAMES  these peers alone, of benches/peers.toml: rmcp,turbomcp,pmcp,typescript,fastmcp
  --no-peers     no peers: nothing has to be built or installed
  --figure NAME  of the suite `tasks`, one figure alone: creations, lives, journals, http, polls,
                 parked, stream or streams
  --store STORE  where the tasks of `tasks` are kept: sqlite (default) or postgres
  --json FILE    writes everything there too, with every single slice

The report is Markdown: for each suite a table of ratios (the figures to compare: medians of slices
side by side, with quartiles, and what became of disturbed rounds) and a table of the targets' own
figures (of this machine at that time), then a line for each bar. A bar that is not kept is a failure.
Peers that cannot be built or installed are left out, and the report says so.

Suites:
";

const MORE: &str = "
  cargo xtask bench soak [--connections N] [--rate N] [--minutes N]
                 holds load: so many connections (8000), so many requests a second of a stated mix
                 (2000), for so long (10); clients and server are processes of their own. Fails on
                 any error, and if memory grows from the first minute to the last.

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
        ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            for suite in suite::SUITES {
                println!("  {:<13}  {}", suite.name, suite.about);
            }
            print!("{MORE}");
        }
        ["soak", options @ ..] => return soak::run(options),
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
            let (plan, json) = plan(words)?;
            let report = suite::run(&plan)?;
            print!("{report}");
            if let Some(file) = json {
                let text = serde_json::to_string_pretty(&report)?;
                fs::write(file, text).with_context(|| format!("could not write {file}"))?;
            }
            if !report.is_good() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is to be measured, and where to write it as JSON.
fn plan<'a>(words: &[&'a str]) -> Result<(suite::Plan, Option<&'a str>)> {
    let mut plan = suite::Plan {
        rounds: 24,
        slice: Duration::from_millis(300),
        held: 5_000,
        stored: 1_000_000,
        filled: 20_000,
        parked: 100_000,
        peers: Wanted::All,
        only: Vec::new(),
        store: Kind::Sqlite,
        figure: None,
    };
    let mut json = None;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
        match *word {
            "--rounds" => plan.rounds = number(value()?)?,
            "--quick" => {
                (plan.rounds, plan.slice, plan.held) = (6, Duration::from_millis(100), 1_000);
                (plan.stored, plan.filled, plan.parked) = (100_000, 2_000, 10_000);
            }
            "--store" => plan.store = value()?.parse()?,
            "--figure" => plan.figure = Some(value()?.to_string()),
            "--json" => json = Some(*value()?),
            "--no-peers" => plan.peers = Wanted::None,
            "--peers" => {
                let names = value()?.split(',').map(|name| name.trim().to_owned());
                plan.peers = Wanted::Named(names.collect());
            }
            "--only" => {
                for name in value()?.split(',') {
                    if !suite::SUITES.iter().any(|suite| suite.name == name) {
                        let names: Vec<_> = suite::SUITES.iter().map(|suite| suite.name).collect();
                        bail!("`--only {name}`: there are {}", names.join(", "));
                    }
                    plan.only.push(name.to_owned());
                }
            }
            _ => bail!("`{word}` is not known here; `--help` tells what is"),
        }
    }
    if plan.rounds == 0 {
        bail!("`--rounds 0` measures nothing");
    }
    Ok((plan, json))
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
