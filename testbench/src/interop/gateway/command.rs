//! The command: runs every leg and the servers of other authors, and writes the page.

use std::fs;

use anyhow::{Context, Result, bail};
use xtask::args::Args;
use xtask::process::{self, Build};

use super::cells::Cells;
use super::plan::{self, Choice};
use super::tools::{self, Tools};
use super::{foreign, leg, page, tutorial};

pub(crate) fn run(mut args: Args) -> Result<()> {
    let build = Build::wanted(&mut args);
    let short = args.flag("--short");
    let pairs = args.values("--pair")?;
    let only = args.values("--only")?;
    args.finish()?;
    for part in &only {
        if !PARTS.contains(&part.as_str()) {
            bail!("unknown part `{part}`; the parts are {}", PARTS.join(", "));
        }
    }
    let has = |part: &str| only.is_empty() || only.iter().any(|it| it == part);
    let legs = match has("pairs") {
        true => plan::legs(Choice { short, pairs: &pairs }),
        false => Vec::new(),
    };
    let tools = Tools::ready(build, &legs)?;
    let mut cells = Cells::default();
    for (number, leg) in legs.iter().enumerate() {
        eprintln!("interop: {leg}");
        let folder = tools::folder(&format!("leg-{number}"));
        let reports = leg::run(&tools, leg, &folder);
        for driver in &leg.drivers {
            let error = match &reports {
                Ok(reports) => {
                    let found = reports.iter().find(|(name, _)| name == driver);
                    found.map_or(Some("not reported".to_owned()), |(_, error)| error.clone())
                }
                Err(error) => Some(format!("{error:#}")),
            };
            cells.add(leg, driver, error);
        }
    }
    let called = if has("servers") { foreign::run(&tools, short)? } else { Vec::new() };
    let page = page::page(&cells, &called);
    println!("{page}");
    let mut wrong = cells.wrong();
    wrong.extend(foreign::wrong(&called));
    if has("tutorial") {
        wrong.extend(tutorial::run(&tools)?);
    }
    if !short && only.is_empty() && pairs.is_empty() {
        let path = process::root().join("docs/gateway-interop.md");
        fs::write(&path, &page).with_context(|| format!("could not write {}", path.display()))?;
    }
    if !wrong.is_empty() {
        let folder = tools::folder("");
        bail!(
            "{} outcomes differ from the expectation; the files are in {}:\n{}",
            wrong.len(),
            folder.display(),
            wrong.join("\n")
        );
    }
    let _ = fs::remove_dir_all(tools::folder(""));
    Ok(())
}

/// Parts of a run.
const PARTS: [&str; 3] = ["pairs", "servers", "tutorial"];
