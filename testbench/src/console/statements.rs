//! The statements that PostgreSQL executes for a lookup.
//!
//! A foreign and an unknown ID must cause the same statements, so that neither time nor load shows a difference. The
//! database logs every statement. Statements of the idle servers, such as heartbeats, are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::runtime::Runtime;
use tokio_postgres::NoTls;

use super::people::BOB;
use super::site::Site;
use super::visitor::{API, Visitor};
use crate::crash::database::Database;
use crate::crash::random::Random;
use crate::row::Row;

/// Lookups of each ID and path.
const LOOKUPS: usize = 20;
/// Time in which idle servers execute all their periodic statements.
const IDLE: Duration = Duration::from_secs(40);
/// Time until a statement is in the log.
const SETTLE: Duration = Duration::from_millis(500);

const PATHS: [&str; 4] = ["tasks/ID", "tasks/ID/journal", "inputs/ID/%23approval", "audit?task=ID"];

/// The log of the database.
pub(super) struct Statements {
    log: PathBuf,
    /// Statements of idle servers.
    idle: BTreeSet<String>,
}

impl Statements {
    /// Compares the statements of lookups of foreign and of unknown tasks.
    pub(super) fn compare(site: &Site, ids: &[String]) -> Result<Row> {
        let mut statements = Self::start(site)?;
        thread::sleep(IDLE);
        statements.idle = statements.counts(0)?.into_keys().collect();
        let visitor = site.visitor(0, BOB.deciding)?;
        let mut random = Random::new(1);
        let (mut different, mut compared) = (Vec::new(), 0);
        for path in PATHS {
            let reference = statements.of(&visitor, path, || unknown(&mut random))?;
            for id in ids {
                let found = statements.of(&visitor, path, || id.clone())?;
                compared += 1;
                if found != reference {
                    different.push(format!("{path}: {found:?} instead of {reference:?}"));
                }
            }
        }
        let mut figure = format!("{} of {compared} comparisons differ", different.len());
        if let Some(first) = different.first() {
            figure.push_str(&format!("; {}", first.chars().take(600).collect::<String>()));
        }
        let case = "statements of lookups of foreign and unknown IDs, postgres";
        Ok(Row::new(case, figure, "same statements executed", different.is_empty()))
    }

    /// Makes the database log every statement.
    fn start(site: &Site) -> Result<Self> {
        let Database::Postgres(postgres) = &site.database else {
            bail!("only PostgreSQL logs statements");
        };
        let url = postgres.url();
        Runtime::new()?.block_on(async {
            let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
            let connection = tokio::spawn(connection);
            for statement in ["ALTER SYSTEM SET log_statement = 'all'", "SELECT pg_reload_conf()"] {
                client.simple_query(statement).await?;
            }
            drop(client);
            anyhow::Ok(connection.await??)
        })?;
        Ok(Self { log: postgres.log(), idle: BTreeSet::new() })
    }

    /// Returns the statements of several lookups with their numbers.
    fn of(
        &self,
        visitor: &Visitor,
        path: &str,
        mut id: impl FnMut() -> String,
    ) -> Result<BTreeMap<String, usize>> {
        thread::sleep(SETTLE);
        let start = usize::try_from(fs::metadata(&self.log)?.len())?;
        for _ in 0..LOOKUPS {
            visitor.get(&format!("{API}/{}", path.replace("ID", &id())))?;
        }
        thread::sleep(SETTLE);
        let mut counts = self.counts(start)?;
        counts.retain(|statement, _| !self.idle.contains(statement));
        Ok(counts)
    }

    /// Counts the statements in the log after a position.
    fn counts(&self, start: usize) -> Result<BTreeMap<String, usize>> {
        let log = fs::read(&self.log)?;
        let log = log.get(start..).context("the log of the database was cut")?;
        let mut counts = BTreeMap::new();
        for line in String::from_utf8_lossy(log).lines() {
            if let Some(statement) = statement(line) {
                *counts.entry(statement.to_owned()).or_insert(0) += 1;
            }
        }
        Ok(counts)
    }
}

/// An ID of the same form as real ones.
pub(super) fn unknown(random: &mut Random) -> String {
    format!("{:016x}{:016x}", random.next(), random.next())
}

/// Returns the statement of a line of the log. Its first line identifies it.
fn statement(line: &str) -> Option<&str> {
    let (_, said) = line.split_once("LOG:  ")?;
    if let Some(statement) = said.strip_prefix("statement: ") {
        return Some(statement);
    }
    // A prepared statement has a name, which depends on the connection.
    said.strip_prefix("execute ")?.split_once(": ").map(|(_, statement)| statement)
}

#[cfg(test)]
mod tests {
    use super::statement;

    #[test]
    fn statement_of_log_line_has_no_name_of_connection() {
        let line = "2026-11-18 10:12:00.000 UTC [77] LOG:  execute s12: SELECT 1";
        assert_eq!(statement(line), Some("SELECT 1"));
        assert_eq!(statement("… LOG:  statement: BEGIN"), Some("BEGIN"));
        assert_eq!(statement("… DETAIL:  parameters: $1 = '5'"), None);
    }
}
