//! Explores a SQLite database: its schema as a resource, queries as a tool.
//!
//! Run with `cargo run -p outlive-examples --bin sqlite-explorer`. `DATABASE` names the file;
//! without it the server uses a sample in memory.

use std::{path::PathBuf, sync::Mutex};

use anyhow::Context;
use outlive::server::{Args, Error, Json, Resource, Result, Server, State, Tool};
use rusqlite::{Connection, OpenFlags, types::ValueRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of rows in one result, to limit the tokens for the model.
const MOST_ROWS: usize = 200;

struct Database(Mutex<Connection>);

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// A single SELECT statement.
    sql: String,
}

#[derive(Serialize, JsonSchema)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
    /// Whether the result omits rows.
    truncated: bool,
}

async fn query(Args(Query { sql }): Args<Query>, database: State<Database>) -> Result<Json<Rows>> {
    let connection = database
        .0
        .lock()
        .map_err(|_| Error::new("the database is unavailable after a panic; restart the server"))?;
    let mut statement = connection.prepare(&sql)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = statement.query([])?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        if rows.len() == MOST_ROWS {
            return Ok(Json(Rows { columns, rows, truncated: true }));
        }
        let values =
            (0..columns.len()).map(|index| Ok(json(row.get_ref(index)?))).collect::<Result<_>>()?;
        rows.push(values);
    }
    Ok(Json(Rows { columns, rows, truncated: false }))
}

async fn schema(database: State<Database>) -> Result<String> {
    let connection = database
        .0
        .lock()
        .map_err(|_| Error::new("the database is unavailable after a panic; restart the server"))?;
    let mut statement =
        connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")?;
    let tables: Vec<String> =
        statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(tables.join(";\n"))
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(blob) => format!("<{} bytes>", blob.len()).into(),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let connection = match std::env::var_os("DATABASE").map(PathBuf::from) {
        Some(path) => {
            eprintln!("exploring {}", path.display());
            // Read-only, so that a model cannot change the database.
            Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)
                .with_context(|| format!("could not open {}", path.display()))?
        }
        None => {
            eprintln!("exploring a sample database; set DATABASE=FILE to use your own");
            sample()?
        }
    };
    let server = Server::builder("sqlite-explorer", "1.0.0")
        .state(Database(Mutex::new(connection)))
        .resource(
            Resource::new("schema://main", "schema", schema)
                .description("The tables")
                .mime_type("application/sql"),
        )
        .tool(Tool::new("query", query).description("Runs a SELECT statement").read_only())
        .build()?;
    outlive_examples::serve(server).await
}

/// Creates a small sample database.
fn sample() -> anyhow::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(
        "CREATE TABLE planet (name TEXT PRIMARY KEY, moons INTEGER NOT NULL);
         INSERT INTO planet VALUES ('Earth', 1), ('Mars', 2), ('Venus', 0);
         PRAGMA query_only = on;",
    )?;
    Ok(connection)
}
