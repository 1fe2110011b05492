//! The table `vote`: the votes of people on input requests.

use rusqlite::Connection;

use super::{
    clock::to_column,
    column::{count, from_json},
    error::SqliteError,
    statement::{all, run},
};
use crate::store::{Vote, budget::VOTE_BYTES};

/// Selects the votes on an input request as a JSON array, oldest first. [`read`]
/// reads it.
macro_rules! votes {
    () => {
        "(SELECT json_group_array(json_array(person, accepts, reason, channel, saw_definition,
             voted_at)
             ORDER BY voted_at, person) FROM vote
         WHERE vote.task = input_request.task AND vote.wire_key = input_request.wire_key)"
    };
}
pub(super) use votes;

pub(super) const INSERT: &str =
    "INSERT INTO vote (task, wire_key, person, accepts, voted_at, channel, reason, saw_definition)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
pub(super) const DELETE: &str = "DELETE FROM vote WHERE task = ?1 AND wire_key = ?2
     RETURNING octet_length(person) + octet_length(channel) + coalesce(octet_length(reason), 0)";

pub(super) fn insert(
    connection: &Connection,
    (task, name): (i64, &str),
    Vote { person, accepts, reason, channel, saw_definition, at }: &Vote,
) -> Result<(), SqliteError> {
    let values = (task, name, person, accepts, to_column(*at), channel, reason, saw_definition);
    run(connection, INSERT, values)?;
    Ok(())
}

/// Deletes the votes on an input request. Returns their bytes.
pub(super) fn delete(connection: &Connection, task: i64, name: &str) -> Result<i64, SqliteError> {
    let texts = all(connection, DELETE, (task, name), |row| row.get::<_, i64>(0))?;
    Ok(texts.iter().map(|bytes| bytes + count(VOTE_BYTES)).sum())
}

/// Reads the column that `votes!` selects.
pub(super) fn read(column: &str) -> Result<Vec<Vote>, SqliteError> {
    let rows: Vec<(String, u8, Option<String>, String, u8, u64)> = from_json("vote", column)?;
    let votes =
        rows.into_iter().map(|(person, accepts, reason, channel, saw_definition, at)| Vote {
            person,
            accepts: accepts == 1,
            reason,
            channel,
            saw_definition: saw_definition == 1,
            at,
        });
    Ok(votes.collect())
}
