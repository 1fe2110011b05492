//! The command: selects the builds, runs them and reports.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::report::{Build, broken_bars, page, table};
use super::subject::subjects;
use xtask::args::Args;
use xtask::process;

/// Page that `--write` writes.
const PAGE: &str = "docs/performance/build.md";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let as_json = args.flag("--json");
    let fails = args.flag("--check");
    let write = args.flag("--write");
    let only = args.values("--only")?;
    let packages = args.values("--package")?;
    let mut profiles = args.values("--profile")?;
    args.finish()?;
    if profiles.is_empty() {
        profiles = vec!["dev".to_owned(), "release".to_owned()];
    }
    let mut builds = Vec::new();
    for subject in subjects(&only, &packages)? {
        subject.prepare()?;
        for profile in &profiles {
            eprintln!("building {} ({profile}), cold", subject.name);
            builds.push(subject.build(profile)?);
        }
    }
    let broken = broken_bars(&builds);
    if write {
        fs::write(process::root().join(PAGE), page(&builds)).context("could not write the page")?;
    }
    if as_json {
        let all: Vec<Value> = builds.iter().map(Build::json).collect();
        let report = json!({ "cores": process::cores(), "builds": all, "broken_bars": broken });
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{}", table(&builds));
        for bar in &broken {
            println!("exceeds its limit: {bar}");
        }
    }
    ensure!(broken.is_empty() || !fails, "{} figures exceed their limits", broken.len());
    Ok(())
}
