//! Reads the state of a database without changing it.

use tokio::time::Instant;

use super::{connect::Database, error::PostgresError, options::PostgresOptions, schema};
use crate::store::{StoreError, StoreKind, StoreProbe};

const TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
     split_part(current_setting('server_version'), ' ', 1)";

pub(in crate::store) async fn probe(
    url: &str,
    options: PostgresOptions,
) -> Result<StoreProbe, StoreError> {
    let database = Database::new(url, options)?;
    look(&database).await.map_err(|problem| problem.with(&database.place))
}

async fn look(database: &Database) -> Result<StoreProbe, PostgresError> {
    let session = database.open(|_| {}).await?;
    let (tables, known) = schema::look(database, &session).await?;
    // Prepared in advance, so that the measurement covers exactly one round trip.
    let statement = session.client.prepare(TIME).await?;
    let asked = Instant::now();
    let row = session.client.query_one(&statement, &[]).await?;
    let round_trip = asked.elapsed();
    let time: i64 = row.try_get(0)?;
    Ok(StoreProbe {
        product: StoreKind::Postgres,
        version: row.try_get(1)?,
        tables,
        known,
        time: u64::try_from(time).unwrap_or_default(),
        round_trip,
    })
}
