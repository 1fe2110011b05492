//! Ten-minute tools in hosts with a timeout of 60 s, with every client package.
//!
//! One pass of a full run has real times and waits beside the other campaigns. The other passes
//! have shorter times and many calls at once.

use std::thread;

use anyhow::{Result, anyhow};
use serde_json::json;

use super::bench::Bench;
use super::home::Home;
use super::packages::{Package, Plan, Report, Run};
use super::times::{REAL, SHORT, TENTH, Times, seconds};
use crate::row::Row;

/// The clients whose calls wait in the same way, and the limits of one run.
#[derive(Debug)]
struct Kind {
    campaign: &'static str,
    case: &'static str,
    packages: &'static [Package],
    /// The name of the host. Only [`EXTENDING`] has a row in the configuration.
    host: &'static str,
    max_calls: usize,
    max_turns: usize,
    /// Tokens of all texts that Outlive writes in one run.
    max_tokens: Option<usize>,
}

/// A host whose timeout is extended by progress.
const EXTENDING: &str = "extending-host";
/// A host without a row in the host table.
const UNKNOWN: &str = "example-host";

pub(super) const ROUNDS: &str = "rounds";
pub(super) const PROGRESS: &str = "progress";
pub(super) const PENDING: &str = "pending";

const KINDS: [Kind; 3] = [
    Kind {
        campaign: ROUNDS,
        case: "2026-07-28",
        packages: &[Package::TypeScript2, Package::Python2, Package::AiSdk],
        host: UNKNOWN,
        max_calls: 2,
        max_turns: 1,
        max_tokens: None,
    },
    Kind {
        campaign: PROGRESS,
        case: "legacy, progress extends the timeout",
        packages: &[Package::TypeScript1],
        host: EXTENDING,
        max_calls: 1,
        max_turns: 1,
        max_tokens: None,
    },
    Kind {
        campaign: PENDING,
        case: "legacy, fixed timeout",
        packages: &[Package::TypeScript1, Package::Python1],
        host: UNKNOWN,
        max_calls: 13,
        max_turns: 3,
        max_tokens: Some(1_500),
    },
];

/// Bytes that count as one token.
const BYTES_PER_TOKEN: usize = 4;

const CONFIG: &str = r#"
[server]
listen = "127.0.0.1:0"
max_connections_per_address = 4000
max_sessions_per_caller = 1000

[tasks]
max_running = 1000
max_running_per_caller = 1000

[hosts]
call_timeout = "@TIMEOUT@ms"

[hosts.known."extending-host"]
call_timeout = "@TIMEOUT@ms"
progress = "extends"

[tools.render]
description = "Renders the frames of a film."
shell = true
command = '''
echo "$arg_key" >> "$EXECUTIONS"
for frame in 1 2 3 4 5 6 7 8 9 10; do
  sleep "$arg_step"
  echo "{\"progress\": $frame, \"total\": 10, \"message\": \"frame $frame of 10\"}" >&3
done
echo "rendered $arg_key"
'''
arguments.key = { type = "string" }
arguments.step = { type = "number" }
env.EXECUTIONS = "@EXECUTIONS@"
task_after = "@AFTER@ms"
max_concurrent = 1000

[tools.measure]
description = "Measures a film without progress, and returns structured content."
shell = true
command = '''
echo "$arg_key" >> "$EXECUTIONS"
for part in 1 2 3 4 5 6 7 8 9 10; do
  sleep "$arg_step"
done
echo "{\"rendered\": \"$arg_key\"}"
'''
output = "json"
output_schema = '{"type": "object", "properties": {"rendered": {"type": "string"}}, "required": ["rendered"]}'
arguments.key = { type = "string" }
arguments.step = { type = "number" }
env.EXECUTIONS = "@EXECUTIONS@"
task_after = "@AFTER@ms"
max_concurrent = 1000
"#;

pub(super) fn rounds(bench: &Bench) -> Result<Vec<Row>> {
    shortened(bench, &KINDS[0])
}

pub(super) fn progress(bench: &Bench) -> Result<Vec<Row>> {
    shortened(bench, &KINDS[1])
}

pub(super) fn pending(bench: &Bench) -> Result<Vec<Row>> {
    shortened(bench, &KINDS[2])
}

/// Runs the chosen campaigns at real times, all clients at once.
pub(super) fn real(bench: &Bench, campaigns: &[&str]) -> Result<Vec<Row>> {
    let kinds = KINDS.iter().filter(|kind| campaigns.contains(&kind.campaign));
    let legs = kinds.flat_map(|kind| kind.packages.iter().map(move |&package| (kind, package)));
    measure(bench, "real", &REAL, 4, &legs.collect::<Vec<_>>())
}

/// Runs one kind with shorter times. A full run has many calls of one client at a time.
fn shortened(bench: &Bench, kind: &'static Kind) -> Result<Vec<Row>> {
    let legs: Vec<_> = kind.packages.iter().map(|&package| (kind, package)).collect();
    if bench.is_short {
        return measure(bench, kind.campaign, &SHORT, 4, &legs);
    }
    let mut rows = Vec::new();
    for (number, leg) in legs.into_iter().enumerate() {
        rows.extend(measure(bench, &format!("{}-{number}", kind.campaign), &TENTH, 100, &[leg])?);
    }
    Ok(rows)
}

