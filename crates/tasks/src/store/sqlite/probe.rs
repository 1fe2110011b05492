//! Looks at a file without touching it.

use std::{path::Path, time::Instant};

use super::{SqliteOptions, connect, problem::Problem, schema};
use crate::store::{Probe, Product, StoreError, probe::wall_clock};

pub(in crate::store) fn probe(path: &Path) -> Result<Probe, StoreError> {
    look(path).map_err(|problem| problem.with(path))
}

fn look(path: &Path) -> Result<Probe, Problem> {
    let absent = Probe {
        product: Product::Sqlite,
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
        // An empty file is made before its tables.
        0 => None,
        tables => Some(tables),
    };
    Ok(Probe { tables, round_trip: asked.elapsed(), ..absent })
}
