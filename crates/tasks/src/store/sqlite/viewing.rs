//! Seeing tasks.

use rusqlite::{Connection, Row};

use super::{
    clock::{from_column, to_column},
    column::{count, from_json, phase, raw},
    problem::Problem,
    questions,
    statement::{all, one},
};
use crate::store::{After, TaskId, View};

macro_rules! seen {
    ($which:literal) => {
        concat!(
            "SELECT number, id, kind, body, phase, outcome, created, updated, ttl, message,
             cancel_requested FROM task JOIN request ON request.task = task.number ",
            $which
        )
    };
}

pub(super) const VIEW: &str = seen!("WHERE id = ?1 AND principal = ?2");
pub(super) const LIST: &str =
    seen!("WHERE principal = ?1 AND (created, id) > (?2, ?3) ORDER BY created, id LIMIT ?4");

pub(super) fn view(
    connection: &Connection,
    principal: &str,
    task: &TaskId,
) -> Result<Option<View>, Problem> {
    let seen = one(connection, VIEW, (task.as_str(), principal), Seen::read)?;
    seen.map(|seen| seen.view(connection)).transpose()
}

pub(super) fn list(
    connection: &Connection,
    principal: &str,
    after: Option<&After>,
    limit: usize,
) -> Result<Vec<View>, Problem> {
    // Nothing was made before 1970, and no name is empty.
    let (created, id) =
        after.map_or((0, ""), |after| (to_column(after.created), after.id.as_str()));
    let seen = all(connection, LIST, (principal, created, id, count(limit)), Seen::read)?;
    seen.into_iter().map(|seen| seen.view(connection)).collect()
}

/// A row as it stands there.
struct Seen {
    number: i64,
    id: String,
    kind: String,
    request: String,
    phase: i64,
    outcome: Option<String>,
    created: i64,
    updated: i64,
    ttl: Option<i64>,
    message: Option<String>,
    cancel_requested: Option<i64>,
}

impl Seen {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get(0)?,
            id: row.get(1)?,
            kind: row.get(2)?,
            request: row.get(3)?,
            phase: row.get(4)?,
            outcome: row.get(5)?,
            created: row.get(6)?,
            updated: row.get(7)?,
            ttl: row.get(8)?,
            message: row.get(9)?,
            cancel_requested: row.get(10)?,
        })
    }

    fn view(self, connection: &Connection) -> Result<View, Problem> {
        let outcome = self.outcome.map(|outcome| from_json("outcome", &outcome));
        Ok(View {
            questions: questions::open(connection, self.number)?,
            id: TaskId::new(self.id),
            kind: self.kind,
            request: raw("request", self.request)?,
            phase: phase(self.phase)?,
            outcome: outcome.transpose()?,
            created: from_column(self.created),
            updated: from_column(self.updated),
            ttl: self.ttl.map(from_column),
            message: self.message,
            cancel_requested: self.cancel_requested.map(from_column),
        })
    }
}
