//! Lists of tasks for the console.
//!
//! One index finds the tasks of one condition, newest first. The statement checks the other
//! conditions row by row, and this code stops after [`MAX_SEARCHED`] rows. Row numbers grow with the
//! time of creation, so a time is found by bisection.

use rusqlite::{Connection, Row, ToSql, types::Null};
use serde_json::json;

use super::{
    clock::{from_column, to_column},
    column::{ENDED, KEPT, PARKED, QUEUED, RUNNING},
    error::SqliteError,
    statement::{all, one, until},
    summary::{MORE, Watched, overseen},
};
use crate::store::{
    IndexedTask, ListCursor, MAX_SEARCHED, OutcomeKind, TaskCount, TaskId, TaskOutcome, TaskPage,
    TaskQuery, TaskState,
};

/// Selects row numbers, and whether the row fulfills all conditions.
macro_rules! searched {
    ($from:literal, $number:literal) => {
        concat!(
            "SELECT task.number, created_at >= ?4 AND created_at < ?5 AND (?6 >> phase) & 1
                 AND (?7 IS NULL OR outcome_kind = ?7)
                 AND (?8 IS NULL OR tool = ?8 AND indexed = 1)
                 AND (?9 IS NULL OR person = ?9 AND indexed = 1)
                 AND (?10 IS NULL OR ?10 = (open > 0 AND EXISTS (SELECT 1 FROM input_request
                     WHERE input_request.task = task.number AND state = 0 AND is_external = 0)))
             FROM ",
            $from,
            $number,
            " < ?2 AND ",
            $number,
            " >= ?3 ORDER BY ",
            $number,
            " DESC"
        )
    };
}

pub(super) const BY_TAG: &str = searched!(
    "tag CROSS JOIN task ON task.number = tag.number WHERE tag.tag = ?1 AND ",
    "tag.number"
);
pub(super) const BY_PERSON: &str =
    searched!("task WHERE indexed = 1 AND person = ?1 AND ", "task.number");
pub(super) const BY_PHASE: &str =
    searched!("task WHERE phase <> 3 AND phase = ?1 AND ", "task.number");
pub(super) const BY_INPUT: &str = searched!("task WHERE open > 0 AND ", "task.number");
pub(super) const BY_OUTCOME: &str =
    searched!("task WHERE outcome_kind > 0 AND outcome_kind = ?1 AND ", "task.number");
pub(super) const BY_TOOL: &str =
    searched!("task WHERE indexed = 1 AND tool = ?1 AND ", "task.number");
pub(super) const BY_NUMBER: &str = searched!("task WHERE ", "task.number");

/// Selects the columns of an [`IndexedTask`].
macro_rules! listed {
    ($which:literal) => {
        overseen!(
            ", person, open > 0 AND EXISTS (SELECT 1 FROM input_request
                 WHERE input_request.task = task.number AND state = 0 AND is_external = 0)",
            $which
        )
    };
}

pub(super) const FETCH: &str =
    listed!("WHERE number IN (SELECT value FROM json_each(?1)) ORDER BY number DESC");
pub(super) const ONE: &str = listed!("WHERE id = ?1");
pub(super) const NUMBER: &str = "SELECT number FROM task WHERE id = ?1";
pub(super) const CURSOR: &str = "SELECT created_at, id FROM task WHERE number = ?1";
pub(super) const ENDS: &str =
    "SELECT (SELECT min(number) FROM task), (SELECT max(number) FROM task)";
pub(super) const NEXT: &str =
    "SELECT number, created_at FROM task WHERE number >= ?1 ORDER BY number LIMIT 1";

/// Returns the tasks that match a query. Must run inside a transaction, so that all statements read
/// the same state.
pub(super) fn page(
    connection: &Connection,
    query: &TaskQuery,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<TaskPage, SqliteError> {
    let search = Search::new(connection, query, after)?;
    let (mut found, mut last) = (Vec::new(), None);
    let has_more = search.run(connection, |number, matches| {
        if found.len() == limit {
            return false;
        }
        last = Some(number);
        found.extend(matches.then_some(number));
        true
    })?;
    let next = match last.filter(|_| has_more) {
        Some(last) => one(connection, CURSOR, [last], |row| {
            Ok(ListCursor::new(from_column(row.get(0)?), TaskId::new(row.get::<_, String>(1)?)))
        })?,
        None => None,
    };
    let searched_to = next.as_ref().filter(|_| found.len() < limit).map(|next| next.created);
    Ok(TaskPage { tasks: fetch(connection, &found)?, next, searched_to })
}

/// Returns the number of tasks that match a query. Must run inside a transaction.
pub(super) fn count(
    connection: &Connection,
    query: &TaskQuery,
    limit: usize,
) -> Result<TaskCount, SqliteError> {
    let mut count = 0;
    let more = Search::new(connection, query, None)?.run(connection, |_, matches| {
        if count == limit {
            return false;
        }
        count += usize::from(matches);
        true
    })?;
    Ok(TaskCount { count, more })
}

/// Returns a task by its ID.
pub(super) fn task(
    connection: &Connection,
    task: &TaskId,
) -> Result<Option<IndexedTask>, SqliteError> {
    let found = one(connection, ONE, [task.as_str()], Listed::read)?;
    found.map(Listed::task).transpose()
}

/// Reads tasks by their row numbers, newest first.
fn fetch(connection: &Connection, numbers: &[i64]) -> Result<Vec<IndexedTask>, SqliteError> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let rows = all(connection, FETCH, [json!(numbers).to_string()], Listed::read)?;
    rows.into_iter().map(Listed::task).collect()
}

