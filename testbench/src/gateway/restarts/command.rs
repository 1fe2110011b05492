//! The command: runs the campaigns and prints their rows.

use std::fs;

use anyhow::{Result, bail};
use xtask::args::Args;

use super::{changes, gateway_kills, kills};
use crate::gateway::setting::Setting;
use crate::row::Row;

/// A campaign and its name.
type Campaign = (&'static str, fn(&Setting) -> Result<Vec<Row>>);

const CAMPAIGNS: [Campaign; 3] =
    [("kills", kills::run), ("gateway-kills", gateway_kills::run), ("changes", changes::run)];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let only = args.values("--only")?;
    let setting = Setting::new(&mut args, "gateway-restarts")?;
    args.finish()?;
    let names: Vec<&str> = CAMPAIGNS.iter().map(|(name, _)| *name).collect();
    if let Some(unknown) = only.iter().find(|name| !names.contains(&name.as_str())) {
        bail!("unknown campaign `{unknown}`; the campaigns are {}", names.join(", "));
    }
    let mut missed = 0;
    for (name, run) in CAMPAIGNS {
        if !only.is_empty() && !only.iter().any(|it| it == name) {
            continue;
        }
        eprintln!("gateway-restarts: {name}");
        let rows = run(&setting).unwrap_or_else(|error| vec![Row::failed(name, &error)]);
        rows.iter().for_each(Row::print);
        missed += rows.iter().filter(|row| !row.is_met).count();
    }
    if missed > 0 {
        bail!("{missed} rows miss their bar; the files are in {}", setting.folder().display());
    }
    Ok(fs::remove_dir_all(setting.folder())?)
}
