//! Lists of tasks. Each statement reads the index of one condition, newest task first, and checks
//! the other conditions on at most [`MAX_SEARCHED`] rows. `query_plans` checks the indexes.

use tokio_postgres::Row;

use super::{
    clock::to_column,
    column::{count, get, optional_name, owned},
    error::PostgresError,
    read::seen,
    statement::{Call, values},
    summary::{overseen, summary},
};
use crate::store::{
    IndexedTask, ListCursor, MAX_SEARCHED, OutcomeKind, TaskCount, TaskId, TaskOutcome, TaskPage,
    TaskQuery, TaskState,
};

/// Returns a subquery of the tasks that match, newest first, and of the last searched task. `$from`
/// selects the rows of an index, with the alias `t`.
macro_rules! found {
    ($from:literal) => {
        concat!(
            "(SELECT c.found, c.found_at, c.place, c.matches FROM (
                 SELECT c.found, c.found_at, c.place, (
                     ($2::text IS NULL OR c.indexed AND c.person = $2)
                     AND ($3::text IS NULL OR c.indexed AND c.tool = $3)
                     AND ($4::smallint[] IS NULL OR c.phase = ANY ($4))
                     AND ($5::smallint IS NULL OR c.outcome_kind = $5)
                     AND ($1::text IS NULL OR EXISTS (SELECT FROM tag g
                         WHERE g.task = c.number AND g.tag = $1))
                     AND ($6::boolean IS NULL OR $6 = EXISTS (SELECT FROM input_request q
                         WHERE q.task = c.number AND q.state = 0 AND q.body IS NOT NULL))
                 ) IS TRUE AS matches FROM (
                     SELECT t.id AS found, t.created_at AS found_at, t.number, t.indexed, t.person,
                         t.tool, t.phase, t.outcome_kind,
                         row_number() OVER (ORDER BY t.created_at DESC, t.id DESC) AS place
                     FROM ",
            $from,
            " AND t.created_at >= $7 AND (t.created_at, t.id) < ($8, $9)
                     ORDER BY t.created_at DESC, t.id DESC LIMIT $10) AS c) AS c
             WHERE c.matches OR c.place = $10
             ORDER BY c.found_at DESC, c.found DESC LIMIT $11) AS f"
        )
    };
}

/// Returns the columns that follow a summary: the person, whether the task matches, its position,
/// and whether a request to the client or to people is open.
macro_rules! listed {
    ($found:literal) => {
        concat!(
            ", person, ",
            $found,
            ", EXISTS (SELECT FROM input_request i
                 WHERE i.task = t.number AND i.state = 0 AND i.body IS NOT NULL)"
        )
    };
}

/// Returns the statement that reads a page.
macro_rules! page {
    ($from:literal) => {
        seen!(
            concat!(summary!(), listed!("f.matches, f.place")),
            concat!(
                "JOIN ",
                found!($from),
                " ON f.found = t.id ORDER BY f.found_at DESC, f.found DESC"
            )
        )
    };
}

/// Returns the statement that counts tasks.
macro_rules! counted {
    ($from:literal) => {
        concat!(
            "SELECT count(*) FILTER (WHERE f.matches), coalesce(bool_or(f.place = $10), false) FROM ",
            found!($from)
        )
    };
}

/// Declares the statements of an index.
macro_rules! statements {
    ($($name:ident: $from:literal;)*) => {
        $(pub(super) const $name: Statements =
            Statements { page: page!($from), count: counted!($from) };)*
    };
}

/// Statements that read one index.
#[derive(Clone, Copy)]
pub(super) struct Statements {
    pub(super) page: &'static str,
    pub(super) count: &'static str,
}

statements! {
    // With the columns of the index, by which the planner knows the order of its rows.
    BY_TAG: "(SELECT k.id, k.created_at, t.number, t.indexed, t.person, t.tool, t.phase,
                 t.outcome_kind FROM tag k JOIN task t ON t.id = k.id WHERE k.tag = $1) AS t
             WHERE true";
    BY_PERSON: "task t WHERE t.indexed AND t.person = $2";
    OPEN: "task t WHERE t.phase <> 3";
    BY_OUTCOME: "task t WHERE t.outcome_kind > 0 AND t.outcome_kind = $5";
    BY_TOOL: "task t WHERE t.indexed AND t.tool = $3";
    ALL: "task t WHERE t.indexed";
}

/// Reads one task, in the columns of a page.
pub(super) const ONE: &str =
    seen!(concat!(summary!(), listed!("true, 0::bigint")), "WHERE id = $1");

/// Returns the statements for a query: those of the index that likely has the fewest rows.
fn statements(query: &TaskQuery, conditions: &Conditions) -> Statements {
    let is_open = conditions.phases.as_ref().is_some_and(|phases| *phases != [ENDED]);
    match query {
        TaskQuery { tag: Some(_), .. } => BY_TAG,
        TaskQuery { person: Some(_), .. } => BY_PERSON,
        _ if is_open => OPEN,
        _ if conditions.outcome.is_some_and(|outcome| outcome > 0) => BY_OUTCOME,
        TaskQuery { tool: Some(_), .. } => BY_TOOL,
        _ => ALL,
    }
}

/// Column of the phase of ended tasks.
const ENDED: i16 = 3;

/// Conditions of a state, in columns.
#[derive(Default)]
struct Conditions {
    phases: Option<Vec<i16>>,
    outcome: Option<i16>,
    /// Whether a request to the client or to people is open.
    input_required: Option<bool>,
}

