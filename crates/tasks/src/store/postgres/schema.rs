//! The tables and functions, in numbered steps. A schema says how many of them it has seen.

use tokio_postgres::Transaction;

use super::{
    connect::{Database, Session},
    error::Problem,
};
use crate::store::StoreError;

/// What each version adds to the one before. What stands here is in databases all over the world: it
/// is never changed, only followed. A function that a later version replaces stands there alone: all
/// versions are brought to the last one at once, and nobody calls what is between.
const STEPS: &[&[&str]] = &[
    &[
        include_str!("schema/tables.sql"),
        include_str!("schema/functions.sql"),
        include_str!("schema/scheduling.sql"),
    ],
    &[include_str!("schema/keeping.sql"), include_str!("schema/operating.sql")],
    &[include_str!("schema/copying.sql")],
    // Functions which a later version has others for.
    &[],
    &[],
    &[include_str!("schema/sparing.sql")],
    &[include_str!("schema/fairness.sql")],
    &[include_str!("schema/counting.sql"), include_str!("schema/budgets.sql")],
    &[include_str!("schema/allowances.sql")],
    &[include_str!("schema/making.sql")],
    &[include_str!("schema/listing.sql")],
];

/// Of all that want to do this in one database, one does: "outlive" in hexadecimal.
const LOCK: i64 = 0x006f_7574_6c69_7665;

/// Brings the schema up to date, in one transaction.
pub(super) async fn migrate(database: &Database, session: &mut Session) -> Result<(), Problem> {
    let transaction = session.client.transaction().await?;
    // Whoever waits here waits for another migration, and that may have much to do.
    transaction.batch_execute("SET LOCAL statement_timeout = '10min'").await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let name = &database.options.schema;
    let is_there = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
    // Asked before, because who may not make one may still use one that is there.
    if !transaction.query_one(is_there, &[name]).await?.try_get::<_, bool>(0)? {
        transaction.batch_execute(&format!("CREATE SCHEMA {}", database.schema())).await?;
    }
    let version = version(&transaction, name).await?;
    for (index, step) in STEPS.iter().enumerate().skip(version) {
        for part in *step {
            transaction.batch_execute(part).await?;
        }
        let number = i32::try_from(index + 1).unwrap_or(i32::MAX);
        transaction.execute("UPDATE version SET number = $1", &[&number]).await?;
    }
    transaction.commit().await?;
    Ok(())
}

/// How many steps a schema has seen, and how many there are; `None` if there is none. Nothing is
/// touched.
pub(super) async fn look(
    database: &Database,
    session: &Session,
) -> Result<(Option<usize>, usize), Problem> {
    let is_there = "SELECT count(*) = 2 FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
                    WHERE nspname = $1 AND relkind = 'r' AND relname IN ('version', 'task')";
    let name = &database.options.schema;
    if !session.client.query_one(is_there, &[name]).await?.try_get::<_, bool>(0)? {
        return Ok((None, STEPS.len()));
    }
    let row = session.client.query_one("SELECT number FROM version", &[]).await?;
    let version: i32 = row.try_get(0)?;
    Ok((Some(usize::try_from(version).unwrap_or(usize::MAX)), STEPS.len()))
}

/// How many steps a schema has seen, if it is one of ours or empty, and none that we do not know.
async fn version(transaction: &Transaction<'_>, name: &str) -> Result<usize, Problem> {
    let tables = "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
                  WHERE nspname = $1 AND relkind = 'r'";
    let tables = transaction.query(tables, &[&name]).await?;
    let has = |table: &str| tables.iter().any(|row| row.try_get(0).ok() == Some(table));
    if tables.is_empty() {
        transaction
            .batch_execute(
                "CREATE TABLE version (number integer NOT NULL);
                 INSERT INTO version (number) VALUES (0)",
            )
            .await?;
        return Ok(0);
    }
    if !has("version") || !has("task") {
        let what = format!("the schema `{name}` is another program's; name another one");
        return Err(StoreError::Incompatible(what).into());
    }
    let row = transaction.query_one("SELECT number FROM version", &[]).await?;
    let version: i32 = row.try_get(0)?;
    match usize::try_from(version) {
        Ok(version) if version <= STEPS.len() => Ok(version),
        _ => Err(StoreError::Incompatible(format!(
            "a newer version of this program has written it (its tables have version {version}, \
             known here is {}); upgrade this program",
            STEPS.len()
        ))
        .into()),
    }
}
