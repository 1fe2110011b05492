//! Inboxes of people, and input requests with their votes.

use std::iter;

use rusqlite::{Connection, Row};

use super::{
    addressee,
    clock::{from_column, to_column},
    column::{audience, count, from_json, raw, request_state, to_json},
    error::SqliteError,
    statement::{all, one},
    vote::{self, votes},
};
use crate::{
    JournalEntry,
    store::{
        InboxCursor, InboxItem, InboxReader, InputRequestDetail, SettledResponse, TaskId,
        UnixMillis,
    },
};

/// Selects the columns of a [`Found`], and then those of `more`.
macro_rules! found {
    ($($more:tt)*) => {
        concat!(
            "SELECT task.id, input_request.wire_key, task.tool, task.principal, task.person,
             task_request.body, input_request.body, input_request.audience, input_request.people,
             input_request.binding, input_request.state, input_request.opened_at,
             input_request.settled_at, input_request.due_at, (SELECT count(*) FROM vote AS counted
                 WHERE counted.task = input_request.task AND counted.wire_key = input_request.wire_key
                 AND accepts = 1)",
            $($more)*
        )
    };
}

// A person cannot vote on the calls of the person's own tasks. Operators (?5 is NULL) see all.
pub(super) const ADDRESSED: &str = found!(
    " FROM addressee
     CROSS JOIN input_request ON input_request.task = addressee.task AND input_request.wire_key = addressee.wire_key
     CROSS JOIN task ON task.number = addressee.task
     CROSS JOIN task_request ON task_request.task = addressee.task
     WHERE addressee.addressee = ?1
         AND (addressee.opened_at, addressee.task_id, addressee.wire_key) > (?2, ?3, ?4)
         AND (input_request.audience < 2 OR ?5 IS NULL OR task.person IS NOT ?5)
         AND (?7 IS NULL OR task.principal = ?7)
     ORDER BY addressee.opened_at, addressee.task_id, addressee.wire_key LIMIT ?6"
);
// A request may be for the name and for a scope of the person. ?1 is a JSON array of inboxes.
pub(super) const COUNT: &str = "SELECT count(*) FROM (
     SELECT DISTINCT addressee.task, addressee.wire_key FROM json_each(?1) AS inbox
     CROSS JOIN addressee ON addressee.addressee = inbox.value
     CROSS JOIN input_request ON input_request.task = addressee.task AND input_request.wire_key = addressee.wire_key
     CROSS JOIN task ON task.number = addressee.task
     WHERE (input_request.audience < 2 OR ?2 IS NULL OR task.person IS NOT ?2)
         AND (?3 IS NULL OR task.principal = ?3)
     LIMIT ?4)";
pub(super) const SETTLED: &str = "SELECT journal_entry.body, input_request.settled_at
     FROM input_request CROSS JOIN journal_entry ON journal_entry.task = input_request.task
         AND journal_entry.key = input_request.journal_key
     WHERE input_request.binding IS NOT NULL AND input_request.state = 1
         AND input_request.binding ->> 'denial' = ?1 AND input_request.settled_at >= ?2
     ORDER BY input_request.settled_at DESC LIMIT ?3";
pub(super) const VOTED: &str = found!(
    " FROM vote
     CROSS JOIN input_request ON input_request.task = vote.task AND input_request.wire_key = vote.wire_key
     CROSS JOIN task ON task.number = vote.task
     CROSS JOIN task_request ON task_request.task = vote.task
     WHERE vote.person = ?1 ORDER BY vote.voted_at DESC LIMIT ?2"
);
pub(super) const DETAIL: &str = found!(
    ", ",
    votes!(),
    ", journal_entry.body FROM task
     JOIN task_request ON task_request.task = task.number
     JOIN input_request ON input_request.task = task.number AND input_request.wire_key = ?2
     LEFT JOIN journal_entry ON journal_entry.task = task.number
         AND journal_entry.key = input_request.journal_key AND input_request.state = 1
     WHERE task.id = ?1 AND input_request.is_external = 0"
);

/// First column after those of a [`Found`].
const MORE: usize = 15;

/// Returns the open requests in the inboxes of a reader. Must run inside a transaction, so that all
/// statements read the same state.
pub(super) fn open_for(
    connection: &Connection,
    reader: &InboxReader,
    after: Option<&InboxCursor>,
    limit: usize,
) -> Result<Vec<InboxItem>, SqliteError> {
    let (inboxes, person) = inboxes(reader);
    let (opened_at, task, name) = after.map_or((-1, "", ""), |after| {
        (to_column(after.opened_at), after.task.as_str(), after.name.as_str())
    });
    let mut found = Vec::new();
    // Each inbox is read by its index, and the pages are merged.
    for inbox in inboxes {
        let values = (inbox, opened_at, task, name, person, count(limit), &reader.principal);
        found.extend(all(connection, ADDRESSED, values, Found::read)?);
    }
    found.sort_by(|one, other| one.place().cmp(&other.place()));
    // A request may be for the name and for a scope of the person.
    found.dedup_by(|one, other| one.place() == other.place());
    found.truncate(limit);
    found.into_iter().map(Found::item).collect()
}