/// Runs the legs at once on one server, each with `runs` calls.
fn measure(
    bench: &Bench,
    name: &str,
    times: &Times,
    runs: usize,
    legs: &[(&'static Kind, Package)],
) -> Result<Vec<Row>> {
    let config = CONFIG
        .replace("@TIMEOUT@", &times.timeout.as_millis().to_string())
        .replace("@AFTER@", &times.task_after.as_millis().to_string());
    let home = Home::new(bench, name, &config)?;
    let server = home.start()?;
    let packages = bench.packages()?;
    let play = |&(kind, package): &(&'static Kind, Package)| {
        let plan = plan(kind, package, times, runs, server.url(), &home);
        let reports = packages.play(package, &plan, bench.folder())?;
        row(kind, package, times, &reports, &home)
    };
    thread::scope(|scope| {
        let playing: Vec<_> = legs.iter().map(|leg| scope.spawn(move || play(leg))).collect();
        let rows =
            playing.into_iter().map(|leg| leg.join().map_err(|_| anyhow!("a thread panicked"))?);
        rows.collect()
    })
}

/// Duration of the tool of a kind.
fn tool(kind: &Kind, times: &Times) -> std::time::Duration {
    if kind.campaign == PENDING { times.tool_in_slices() } else { times.tool }
}

/// Every second run uses the tool with structured content, and the model of every second pair reads
/// structured content only. Every fourth run is on stdio.
fn plan(
    kind: &Kind,
    package: Package,
    times: &Times,
    runs: usize,
    url: String,
    home: &Home,
) -> Plan {
    let step = tool(kind, times).as_secs_f64() / 10.0;
    let run = |index: usize| {
        let key = format!("{}-{package:?}-{index}", kind.campaign);
        Run {
            arguments: json!({"key": key, "step": step}),
            key,
            tool: if index.is_multiple_of(2) { "render" } else { "measure" },
            reads: if index % 4 < 2 { "text" } else { "structured" },
            transport: if index % 4 == 3 { "stdio" } else { "http" },
        }
    };
    Plan {
        url,
        command: home.stdio(),
        host: kind.host,
        timeout_ms: times.timeout.as_millis(),
        progress: kind.host == EXTENDING,
        stagger_ms: 100,
        // More than allowed, so that the figure shows how many calls the result took.
        max_calls: 3 * kind.max_calls + 2,
        runs: (0..runs).map(run).collect(),
    }
}

fn row(
    kind: &Kind,
    package: Package,
    times: &Times,
    reports: &[Report],
    home: &Home,
) -> Result<Row> {
    let executions = home.executions.count()?;
    let is_result = |report: &&Report| {
        let text = report.text.as_deref().unwrap_or_default();
        report.error.is_none() && text.contains("rendered") && text.contains(&report.key)
    };
    let results = reports.iter().filter(is_result).count();
    let executed = |report: &Report| executions.get(&report.key).copied().unwrap_or_default();
    let most = |value: &dyn Fn(&Report) -> usize| reports.iter().map(value).max().unwrap_or(0);
    let fewest = reports.iter().map(executed).min().unwrap_or(0);
    let calls = most(&|report| report.calls);
    let turns = most(&|report| report.turns);
    let tokens = most(&|report| report.bytes.div_ceil(BYTES_PER_TOKEN));
    let structured = most(&|report| report.structured_bytes.div_ceil(BYTES_PER_TOKEN));
    let mut figure = format!(
        "{results} of {} results, {fewest} to {} executions, at most {calls} calls in {turns} turns, {tokens} tokens in texts, {structured} in structured content",
        reports.len(),
        most(&executed),
    );
    if let Some(error) = reports.iter().find_map(|report| report.error.as_ref()) {
        let first: String = error.chars().take(300).collect();
        figure.push_str(&format!("; first error: {first}"));
    }
    let mut bar = format!(
        "every result, 1 execution each, ≤ {} calls in ≤ {} turns",
        kind.max_calls, kind.max_turns
    );
    if let Some(tokens) = kind.max_tokens {
        bar.push_str(&format!(
            ", ≤ {tokens} tokens in texts (bytes / {BYTES_PER_TOKEN}, rounded up)"
        ));
    }
    let is_met = results == reports.len()
        && (fewest, most(&executed)) == (1, 1)
        && calls <= kind.max_calls
        && turns <= kind.max_turns
        && kind.max_tokens.is_none_or(|max| tokens <= max);
    let times = format!("{} tool, {} timeout", seconds(tool(kind, times)), seconds(times.timeout));
    Ok(Row::new(format!("{}, {}: {times}", package.name(), kind.case), figure, bar, is_met))
}

#[cfg(test)]
mod tests {
    use super::super::home::EXECUTIONS;
    use super::CONFIG;

    #[test]
    fn configuration_names_file_of_executions_for_each_tool() {
        assert_eq!(CONFIG.matches(EXECUTIONS).count(), CONFIG.matches("[tools.").count());
    }
}