/// Row of a task in a list.
struct Listed {
    watched: Watched,
    person: Option<String>,
    input_required: bool,
}

impl Listed {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let (person, input_required) = (row.get(MORE)?, row.get(MORE + 1)?);
        Ok(Self { watched: Watched::read(row)?, person, input_required })
    }

    fn task(self) -> Result<IndexedTask, SqliteError> {
        let summary = self.watched.overseen()?;
        let outcome = summary.view.outcome.as_ref().map(TaskOutcome::kind);
        let state = TaskState::new(summary.view.phase, outcome, self.input_required);
        Ok(IndexedTask { summary, state, person: self.person })
    }
}

/// A query with its range of row numbers.
struct Search<'a> {
    query: &'a TaskQuery,
    /// First row number.
    from: i64,
    /// Row number after the last one.
    before: i64,
}

impl<'a> Search<'a> {
    fn new(
        connection: &Connection,
        query: &'a TaskQuery,
        after: Option<&ListCursor>,
    ) -> Result<Self, SqliteError> {
        let since = query.since.map(|since| first_since(connection, to_column(since)));
        let until = query.until.map(|until| first_since(connection, to_column(until)));
        let after = after.map(|after| number_of(connection, after));
        let before = until.transpose()?.into_iter().chain(after.transpose()?).min();
        let (from, before) = (since.transpose()?.unwrap_or(0), before.unwrap_or(i64::MAX));
        Ok(Self { query, from, before })
    }

    /// Calls `check` for each row with its number, and whether it matches. Returns whether rows are
    /// left: because `check` returned `false`, or after [`MAX_SEARCHED`] rows.
    fn run(
        &self,
        connection: &Connection,
        mut check: impl FnMut(i64, bool) -> bool,
    ) -> Result<bool, SqliteError> {
        let TaskQuery { state, tool, person, since, until: end, .. } = self.query;
        let (phases, outcome, has_input) = conditions(*state);
        let (sql, key) = index(self.query);
        let since = since.map_or(0, to_column);
        let end = end.map_or(i64::MAX, to_column);
        let values: [&dyn ToSql; 10] = [
            &*key,
            &self.before,
            &self.from,
            &since,
            &end,
            &phases,
            &outcome,
            tool,
            person,
            &has_input,
        ];
        let (mut searched, mut has_more) = (0, false);
        until(connection, sql, &values[..], |row| {
            // A comparison with a missing value is NULL.
            let matches = row.get::<_, Option<bool>>(1)?.unwrap_or_default();
            has_more = searched == MAX_SEARCHED || !check(row.get(0)?, matches);
            searched += 1;
            Ok(!has_more)
        })?;
        Ok(has_more)
    }
}

/// Returns the statement of the index that finds the fewest rows, and its key. A person comes
/// before state and tool, so that no search of a person reads tasks of other people.
fn index(query: &TaskQuery) -> (&'static str, Box<dyn ToSql + '_>) {
    if let Some(tag) = &query.tag {
        return (BY_TAG, Box::new(tag));
    }
    if let Some(person) = &query.person {
        return (BY_PERSON, Box::new(person));
    }
    let by_outcome = |outcome: OutcomeKind| -> (&'static str, Box<dyn ToSql>) {
        (BY_OUTCOME, Box::new(outcome.column()))
    };
    match query.state {
        Some(TaskState::Queued) => (BY_PHASE, Box::new(QUEUED)),
        Some(TaskState::Running) => (BY_PHASE, Box::new(RUNNING)),
        Some(TaskState::Waiting) => (BY_PHASE, Box::new(PARKED)),
        Some(TaskState::Quarantined) => (BY_PHASE, Box::new(KEPT)),
        Some(TaskState::InputRequired) => (BY_INPUT, Box::new(Null)),
        Some(TaskState::Failed) => by_outcome(OutcomeKind::Failed),
        Some(TaskState::Cancelled) => by_outcome(OutcomeKind::Cancelled),
        Some(TaskState::Expired) => by_outcome(OutcomeKind::Expired),
        Some(TaskState::Completed) | None => match &query.tool {
            Some(tool) => (BY_TOOL, Box::new(tool)),
            None => (BY_NUMBER, Box::new(Null)),
        },
    }
}

