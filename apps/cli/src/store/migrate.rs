//! `outlive store migrate`.

use std::process::ExitCode;

use outlive::{operator::Operator, store::StoreKind};
use serde::Serialize;

use super::{access, json, output::say};
use crate::error::{CliError, Kind, Result};

/// Migrates the tables of a store to the schema version of this program; creates missing tables.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store migrate --check
  outlive store migrate postgres://outlive@db/outlive

Servers migrate the store when they start. To migrate ahead of an upgrade, first stop all servers of the older version. \
A store with a newer schema version is rejected. With --json the output is one JSON object.")]
pub(super) struct Args {
    /// Store: sqlite:FILE or postgres://…
    url: Option<String>,
    /// Only reports whether a migration is necessary; exit code 1 if it is
    #[arg(long)]
    check: bool,
    /// Prints JSON
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
        return Err(CliError::usage("an in-memory store has no tables"));
    }
    if from.is_some_and(|from| from > to) {
        let (from, place) = (from.unwrap_or_default(), access::without_password(&url));
        let what = format!(
            "{place} has schema version {from}, but this program supports up to version {to}"
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
        (false, false) => say(&format!("version {to}: up to date"))?,
        (false, true) if args.check => {
            say(&format!("{before}: migration to version {to} required"))?
        }
        (false, true) => say(&format!("migrated from {before} to version {to}"))?,
    }
    Ok(if is_old && args.check { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
