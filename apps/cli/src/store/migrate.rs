//! `outlive store migrate`.

use std::process::ExitCode;

use outlive::{operator::Operator, store::StoreKind};
use serde::Serialize;

use super::{access, json, output::say};
use crate::error::{CliError, Kind, Result};

/// Brings the tables of a store up to date; makes them if there are none.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store migrate --check
  outlive store migrate postgres://outlive@db/outlive

Servers do so by themselves when they start. Done before, it is done with no server in the middle of it: stop the
servers of the older version, or let all of them be of this one. Tables of a newer version are refused.
With --json it is one JSON object.")]
pub(super) struct Args {
    /// The store: sqlite:FILE or postgres://…
    url: Option<String>,
    /// Say what would be done, and do nothing; exit code 1 if there is something
    #[arg(long)]
    check: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Done {
    from: Option<usize>,
    to: usize,
    migrated: bool,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let url = access::url_or_own(args.url)?;
    let found = access::look(&url).await?;
    let (from, to) = (found.tables, found.known);
    if found.product == StoreKind::Memory {
        return Err(CliError::usage("a store in memory has no tables"));
    }
    if from.is_some_and(|from| from > to) {
        let (from, place) = (from.unwrap_or_default(), access::without_password(&url));
        let what = format!(
            "the tables of {place} have version {from}, and this program knows version {to} only"
        );
        return Err(CliError::new(Kind::Failed, what).remedy("upgrade this program"));
    }
    let is_old = from != Some(to);
    if is_old && !args.check {
        Operator::open(&url).await.map_err(access::trouble)?;
    }
    let migrated = is_old && !args.check;
    let before = from.map_or("no tables".to_owned(), |from| format!("version {from}"));
    match (args.json, is_old) {
        (true, _) => json::print(&Done { from, to, migrated })?,
        (false, false) => say(&format!("version {to}: nothing to do"))?,
        (false, true) if args.check => say(&format!("{before}, to be brought to version {to}"))?,
        (false, true) => say(&format!("brought from {before} to version {to}"))?,
    }
    Ok(if is_old && args.check { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