/// Returns the conditions of a state: its phases as bits, its outcome, and whether an input request
/// to the client or to people is open.
fn conditions(state: Option<TaskState>) -> (i64, Option<i16>, Option<bool>) {
    let ended = |kind: OutcomeKind| (1 << ENDED, Some(kind.column()), None);
    match state {
        None => (-1, None, None),
        Some(TaskState::Queued) => (1 << QUEUED, None, None),
        Some(TaskState::Running) => (1 << RUNNING, None, Some(false)),
        Some(TaskState::InputRequired) => ((1 << RUNNING) | (1 << PARKED), None, Some(true)),
        Some(TaskState::Waiting) => (1 << PARKED, None, Some(false)),
        Some(TaskState::Quarantined) => (1 << KEPT, None, None),
        Some(TaskState::Completed) => ended(OutcomeKind::Completed),
        Some(TaskState::Failed) => ended(OutcomeKind::Failed),
        Some(TaskState::Cancelled) => ended(OutcomeKind::Cancelled),
        Some(TaskState::Expired) => ended(OutcomeKind::Expired),
    }
}

/// Returns the row number of a cursor. If its task was deleted, tasks of the same millisecond may be
/// repeated.
fn number_of(connection: &Connection, cursor: &ListCursor) -> Result<i64, SqliteError> {
    match one(connection, NUMBER, [cursor.id.as_str()], |row| row.get(0))? {
        Some(number) => Ok(number),
        None => first_since(connection, to_column(cursor.created) + 1),
    }
}

/// Returns the number of the first row that was created at or after a time. Without such a row,
/// returns the number after the last row.
fn first_since(connection: &Connection, time: i64) -> Result<i64, SqliteError> {
    let ends = one(connection, ENDS, [], |row| {
        Ok(row.get::<_, Option<i64>>(0)?.zip(row.get::<_, Option<i64>>(1)?))
    })?;
    let Some((mut low, last)) = ends.flatten() else { return Ok(0) };
    let mut high = last + 1;
    let next = |number: i64| -> Result<Option<(i64, i64)>, SqliteError> {
        Ok(one(connection, NEXT, [number], |row| Ok((row.get(0)?, row.get(1)?)))?)
    };
    while low < high {
        let middle = low + (high - low) / 2;
        match next(middle)? {
            Some((number, created)) if number < high && created < time => low = number + 1,
            _ => high = middle,
        }
    }
    Ok(next(low)?.map_or(low, |(number, _)| number))
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::{MAX_SEARCHED, first_since, number_of, page};
    use crate::store::{ListCursor, TaskId, TaskQuery, TaskState, sqlite::schema};

    /// Creates completed tasks of one person, at ten times their number. Every third number is
    /// free, and the first task has another tool.
    fn filled(numbers: i64) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let fill = "WITH RECURSIVE row (number) AS (
                SELECT 1 UNION ALL SELECT number + 1 FROM row WHERE number < ?1)
            INSERT INTO task (number, id, principal, tool, origin, listed, phase, epoch, created_at,
                updated_at, max_ttl, started, crash_count, has_cleanup, person, indexed,
                outcome_kind, outcome)
            SELECT number, 't' || number, 'p', iif(number = 1, 'rare', 'deploy'), '', 0, 3, 1,
                number * 10, number * 10, 0, 1, 0, 0, 'ann', 1, 0, '{\"Result\":{}}'
            FROM row WHERE number % 3 > 0";
        connection.execute(fill, [numbers]).unwrap();
        connection
    }

    #[test]
    fn time_is_found_between_free_numbers() {
        let connection = filled(8);
        for (time, number) in [(0, 1), (10, 1), (11, 2), (20, 2), (21, 4), (40, 4), (71, 8)] {
            assert_eq!(first_since(&connection, time).unwrap(), number, "{time}");
        }
        assert_eq!(first_since(&connection, 81).unwrap(), 9, "after the last row");
    }

    #[test]
    fn cursor_of_deleted_task_continues_after_its_time() {
        let connection = filled(8);
        let cursor = |created, id: &str| ListCursor::new(created, TaskId::new(id));
        assert_eq!(number_of(&connection, &cursor(50, "t5")).unwrap(), 5);
        assert_eq!(number_of(&connection, &cursor(60, "t6")).unwrap(), 7);
    }

    #[test]
    fn search_stops_after_maximum_and_continues_from_there() {
        let connection = filled(2 * i64::try_from(MAX_SEARCHED).unwrap());
        let person = TaskQuery::default().person(Some("ann".to_owned()));
        for query in [
            TaskQuery::default().tool(Some("rare".to_owned())).state(Some(TaskState::Completed)),
            person.clone().tool(Some("rare".to_owned())),
            person.until(Some(20)),
        ] {
            let (mut after, mut pages) = (None, 0);
            let found = loop {
                let page = page(&connection, &query, after.as_ref(), 10).unwrap();
                pages += 1;
                assert_eq!(page.searched_to, page.next.as_ref().map(|next| next.created));
                assert!(page.tasks.is_empty() || page.next.is_none(), "{query:?}");
                match page.next {
                    Some(next) => after = Some(next),
                    None => break page.tasks,
                }
            };
            // Two thirds of the numbers are tasks, so they take two pages without an index.
            assert_eq!(pages, if query.person.is_some() && query.tool.is_some() { 2 } else { 1 });
            let ids: Vec<&str> = found.iter().map(|task| task.summary.view.id.as_str()).collect();
            assert_eq!(ids, ["t1"]);
        }
    }
}
