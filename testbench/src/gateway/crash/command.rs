//! The command: runs the campaigns and prints their rows.

use std::fs;

use anyhow::{Result, bail};
use xtask::args::Args;

use super::{calls, frozen, replicas};
use crate::gateway::setting::Setting;
use crate::row::Row;

/// A campaign, and whether it is part of a short run.
struct Campaign {
    name: &'static str,
    run: fn(&Setting) -> Result<Vec<Row>>,
    is_short: bool,
}

const CAMPAIGNS: &[Campaign] = &[
    Campaign { name: "stdio", run: calls::stdio, is_short: true },
    Campaign { name: "input", run: calls::input, is_short: true },
    Campaign { name: "task", run: calls::upstream_task, is_short: true },
    Campaign { name: "stream", run: calls::stream, is_short: true },
    Campaign { name: "unknown", run: calls::unknown, is_short: true },
    // Waits until the lease of the frozen gateway expires.
    Campaign { name: "frozen", run: frozen::run, is_short: false },
    // Needs a database.
    Campaign { name: "replicas", run: replicas::run, is_short: false },
];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let only = args.values("--only")?;
    let setting = Setting::new(&mut args, "gateway-crash")?;
    args.finish()?;
    let names: Vec<&str> = CAMPAIGNS.iter().map(|campaign| campaign.name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("unknown campaign `{unknown}`; the campaigns are {}", names.join(", "));
    }
    let mut missed = 0;
    for campaign in CAMPAIGNS {
        let is_chosen = match only.is_empty() {
            true => campaign.is_short || !setting.is_short,
            false => only.iter().any(|name| name == campaign.name),
        };
        if !is_chosen {
            continue;
        }
        eprintln!("crash --gateway: {}", campaign.name);
        let rows = (campaign.run)(&setting)
            .unwrap_or_else(|error| vec![Row::failed(campaign.name, &error)]);
        rows.iter().for_each(Row::print);
        missed += rows.iter().filter(|row| !row.is_met).count();
    }
    if missed > 0 {
        bail!("{missed} rows miss their bar; the files are in {}", setting.folder().display());
    }
    Ok(fs::remove_dir_all(setting.folder())?)
}
