//! Input requests for people: inboxes, and requests with their votes.

use tokio_postgres::Row;

use super::{
    clock::{from_column, to_column},
    column::{count, from_json, from_text, get, list, name, optional_name, owned, raw},
    error::PostgresError,
    input_request::{OPERATORS, audience, named, state, with_scope},
    state::Shared,
    statement::{Call, values},
};
use crate::{
    JournalEntry,
    store::{
        InboxCursor, InboxItem, InboxReader, InputRequestDetail, SettledResponse, TaskId,
        UnixMillis, Vote,
    },
};

/// Returns a statement that reads input requests, with more columns. `$from` has the alias `t` for
/// the task and `q` for the input request.
macro_rules! items {
    ($more:literal, $from:literal) => {
        concat!(
            "SELECT t.id, q.wire_key, t.tool, t.principal, t.person, t.request, q.body, q.audience,
                 q.addressees, q.binding, q.state, q.opened_at, q.settled_at, q.due_at,
                 (SELECT count(*) FROM vote a
                     WHERE a.task = q.task AND a.wire_key = q.wire_key AND a.accepts)",
            $more,
            " FROM ",
            $from
        )
    };
}

// Reads the first requests of each addressee, because an index has no order across several. A
// request that is addressed to several of them occurs once.
pub(super) const OPEN: &str = items!(
    "",
    "(SELECT DISTINCT ON (a.opened_at, a.id, a.wire_key) a.opened_at, a.id, a.wire_key
         FROM unnest($1::text[]) AS r (addressee) CROSS JOIN LATERAL (
             SELECT a.opened_at, a.id, a.wire_key FROM addressee a
             WHERE a.addressee = r.addressee AND (a.opened_at, a.id, a.wire_key) > ($2, $3, $4)
                 AND (a.caller IS NULL OR a.caller <> $5)
                 AND ($7::text IS NULL OR EXISTS (
                     SELECT FROM task p WHERE p.id = a.id AND p.principal = $7))
             ORDER BY a.opened_at, a.id, a.wire_key LIMIT $6) AS a
         ORDER BY a.opened_at, a.id, a.wire_key LIMIT $6) AS f
     JOIN task t ON t.id = f.id
     JOIN input_request q ON q.task = t.number AND q.wire_key = f.wire_key
     ORDER BY f.opened_at, f.id, f.wire_key"
);
// A request may be addressed to the name and to a scope of the person.
pub(super) const COUNT: &str = "SELECT count(*) FROM (
     SELECT DISTINCT a.task, a.wire_key FROM unnest($1::text[]) AS r (addressee)
         CROSS JOIN LATERAL (
             SELECT a.task, a.wire_key FROM addressee a
             WHERE a.addressee = r.addressee AND (a.caller IS NULL OR a.caller <> $2)
                 AND ($3::text IS NULL OR EXISTS (
                     SELECT FROM task p WHERE p.id = a.id AND p.principal = $3))
             ORDER BY a.opened_at, a.id, a.wire_key LIMIT $4) AS a
     LIMIT $4) AS f";
pub(super) const SETTLED: &str = "SELECT e.body, q.settled_at FROM input_request q
     JOIN journal_entry e ON e.task = q.task AND e.key = q.journal_key AND e.is_input
     WHERE q.denial = $1 AND q.state = 1 AND q.settled_at >= $2
     ORDER BY q.settled_at DESC LIMIT $3";
pub(super) const VOTED: &str = items!(
    "",
    "(SELECT v.id, v.task, v.wire_key, v.voted_at FROM vote v WHERE v.person = $1
         ORDER BY v.voted_at DESC, v.id DESC LIMIT $2) AS f
     JOIN task t ON t.id = f.id
     JOIN input_request q ON q.task = f.task AND q.wire_key = f.wire_key
     ORDER BY f.voted_at DESC, f.id DESC"
);
// A reissued request has the same journal key, and the response belongs to the last issue.
pub(super) const DETAIL: &str = items!(
    ", v.persons, v.accepts, v.reasons, v.channels, v.times, v.saw_definition,
     (SELECT e.body FROM journal_entry e WHERE e.task = q.task AND e.key = q.journal_key
         AND e.is_input AND q.state = 1 AND NOT EXISTS (SELECT FROM input_request l
             WHERE l.task = q.task AND l.journal_key = q.journal_key AND l.ordinal > q.ordinal)),
     q.ordinal, now_ms($3)",
    "task t JOIN input_request q ON q.task = t.number
     CROSS JOIN LATERAL (SELECT array_agg(person ORDER BY voted_at, person) AS persons,
         array_agg(accepts ORDER BY voted_at, person) AS accepts,
         array_agg(reason ORDER BY voted_at, person) AS reasons,
         array_agg(channel ORDER BY voted_at, person) AS channels,
         array_agg(voted_at ORDER BY voted_at, person) AS times,
         array_agg(saw_definition ORDER BY voted_at, person) AS saw_definition
         FROM vote WHERE task = q.task AND wire_key = q.wire_key) AS v
     WHERE t.id = $1 AND q.wire_key = $2 AND q.body IS NOT NULL"
);

