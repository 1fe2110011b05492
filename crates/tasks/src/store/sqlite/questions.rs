//! The questions of a task. A name stays in its table when it is answered or withdrawn, because it
//! is used once.

use outlive_wire::InputRequest;
use rusqlite::Connection;

use super::{
    clock::to_column,
    column::{from_json, to_json},
    problem::Problem,
    statement::{all, one, run},
};
use crate::store::Asked;

pub(super) const ASK: &str = "INSERT INTO question (task, name, key, place, state, due, body)
     VALUES (?1, ?2, ?3, (SELECT coalesce(max(place), 0) + 1 FROM question WHERE task = ?1), 0, ?4, ?5)
     ON CONFLICT DO NOTHING";
pub(super) const WITHDRAW: &str =
    "UPDATE question SET state = 2 WHERE task = ?1 AND name = ?2 AND state = 0";
pub(super) const WITHDRAW_ALL: &str = "UPDATE question SET state = 2 WHERE task = ?1 AND state = 0";
pub(super) const ANSWER: &str = "UPDATE question SET state = 1
     WHERE task = ?1 AND name = ?2 AND state = 0 RETURNING key";
pub(super) const OPEN: &str =
    "SELECT name, body FROM question WHERE task = ?1 AND state = 0 ORDER BY place";
pub(super) const OPEN_KEYS: &str =
    "SELECT key FROM question WHERE task = ?1 AND state = 0 ORDER BY place";
pub(super) const AGAIN: &str =
    "SELECT key, count(*) - 1 FROM question WHERE task = ?1 GROUP BY key HAVING count(*) > 1";

/// Asks, unless the name was used before.
pub(super) fn ask(connection: &Connection, task: i64, asked: &Asked) -> Result<(), Problem> {
    let due = asked.due.map(to_column);
    run(connection, ASK, (task, &asked.name, &asked.key, due, to_json(&asked.request)?))?;
    Ok(())
}

pub(super) fn withdraw(connection: &Connection, task: i64, name: &str) -> Result<(), Problem> {
    run(connection, WITHDRAW, (task, name))?;
    Ok(())
}

pub(super) fn withdraw_all(connection: &Connection, task: i64) -> Result<(), Problem> {
    run(connection, WITHDRAW_ALL, [task])?;
    Ok(())
}

/// Closes a question that is open, and says under which key its answer is recorded.
pub(super) fn answer(
    connection: &Connection,
    task: i64,
    name: &str,
) -> Result<Option<String>, Problem> {
    Ok(one(connection, ANSWER, (task, name), |row| row.get(0))?)
}

/// The questions that are open, by name, in the order they were asked.
pub(super) fn open(
    connection: &Connection,
    task: i64,
) -> Result<Vec<(String, InputRequest)>, Problem> {
    let rows = all(connection, OPEN, [task], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    rows.into_iter().map(|(name, body)| Ok((name, from_json("questions", &body)?))).collect()
}

/// The keys of the questions that are open, in the order they were asked.
pub(super) fn open_keys(connection: &Connection, task: i64) -> Result<Vec<String>, Problem> {
    Ok(all(connection, OPEN_KEYS, [task], |row| row.get(0))?)
}

/// How often each key was asked for again.
pub(super) fn times_again(
    connection: &Connection,
    task: i64,
) -> Result<Vec<(String, u32)>, Problem> {
    Ok(all(connection, AGAIN, [task], |row| Ok((row.get(0)?, row.get(1)?)))?)
}