impl Conditions {
    /// Returns the conditions of a state, as in [`TaskState::new`].
    fn new(state: Option<TaskState>) -> Self {
        let (phases, input_required): (&[i16], _) = match state {
            None => return Self::default(),
            Some(TaskState::Queued) => (&[0], None),
            Some(TaskState::Running) => (&[1], Some(false)),
            Some(TaskState::InputRequired) => (&[1, 2], Some(true)),
            Some(TaskState::Waiting) => (&[2], Some(false)),
            Some(TaskState::Quarantined) => (&[4], None),
            Some(
                TaskState::Completed
                | TaskState::Failed
                | TaskState::Cancelled
                | TaskState::Expired,
            ) => (&[ENDED], None),
        };
        let outcome = match state {
            Some(TaskState::Completed) => Some(OutcomeKind::Completed),
            Some(TaskState::Failed) => Some(OutcomeKind::Failed),
            Some(TaskState::Cancelled) => Some(OutcomeKind::Cancelled),
            Some(TaskState::Expired) => Some(OutcomeKind::Expired),
            _ => None,
        };
        let outcome = outcome.map(OutcomeKind::column);
        Self { phases: Some(phases.to_vec()), outcome, input_required }
    }
}

/// Returns the statement that reads a page. It returns one more task, so that the caller knows
/// whether the list continues.
pub(super) fn page(query: &TaskQuery, after: Option<&ListCursor>, limit: usize) -> Call {
    call(query, after, limit, |statements| statements.page)
}

/// Returns the statement that counts tasks, and one more than the limit.
pub(super) fn counting(query: &TaskQuery, limit: usize) -> Call {
    call(query, None, limit, |statements| statements.count)
}

fn call(
    query: &TaskQuery,
    after: Option<&ListCursor>,
    limit: usize,
    sql: fn(Statements) -> &'static str,
) -> Call {
    let conditions = Conditions::new(query.state);
    let sql = sql(statements(query, &conditions));
    // No ID is empty, so this position is before all tasks of that time.
    let until = query.until.map(|until| (to_column(until), ""));
    let after = after.map(|after| (to_column(after.created), after.id.as_str()));
    let before = until.into_iter().chain(after).min().unwrap_or((i64::MAX, ""));
    Call::new(
        sql,
        values![
            query.tag.as_deref().map(owned),
            query.person.as_deref().map(owned),
            query.tool.as_deref().map(owned),
            conditions.phases,
            conditions.outcome,
            conditions.input_required,
            query.since.map_or(0, to_column),
            before.0,
            owned(before.1),
            count(MAX_SEARCHED),
            count(limit.saturating_add(1)),
        ],
    )
}

/// Returns the statement that reads one task.
pub(super) fn one(task: &TaskId) -> Call {
    Call::new(ONE, values![owned(task.as_str())])
}

pub(super) fn read_one(rows: &[Row]) -> Result<Option<IndexedTask>, PostgresError> {
    rows.first().map(indexed).transpose()
}

pub(super) fn read_page(rows: &[Row], limit: usize) -> Result<TaskPage, PostgresError> {
    let mut page = TaskPage::default();
    for row in rows {
        if page.tasks.len() == limit {
            page.next = page.tasks.last().map(cursor);
            break;
        }
        let task = indexed(row)?;
        if get::<i64>(row, 25)? == count(MAX_SEARCHED) {
            page.searched_to = Some(task.summary.view.created_at);
            page.next = Some(cursor(&task));
        }
        if get(row, 24)? {
            page.tasks.push(task);
        }
    }
    Ok(page)
}

fn cursor(task: &IndexedTask) -> ListCursor {
    let view = &task.summary.view;
    ListCursor::new(view.created_at, view.id.clone())
}

fn indexed(row: &Row) -> Result<IndexedTask, PostgresError> {
    let summary = overseen(row)?;
    let outcome = summary.view.outcome.as_ref().map(TaskOutcome::kind);
    let state = TaskState::new(summary.view.phase, outcome, get(row, 26)?);
    Ok(IndexedTask { summary, state, person: optional_name(row, 23)? })
}

pub(super) fn read_count(rows: &[Row], limit: usize) -> Result<TaskCount, PostgresError> {
    let Some(row) = rows.first() else { return Ok(TaskCount::default()) };
    let found = usize::try_from(get::<i64>(row, 0)?).unwrap_or_default();
    let more = found > limit || get(row, 1)?;
    Ok(TaskCount { count: found.min(limit), more })
}

#[cfg(test)]
mod tests {
    use super::Conditions;
    use crate::store::{OutcomeKind, Phase, TaskState};

    #[test]
    fn conditions_of_state_select_exactly_its_tasks() {
        let phases =
            [Phase::Queued, Phase::Running, Phase::Parked, Phase::Ended, Phase::Quarantined];
        let kinds = [
            OutcomeKind::Completed,
            OutcomeKind::Failed,
            OutcomeKind::Cancelled,
            OutcomeKind::Expired,
        ];
        for (column, phase) in (0_i16..).zip(phases) {
            for input_required in [false, true] {
                for kind in kinds {
                    let outcome = (phase == Phase::Ended).then_some(kind);
                    let state = TaskState::new(phase, outcome, input_required);
                    let matching = TaskState::ALL.into_iter().filter(|state| {
                        let conditions = Conditions::new(Some(*state));
                        conditions.phases.unwrap().contains(&column)
                            && conditions
                                .outcome
                                .is_none_or(|of| outcome.map(OutcomeKind::column) == Some(of))
                            && conditions.input_required.is_none_or(|of| of == input_required)
                    });
                    assert_eq!(matching.collect::<Vec<_>>(), [state]);
                }
            }
        }
    }
}
