//! Reads the state of a file without changing it.

use std::{path::Path, time::Instant};

use super::{connect, error::SqliteError, options::SqliteOptions, schema};
use crate::{
    store::{StoreError, StoreKind, StoreProbe},
    time::wall_clock,
};

pub(in crate::store) fn probe(path: &Path) -> Result<StoreProbe, StoreError> {
    look(path).map_err(|problem| problem.with(path))
}

fn look(path: &Path) -> Result<StoreProbe, SqliteError> {
    let absent = StoreProbe {
        product: StoreKind::Sqlite,
        version: rusqlite::version().to_owned(),
        tables: None,
        known: schema::KNOWN,
        time: wall_clock(),
        round_trip: std::time::Duration::ZERO,
    };
    if !path.exists() {
        return Ok(absent);
    }
    let connection = connect::reader(path, &SqliteOptions::default())?;
    let asked = Instant::now();
    let tables = match schema::look(&connection)? {
        // The file is created before its tables, so an empty file has no schema.
        0 => None,
        tables => Some(tables),
    };
    Ok(StoreProbe { tables, round_trip: asked.elapsed(), ..absent })
}
