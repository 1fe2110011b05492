//! The command: runs the legs and prints the results.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::baseline::Baseline;
use super::judge::Verdict;
use super::leg::{Leg, Release, Side, Tasks};
use super::server::Server;
use super::suite::Suite;
use super::{gateway, judge, legs, results, table};
use xtask::args::Args;
use xtask::process::{self, Build};

pub(crate) fn run(mut args: Args) -> Result<()> {
    if args.flag("--through-gateway") {
        return gateway::run(args);
    }
    let scenario = args.value("--scenario")?;
    let url = args.value("--url")?;
    let build = Build::wanted(&mut args);
    args.finish()?;

    let folder = process::root().join("conformance");
    let results = results::emptied(&folder)?;

    let suite = Suite::ready(&folder)?;
    let scenarios = suite.scenarios(Release::Newest)?;
    let baseline = Baseline::parse(
        &fs::read_to_string(suite.baseline()).context("could not read baseline.yml")?,
    )?;
    baseline.knows_only(&scenarios)?;
    let legs = match scenario {
        Some(name) => legs::for_one(&name, &scenarios)?,
        None => legs::all(&suite, &scenarios)?,
    };

    let of = |side: Side| legs.iter().filter(move |leg| leg.side == side);
    let mut verdicts = Vec::new();
    if of(Side::Server).next().is_some() {
        for tasks in [Tasks::Quick, Tasks::DefaultsInSqlite] {
            let server = match &url {
                // A server at `--url` has one configuration, so one run is enough.
                Some(_) if tasks == Tasks::DefaultsInSqlite => continue,
                Some(url) => Server::running(url.clone()),
                None => server_with(tasks, &results, build)?,
            };
            for leg in of(Side::Server).filter(|leg| leg.tasks == tasks) {
                verdicts.extend(run_leg(leg, &suite, server.url(), &baseline)?);
            }
        }
    }
    if of(Side::Client).next().is_some() {
        let program = process::built("outlive-conformance", "everything-client", build)?;
        // The suite splits the command at spaces and supports no quoting.
        let program = program.to_str().filter(|path| !path.contains(' ')).context(
            "the path of this project contains a space, so the suite cannot start a client from it; move the project",
        )?;
        for leg in of(Side::Client) {
            verdicts.extend(run_leg(leg, &suite, program, &baseline)?);
        }
    }

    table::print(&verdicts);
    let objections: BTreeSet<String> = verdicts.iter().filter_map(Verdict::objection).collect();
    for objection in &objections {
        println!("{objection}");
    }
    if !objections.is_empty() {
        bail!(
            "{} unexpected; all results and the server's log are in conformance/results",
            objections.len()
        );
    }
    Ok(())
}

fn server_with(tasks: Tasks, results: &Path, build: Build) -> Result<Server> {
    let program = process::built("outlive-conformance", "everything-server", build)?;
    match tasks {
        Tasks::Quick => Server::start(&program, &[], &results.join("server.log")),
        Tasks::DefaultsInSqlite => {
            let store = format!("sqlite:{}", results.join("tasks.db").display());
            Server::start(&program, &["--store", &store], &results.join("server-sqlite.log"))
        }
    }
}

fn run_leg(leg: &Leg, suite: &Suite, peer: &str, baseline: &Baseline) -> Result<Vec<Verdict>> {
    eprintln!("conformance: leg {}, scenarios: {}", leg.name, leg.scenarios.len());
    let content = suite.run(leg, peer)?;
    let results = results::read(&suite.results(leg), leg.side)?;
    let mut verdicts = judge::leg(leg, &results, baseline);
    if !content && verdicts.iter().all(|verdict| verdict.objection().is_none()) {
        verdicts.push(Verdict::unexplained(leg));
    }
    Ok(verdicts)
}
