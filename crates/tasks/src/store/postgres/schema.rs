//! Creates the tables and functions in an empty schema, and rejects a schema with other tables.

use tokio_postgres::GenericClient;

use super::{
    connect::{Database, Session},
    error::PostgresError,
};
use crate::store::{
    StoreError,
    fingerprint::{PRE_RELEASE, fingerprint},
};

const PARTS: &[&str] = &[
    include_str!("schema/tables.sql"),
    include_str!("schema/counts.sql"),
    include_str!("schema/input.sql"),
    include_str!("schema/create.sql"),
    include_str!("schema/claim.sql"),
    include_str!("schema/commit.sql"),
    include_str!("schema/commit_many.sql"),
    include_str!("schema/end.sql"),
    include_str!("schema/bridge.sql"),
    include_str!("schema/respond.sql"),
    include_str!("schema/result.sql"),
    include_str!("schema/key_value.sql"),
    include_str!("schema/audit.sql"),
    include_str!("schema/decision.sql"),
    include_str!("schema/delivery.sql"),
    include_str!("schema/metric.sql"),
    include_str!("schema/operator.sql"),
];

/// The schema version of this program, as in `schema_version`.
const KNOWN: usize = 1;

/// Advisory lock of a migration: "outlive" in hexadecimal.
const LOCK: i64 = 0x006f_7574_6c69_7665;

/// Creates the tables and functions if the schema is empty, in one transaction.
pub(super) async fn migrate(
    database: &Database,
    session: &mut Session,
) -> Result<(), PostgresError> {
    let transaction = session.client.transaction().await?;
    // Another process may hold the lock during its own migration.
    transaction.batch_execute("SET LOCAL statement_timeout = '10min'").await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let name = &database.options.schema;
    let exists = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
    // A role that may not create schemas may still use one that exists.
    if !transaction.query_one(exists, &[name]).await?.try_get::<_, bool>(0)? {
        transaction.batch_execute(&format!("CREATE SCHEMA {}", database.schema())).await?;
    }
    match version(&transaction, name).await? {
        None => {
            for part in PARTS {
                transaction.batch_execute(part).await?;
            }
            transaction.batch_execute(VERSION).await?;
            let made = "INSERT INTO schema_version (number, fingerprint) VALUES ($1, $2)";
            transaction.execute(made, &[&(KNOWN as i32), &fingerprint(PARTS)]).await?;
        }
        Some(KNOWN) => {}
        Some(version) => {
            return Err(StoreError::Incompatible(format!(
                "a newer version of this program has written the schema (schema version \
                 {version}, supported is {KNOWN}); upgrade this program"
            ))
            .into());
        }
    }
    transaction.commit().await?;
    Ok(())
}

const VERSION: &str =
    "CREATE TABLE schema_version (number integer NOT NULL, fingerprint text NOT NULL)";

/// Returns the version of a schema, `None` if it is empty, and the version that this program uses.
/// Does not change the schema.
pub(super) async fn look(
    database: &Database,
    session: &Session,
) -> Result<(Option<usize>, usize), PostgresError> {
    Ok((version(&session.client, &database.options.schema).await?, KNOWN))
}

/// Returns the version of a schema; `None` if it is empty.
async fn version(client: &impl GenericClient, name: &str) -> Result<Option<usize>, PostgresError> {
    let tables = "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
                  WHERE nspname = $1 AND relkind = 'r'";
    let tables = client.query(tables, &[&name]).await?;
    let has = |table: &str| tables.iter().any(|row| row.try_get(0).ok() == Some(table));
    if tables.is_empty() {
        return Ok(None);
    }
    let refused = |what: String| Err(StoreError::Incompatible(what).into());
    let pre_release = || refused(format!("the schema `{name}` was {PRE_RELEASE}"));
    if !has("task") || !(has("schema_version") || has("version")) {
        return refused(format!(
            "the schema `{name}` belongs to another program; use another schema"
        ));
    }
    if !has("schema_version") {
        return pre_release();
    }
    let row = client.query_one("SELECT number, fingerprint FROM schema_version", &[]).await?;
    let version = usize::try_from(row.try_get::<_, i32>(0)?).unwrap_or(usize::MAX);
    if version < KNOWN || version == KNOWN && row.try_get::<_, String>(1)? != fingerprint(PARTS) {
        return pre_release();
    }
    Ok(Some(version))
}