/// Returns the inboxes of a reader, and the person who does not vote on own calls; `None` for
/// operators.
fn inboxes(reader: &InboxReader) -> (Vec<String>, Option<&str>) {
    match &reader.person {
        _ if reader.all => (vec![addressee::operators()], None),
        Some(person) => {
            let scopes = reader.scopes.iter().map(|scope| addressee::scope(scope));
            (iter::once(addressee::person(person)).chain(scopes).collect(), Some(person))
        }
        None => (Vec::new(), None),
    }
}

/// Returns the number of open requests in the inboxes of a reader, at most `limit`.
pub(super) fn count_open(
    connection: &Connection,
    reader: &InboxReader,
    limit: usize,
) -> Result<usize, SqliteError> {
    let (inboxes, person) = inboxes(reader);
    let values = (to_json(&inboxes)?, person, &reader.principal, count(limit));
    let open = one(connection, COUNT, values, |row| row.get::<_, u32>(0))?;
    Ok(open.map_or(0, |open| usize::try_from(open).unwrap_or(limit)))
}

/// Returns the responses that have settled approval requests with a denial key since a time, newest
/// first.
pub(super) fn settled_since(
    connection: &Connection,
    denial: &str,
    since: UnixMillis,
    limit: usize,
) -> Result<Vec<SettledResponse>, SqliteError> {
    let values = (denial, to_column(since), count(limit));
    let rows = all(connection, SETTLED, values, |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
    })?;
    let mut settled = Vec::new();
    for (body, settled_at) in rows {
        if let JournalEntry::Answer(response) = from_json("journal", &body)? {
            settled.push(SettledResponse::new(response, from_column(settled_at)));
        }
    }
    Ok(settled)
}

/// Returns the requests that a person has voted on, newest vote first.
pub(super) fn voted_by(
    connection: &Connection,
    person: &str,
    limit: usize,
) -> Result<Vec<InboxItem>, SqliteError> {
    let found = all(connection, VOTED, (person, count(limit)), Found::read)?;
    found.into_iter().map(Found::item).collect()
}

/// Returns an input request in any state.
pub(super) fn detail(
    connection: &Connection,
    task: &TaskId,
    name: &str,
) -> Result<Option<InputRequestDetail>, SqliteError> {
    let row = one(connection, DETAIL, (task.as_str(), name), |row| {
        let votes: String = row.get(MORE)?;
        Ok((Found::read(row)?, votes, row.get::<_, Option<String>>(MORE + 1)?))
    })?;
    let Some((found, votes, entry)) = row else { return Ok(None) };
    let entry = entry.map(|entry| from_json("journal", &entry)).transpose()?;
    let response = match entry {
        Some(JournalEntry::Answer(response)) => Some(response),
        _ => None,
    };
    Ok(Some(InputRequestDetail { item: found.item()?, votes: vote::read(&votes)?, response }))
}

/// Row of an input request with its call.
struct Found {
    task: String,
    name: String,
    tool: String,
    principal: String,
    person: Option<String>,
    call: String,
    body: String,
    audience: i16,
    people: Option<String>,
    binding: Option<String>,
    state: i64,
    opened_at: i64,
    settled_at: Option<i64>,
    due: Option<i64>,
    approvals: u32,
}

impl Found {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            task: row.get(0)?,
            name: row.get(1)?,
            tool: row.get(2)?,
            principal: row.get(3)?,
            person: row.get(4)?,
            call: row.get(5)?,
            body: row.get(6)?,
            audience: row.get(7)?,
            people: row.get(8)?,
            binding: row.get(9)?,
            state: row.get(10)?,
            opened_at: row.get(11)?,
            settled_at: row.get(12)?,
            due: row.get(13)?,
            approvals: row.get(14)?,
        })
    }

    /// Returns the position in an inbox.
    fn place(&self) -> (i64, &str, &str) {
        (self.opened_at, &self.task, &self.name)
    }

    fn item(self) -> Result<InboxItem, SqliteError> {
        let binding = self.binding.map(|binding| from_json("binding", &binding));
        Ok(InboxItem {
            task: TaskId::new(self.task),
            name: self.name,
            tool: self.tool,
            principal: self.principal,
            person: self.person,
            call: raw("request", self.call)?,
            request: from_json("input_request", &self.body)?,
            audience: audience(self.audience, self.people.as_deref())?,
            binding: binding.transpose()?,
            state: request_state(self.state),
            opened_at: from_column(self.opened_at),
            settled_at: self.settled_at.map(from_column),
            due: self.due.map(from_column),
            approvals: self.approvals,
        })
    }
}
