//! The table `addressee`: the inboxes of people. They contain an input request while it is open.

use std::iter;

use super::{batch::Batch, delivery::Subject, error::SqliteError, statement::run};
use crate::store::Audience;

pub(super) const INSERT: &str =
    "INSERT INTO addressee (addressee, opened_at, task_id, wire_key, task)
     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
pub(super) const DELETE: &str = "DELETE FROM addressee WHERE task = ?1 AND wire_key = ?2";

/// Returns the inbox of operators.
pub(super) fn operators() -> String {
    "*".to_owned()
}

/// Returns the inbox of a person.
pub(super) fn person(name: &str) -> String {
    format!("n:{name}")
}

/// Returns the inbox of the people whose credential has a scope.
pub(super) fn scope(scope: &str) -> String {
    format!("s:{scope}")
}

/// Adds an input request to the inboxes of its audience. `caller` is the person of its task.
pub(super) fn insert(
    batch: &Batch<'_>,
    subject: &Subject<'_>,
    (name, opened_at): (&str, i64),
    audience: &Audience,
    caller: Option<&str>,
) -> Result<(), SqliteError> {
    let (names, scoped) = audience.addressees();
    let caller = caller.filter(|_| !audience.is_people());
    let people = names.iter().map(String::as_str).chain(caller).map(person);
    for inbox in iter::once(operators()).chain(people).chain(scoped.map(scope)) {
        let values = (inbox, opened_at, subject.task.as_str(), name, subject.number);
        run(batch.connection, INSERT, values)?;
    }
    Ok(())
}

/// Removes an input request from all inboxes.
pub(super) fn delete(batch: &Batch<'_>, task: i64, name: &str) -> Result<(), SqliteError> {
    run(batch.connection, DELETE, (task, name))?;
    Ok(())
}