pub(super) fn open_for(reader: &InboxReader, after: Option<&InboxCursor>, limit: usize) -> Call {
    // No request was opened before 1970.
    let (at, task, name) = after.map_or((-1, "", ""), |after| {
        (to_column(after.opened_at), after.task.as_str(), after.name.as_str())
    });
    let (person, principal) = of_reader(reader);
    Call::new(
        OPEN,
        values![addressees(reader), at, owned(task), owned(name), person, count(limit), principal],
    )
}

pub(super) fn count_open(reader: &InboxReader, limit: usize) -> Call {
    let (person, principal) = of_reader(reader);
    Call::new(COUNT, values![addressees(reader), person, principal, count(limit)])
}

pub(super) fn read_count(rows: &[Row]) -> Result<usize, PostgresError> {
    let row = rows.first().ok_or(PostgresError::Silent)?;
    Ok(usize::try_from(get::<i64>(row, 0)?).unwrap_or_default())
}

/// Returns the addressees whose requests a reader sees.
fn addressees(reader: &InboxReader) -> Vec<String> {
    match &reader.person {
        _ if reader.all => vec![OPERATORS.to_owned()],
        Some(person) => {
            let scopes = reader.scopes.iter().map(|scope| with_scope(scope));
            std::iter::once(named(person)).chain(scopes).collect()
        }
        None => Vec::new(),
    }
}

/// Returns the person of a reader, and the principal whose tasks alone it reads.
fn of_reader(reader: &InboxReader) -> (Option<String>, Option<String>) {
    (reader.person.as_deref().map(owned), reader.principal.as_deref().map(owned))
}

pub(super) fn settled_since(denial: &str, since: UnixMillis, limit: usize) -> Call {
    Call::new(SETTLED, values![owned(denial), to_column(since), count(limit)])
}

pub(super) fn read_settled(rows: &[Row]) -> Result<Vec<SettledResponse>, PostgresError> {
    let mut settled = Vec::new();
    for row in rows {
        if let JournalEntry::Answer(response) = from_json("journal", get(row, 0)?)? {
            settled.push(SettledResponse::new(response, from_column(get(row, 1)?)));
        }
    }
    Ok(settled)
}

pub(super) fn voted_by(person: &str, limit: usize) -> Call {
    Call::new(VOTED, values![owned(person), count(limit)])
}

pub(super) fn read_items(rows: &[Row]) -> Result<Vec<InboxItem>, PostgresError> {
    rows.iter().map(item).collect()
}

fn item(row: &Row) -> Result<InboxItem, PostgresError> {
    let binding: Option<&str> = get(row, 9)?;
    Ok(InboxItem {
        task: TaskId::new(name(row, 0)?),
        name: name(row, 1)?,
        tool: name(row, 2)?,
        principal: name(row, 3)?,
        person: optional_name(row, 4)?,
        call: raw("request", get(row, 5)?)?,
        request: from_json("input_request", get(row, 6)?)?,
        audience: audience(get(row, 7)?, get(row, 8)?)?,
        binding: binding.map(|binding| from_json("binding", binding)).transpose()?,
        state: state(get(row, 10)?),
        opened_at: from_column(get(row, 11)?),
        settled_at: get::<Option<i64>>(row, 12)?.map(from_column),
        due: get::<Option<i64>>(row, 13)?.map(from_column),
        approvals: u32::try_from(get::<i64>(row, 14)?).unwrap_or(u32::MAX),
    })
}

/// An input request at the moment of a read.
pub(super) struct Observed {
    pub(super) detail: InputRequestDetail,
    /// Number of the issue. Another issue under the same wire key has another number.
    pub(super) ordinal: i64,
    pub(super) now: UnixMillis,
}

pub(super) fn detail(shared: &Shared, task: &TaskId, name: &str) -> Call {
    Call::new(DETAIL, values![owned(task.as_str()), owned(name), shared.shift.get()])
}

pub(super) fn read_detail(rows: &[Row]) -> Result<Option<Observed>, PostgresError> {
    let Some(row) = rows.first() else { return Ok(None) };
    let response = match get::<Option<&str>>(row, 21)? {
        Some(body) => match from_json("journal", body)? {
            JournalEntry::Answer(response) => Some(response),
            _ => None,
        },
        None => None,
    };
    let detail = InputRequestDetail { item: item(row)?, votes: votes(row)?, response };
    Ok(Some(Observed { detail, ordinal: get(row, 22)?, now: from_column(get(row, 23)?) }))
}

fn votes(row: &Row) -> Result<Vec<Vote>, PostgresError> {
    let persons = list::<String>(row, 15)?.into_iter().zip(list::<bool>(row, 16)?);
    let reasons = list::<Option<String>>(row, 17)?.into_iter();
    let channels = list::<String>(row, 18)?.into_iter().zip(list::<i64>(row, 19)?);
    let votes = persons.zip(reasons).zip(channels).zip(list::<bool>(row, 20)?);
    let votes = votes.map(|((((person, accepts), reason), (channel, at)), saw_definition)| Vote {
        person: from_text(person),
        accepts,
        reason: reason.map(from_text),
        channel: from_text(channel),
        saw_definition,
        at: from_column(at),
    });
    Ok(votes.collect())
}
