//! For comparison: a FastMCP server with tasks, and clients without tasks.

use anyhow::Result;
use serde_json::json;

use super::bench::Bench;
use super::packages::{Package, Plan, Run};
use super::times::{SHORT, TENTH, seconds};
use crate::executions::Executions;
use crate::row::Row;
use crate::serving::Serving;

const PACKAGES: [Package; 3] = [Package::TypeScript1, Package::TypeScript2, Package::Python2];

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let times = bench.choose(TENTH, SHORT);
    let packages = bench.packages()?;
    let executions = Executions::new(bench.folder().join("comparison"))?;
    let mut command = packages.fastmcp_server();
    command.arg(executions.path());
    let serving = Serving::start(command)?;
    let mut rows = Vec::new();
    for package in PACKAGES {
        let step = times.tool.as_secs_f64() / 10.0;
        let run = |index: usize| {
            let key = format!("{package:?}-{index}");
            let arguments = json!({"key": key, "step": step});
            Run { key, tool: "render", arguments, reads: "text", transport: "http" }
        };
        let plan = Plan {
            url: serving.url.clone(),
            command: vec![String::new()],
            host: "example-host",
            timeout_ms: times.timeout.as_millis(),
            progress: false,
            stagger_ms: 50,
            max_calls: 20,
            runs: (0..3).map(run).collect(),
        };
        let reports = packages.play(package, &plan, bench.folder())?;
        let results = reports.iter().filter(|report| report.error.is_none()).count();
        let error = reports.iter().find_map(|report| report.error.as_deref()).unwrap_or("none");
        let started = executions.count()?;
        let executed = reports.iter().filter(|report| started.contains_key(&report.key)).count();
        rows.push(Row::new(
            format!(
                "comparison: FastMCP 4.1.4, {}: {} tool, {} timeout",
                package.name(),
                seconds(times.tool),
                seconds(times.timeout)
            ),
            format!(
                "{results} of {} results, {executed} executed; first error: {error}",
                reports.len()
            ),
            "0 results: the call ends at its timeout",
            results == 0 && executed == reports.len(),
        ));
    }
    Ok(rows)
}
