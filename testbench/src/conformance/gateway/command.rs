//! The command: runs every server leg twice, and compares the results.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use xtask::args::Args;
use xtask::process::{self, Build};

use super::super::baseline::Baseline;
use super::super::judge::{self, Verdict};
use super::super::leg::{Leg, Release, Side, Tasks};
use super::super::server::Server;
use super::super::suite::Suite;
use super::super::{legs, results};
use super::compare::{self, Counts};
use super::upstream::Route;
use crate::gateway_process::GatewayProcess;

/// Legs of a short run: the required scenarios of both versions.
const SHORT: [&str; 2] = ["required-2025-11-25", "required-2026-07-28"];

/// Settings that every leg needs.
struct Setting {
    suite: Suite,
    baseline: Baseline,
    /// Program of the fixture.
    fixture: PathBuf,
    /// Folder of the results.
    results: PathBuf,
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    let short = args.flag("--short");
    let scenario = args.value("--scenario")?;
    let build = Build::wanted(&mut args);
    args.finish()?;

    let setting = Setting::ready(build)?;
    let legs = setting.legs(scenario.as_deref(), short)?;
    let routes: &[Route] = if short { &[Route::Http] } else { &[Route::Http, Route::Stdio] };
    let mut lost = Vec::new();
    for route in routes {
        let counts = setting.play(*route, &legs, &mut lost)?;
        println!("upstream over {}\n{}", route.name(), compare::table(&counts));
    }
    for (scenario, reason) in compare::NOT_RELAYED {
        println!("{scenario} tests nothing: {reason}");
    }
    for objection in &lost {
        println!("{objection}");
    }
    if !lost.is_empty() {
        bail!(
            "{} scenarios pass only without the gateway; all results are in conformance/results",
            lost.len()
        );
    }
    Ok(())
}

impl Setting {
    fn ready(build: Build) -> Result<Self> {
        let folder = process::root().join("conformance");
        let results = results::emptied(&folder)?;
        let suite = Suite::ready(&folder)?;
        let baseline = fs::read_to_string(suite.baseline());
        let baseline = Baseline::parse(&baseline.context("could not read baseline.yml")?)?;
        let fixture = process::built("outlive-conformance", "everything-server", build)?;
        Ok(Self { suite, baseline, fixture, results })
    }

    /// The server legs, or those of one scenario.
    fn legs(&self, scenario: Option<&str>, short: bool) -> Result<Vec<Leg>> {
        let scenarios = self.suite.scenarios(Release::Newest)?;
        let mut legs = match scenario {
            Some(name) => legs::for_one(name, &scenarios)?,
            None => legs::all(&self.suite, &scenarios)?,
        };
        let is_short = |leg: &Leg| scenario.is_some() || SHORT.contains(&leg.name.as_str());
        legs.retain(|leg| {
            leg.side == Side::Server && leg.tasks == Tasks::Quick && (!short || is_short(leg))
        });
        Ok(legs)
    }

    /// Runs the legs directly and through a gateway. Adds the scenarios that only pass directly to
    /// `lost`.
    fn play(&self, route: Route, legs: &[Leg], lost: &mut Vec<String>) -> Result<Counts> {
        let name = route.name();
        let log = self.results.join(format!("server-{name}.log"));
        let server = Server::start(&self.fixture, &[], &log)?;
        let program = self.fixture.with_file_name("outlive");
        let home = self.results.join(format!("gateway-{name}"));
        let config = route.config(&self.fixture, server.url());
        let gateway = GatewayProcess::start(&program, &home, &config)?;
        let mut counts = Counts::new();
        for leg in legs {
            let direct = leg.named(format!("{name}-direct-{}", leg.name));
            let direct = self.verdicts(&direct, server.url())?;
            let through = leg.named(format!("{name}-gateway-{}", leg.name));
            let through = self.verdicts(&through, &gateway.url())?;
            compare::count(&mut counts, &direct, &through);
            let objections = compare::lost(&direct, &through).into_iter();
            lost.extend(objections.map(|text| format!("{name}, {}: {text}", leg.name)));
        }
        gateway.stop()?;
        Ok(counts)
    }

    fn verdicts(&self, leg: &Leg, url: &str) -> Result<Vec<Verdict>> {
        eprintln!("conformance: leg {}, scenarios: {}", leg.name, leg.scenarios.len());
        // The comparison decides, not the exit code of the suite.
        self.suite.run(leg, url)?;
        Ok(judge::leg(leg, &results::read(&self.suite.results(leg), leg.side)?, &self.baseline))
    }
}
