//! The command line: measurements by default, and the parts they consist of.

use std::{fs, process::ExitCode, str::FromStr, time::Duration};

use anyhow::{Context, Result, bail};

use crate::{
    client, echo::Path, machine::pin, messages, place::Kind, serve, soak, suite, wanted::Wanted,
};

const HELP: &str = "\
Measures the cost of calls, streams and tasks, beside bare servers and peers.

  cargo xtask bench [OPTIONS]

  --rounds N     rounds of paired slices (default 24)
  --quick        short slices, few rounds, few streams: to check that it works
  --only SUITE   only this suite; repeatable, or a comma-separated list
  --peers NAMES  only these peers of benches/peers.toml (rmcp,turbomcp,pmcp,typescript,fastmcp) and
                 of benches/gateways.toml (fastmcp,contextforge,mcp-proxy,mcp-gateway,supergateway,
                 mcp-remote)
  --no-peers     no peers: builds and installs nothing
  --figure NAME  only one figure of the suite `tasks`: creations, lives, journals, http, polls,
                 parked, stream or streams
  --store STORE  the store of the suite `tasks`: sqlite (default) or postgres
  --json FILE    also writes all results to FILE, with every slice
  --write        also writes the figures of the plots to docs/performance/data/, and draws the plots
  --plot         measures nothing: draws the plots from docs/performance/data/

The report is Markdown: for each suite a table of ratios (the figures to compare: medians of adjacent
slices, with quartiles and the number of disturbed rounds) and a table of absolute figures (of this
machine at that time), then one line per bar. A missed bar is a failure. The report lists peers that
could not be built or installed.

Suites:
";

const MORE: &str = "
  cargo xtask bench soak [--connections N] [--rate N] [--minutes N]
                 sustained load: N connections (8000), N requests per second of a fixed mix
                 (2000), for N minutes (10); clients and server are separate processes. Fails on
                 any error, and if memory grows from the first minute to the last.

  bench serve NAME [PLACE]  runs one of the servers
  bench on CORE …       runs the rest of the line on this core
  bench client VERSION CONNECTIONS IN_FLIGHT (URL | -- PROGRAM …)
                        calls for the milliseconds that each line of its input has
  bench loop PATH N     handles N calls without a transport, for counting instructions:
                        modern-http, durable-http, legacy-http or modern-pipe
";

/// Runs the command. A missed bar is a failure.
///
/// # Errors
///
/// Returns an error if the arguments are invalid or a measurement fails.
pub fn run(args: impl Iterator<Item = String>) -> Result<ExitCode> {
    let args: Vec<String> = args.collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    do_it(&words)
}

#[expect(clippy::print_stdout, reason = "the report is the output of the program")]
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
            let (plan, output) = plan(words)?;
            let report = suite::run(&plan)?;
            print!("{report}");
            if let Some(file) = output.json {
                let text = serde_json::to_string_pretty(&report)?;
                fs::write(file, text).with_context(|| format!("could not write {file}"))?;
            }
            if output.plotted {
                report.write_plotted()?;
            }
            if !report.is_good() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The files that a measurement writes.
#[derive(Debug, Default)]
struct Output<'a> {
    /// The file of the report as JSON.
    json: Option<&'a str>,
    /// Whether the figures of the plots are written.
    plotted: bool,
}

/// Parses the plan and the output.
fn plan<'a>(words: &[&'a str]) -> Result<(suite::Plan, Output<'a>)> {
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
    let (mut output, mut quick) = (Output::default(), false);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
        match *word {
            "--rounds" => plan.rounds = number(value()?)?,
            "--quick" => {
                quick = true;
                (plan.rounds, plan.slice, plan.held) = (6, Duration::from_millis(100), 1_000);
                (plan.stored, plan.filled, plan.parked) = (100_000, 2_000, 10_000);
            }
            "--store" => plan.store = value()?.parse()?,
            "--figure" => plan.figure = Some(value()?.to_string()),
            "--json" => output.json = Some(*value()?),
            "--write" => output.plotted = true,
            "--no-peers" => plan.peers = Wanted::None,
            "--peers" => {
                let names = value()?.split(',').map(|name| name.trim().to_owned());
                plan.peers = Wanted::Named(names.collect());
            }
            "--only" => {
                for name in value()?.split(',') {
                    if !suite::SUITES.iter().any(|suite| suite.name == name) {
                        let names: Vec<_> = suite::SUITES.iter().map(|suite| suite.name).collect();
                        bail!("unknown suite `--only {name}`; use one of {}", names.join(", "));
                    }
                    plan.only.push(name.to_owned());
                }
            }
            _ => bail!("unknown argument `{word}`; see `--help`"),
        }
    }
    if plan.rounds == 0 {
        bail!("`--rounds 0` measures nothing");
    }
    if output.plotted && (quick || !matches!(plan.peers, Wanted::All)) {
        bail!(
            "`--write` needs whole measurements with all peers: omit `--quick`, `--peers` and `--no-peers`"
        );
    }
    Ok((plan, output))
}

fn repeat(path: &str, times: u64) -> Result<()> {
    let path = match path {
        "durable-http" => Path::modern_http(messages::small_modern_call())?.to_durable()?,
        "modern-http" => Path::modern_http(messages::small_modern_call())?,
        "legacy-http" => Path::legacy_http(messages::legacy_call())?,
        "modern-pipe" => Path::modern_pipe(messages::small_modern_call())?,
        _ => bail!(
            "unknown path `{path}`; use modern-http, durable-http, legacy-http or modern-pipe"
        ),
    };
    path.repeat(times)
}

fn number<T: FromStr>(text: &str) -> Result<T> {
    text.parse().ok().with_context(|| format!("`{text}` is not a number"))
}
