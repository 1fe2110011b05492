//! The table `input_request`. A row stays after its request is resolved or withdrawn, because a
//! wire key identifies one input request for the lifetime of the task.

use rusqlite::{Connection, Row, params};

use super::{
    addressee,
    batch::Batch,
    clock::{from_column, to_column},
    column::{count, people, to_json},
    delivery::{self, Subject},
    error::SqliteError,
    statement::{all, one, run},
    vote,
};
use crate::store::{Audience, InputSource, NewInputRequest, TaskEvent, budget, lifetime::Lifetime};

pub(super) const OPEN: &str =
    "INSERT INTO input_request (task, wire_key, journal_key, ordinal, state, due_at, body, is_external, audience,
         people, binding, in_inbox, bytes, opened_at)
     VALUES (?1, ?2, ?3, (SELECT coalesce(max(ordinal), 0) + 1 FROM input_request WHERE task = ?1), 0, ?4,
     ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO UPDATE SET journal_key = excluded.journal_key,
     ordinal = excluded.ordinal, state = 0, due_at = excluded.due_at, body = excluded.body,
     is_external = excluded.is_external, audience = excluded.audience, people = excluded.people,
     binding = excluded.binding, in_inbox = excluded.in_inbox, bytes = excluded.bytes,
     opened_at = excluded.opened_at, settled_at = NULL WHERE state = 2";
pub(super) const WITHDRAW: &str = "UPDATE input_request SET state = 2, settled_at = ?3
     WHERE task = ?1 AND wire_key = ?2 AND state = 0 RETURNING wire_key, audience, in_inbox";
pub(super) const WITHDRAW_ALL: &str = "UPDATE input_request SET state = 2, settled_at = ?2
     WHERE task = ?1 AND state = 0 RETURNING wire_key, audience, in_inbox";
pub(super) const RESOLVE: &str = "UPDATE input_request SET state = 1, settled_at = ?5
     WHERE task = ?1 AND wire_key = ?2 AND state = 0 AND is_external = ?3 AND audience <= ?4
     RETURNING wire_key, audience, in_inbox, journal_key";
pub(super) const OPEN_KEY: &str = "SELECT journal_key FROM input_request
     WHERE task = ?1 AND wire_key = ?2 AND state = 0 AND is_external = ?3 AND audience <= ?4";
pub(super) const BYTES: &str = "SELECT bytes FROM input_request WHERE task = ?1 AND wire_key = ?2";
pub(super) const LIFETIME: &str =
    "SELECT open, created_at, effective_ttl, ttl, max_ttl, phase = 4 FROM task WHERE number = ?1";
pub(super) const UPDATE_TASK: &str =
    "UPDATE task SET open = ?2, effective_ttl = ?3, expires_at = created_at + ?3 WHERE number = ?1";
pub(super) const OPEN_KEYS: &str =
    "SELECT journal_key FROM input_request WHERE task = ?1 AND state = 0 ORDER BY ordinal";
pub(super) const REISSUE_COUNTS: &str = "SELECT journal_key, count(*) - 1 FROM input_request WHERE task = ?1 GROUP BY journal_key HAVING count(*) > 1";

/// The inboxes that contain the requests of a task to its client or caller.
#[derive(Clone, Copy)]
pub(super) struct Listing<'a> {
    pub(super) is_indexed: bool,
    /// Person of the task.
    pub(super) person: Option<&'a str>,
}

/// Opens a request, unless it is open or resolved. Returns the added bytes if the request was not
/// open.
pub(super) fn open(
    batch: &Batch<'_>,
    subject: &Subject<'_>,
    listing: Listing<'_>,
    asked: &NewInputRequest,
) -> Result<Option<i64>, SqliteError> {
    let NewInputRequest { key, name, request, audience, due, binding } = asked;
    let (connection, task, opened_at) = (batch.connection, subject.number, batch.now());
    let outside = request.is_none();
    let audience = if outside { &Audience::Client } else { audience };
    let in_inbox = !outside && (listing.is_indexed || audience.is_people());
    let bytes = count(budget::input_request(asked));
    let before = bytes_of(connection, task, name)?;
    let opened = run(
        connection,
        OPEN,
        params![
            task,
            name,
            key,
            due.map(to_column),
            to_json(request)?,
            outside,
            audience.column(),
            people(audience)?,
            binding.as_ref().map(to_json).transpose()?,
            in_inbox,
            bytes,
            opened_at,
        ],
    )?;
    if opened == 0 {
        return Ok(None);
    }
    let mut freed = 0;
    if let Some(bytes) = before {
        // The people saw another request, so their votes do not count.
        freed = bytes + vote::delete(connection, task, name)?;
    }
    if in_inbox {
        addressee::insert(batch, subject, (name, opened_at), audience, listing.person)?;
    }
    if *audience != Audience::Client {
        delivery::notify(batch, subject, TaskEvent::InputRequestOpened, Some(name))?;
    }
    Ok(Some(bytes - freed))
}

/// Returns the bytes of a request, if it exists.
pub(super) fn bytes_of(
    connection: &Connection,
    task: i64,
    name: &str,
) -> Result<Option<i64>, SqliteError> {
    Ok(one(connection, BYTES, (task, name), |row| row.get(0))?)
}

/// Returns the journal key of an open request that the source may respond to.
pub(super) fn open_key(
    connection: &Connection,
    task: i64,
    name: &str,
    from: InputSource,
) -> Result<Option<String>, SqliteError> {
    let outside = from == InputSource::External;
    Ok(one(connection, OPEN_KEY, (task, name, outside, from.max_audience()), |row| row.get(0))?)
}

/// Withdraws a request. Returns whether it was open.
pub(super) fn withdraw(
    batch: &Batch<'_>,
    subject: &Subject<'_>,
    name: &str,
) -> Result<bool, SqliteError> {
    let values = (subject.number, name, batch.now());
    let closed = one(batch.connection, WITHDRAW, values, Closed::read)?;
    closed.as_ref().map_or(Ok(()), |closed| closed.announce(batch, subject))?;
    Ok(closed.is_some())
}

/// Withdraws all open requests. Returns their number.
pub(super) fn withdraw_all(batch: &Batch<'_>, subject: &Subject<'_>) -> Result<usize, SqliteError> {
    let closed = all(batch.connection, WITHDRAW_ALL, (subject.number, batch.now()), Closed::read)?;
    closed.iter().try_for_each(|closed| closed.announce(batch, subject))?;
    Ok(closed.len())
}

/// Resolves an open request that the source may respond to. Returns its journal key.
pub(super) fn resolve(
    batch: &Batch<'_>,
    subject: &Subject<'_>,
    name: &str,
    from: InputSource,
) -> Result<Option<String>, SqliteError> {
    let outside = from == InputSource::External;
    let values = (subject.number, name, outside, from.max_audience(), batch.now());
    let resolved = one(batch.connection, RESOLVE, values, |row| {
        Ok((Closed::read(row)?, row.get::<_, String>(3)?))
    })?;
    let Some((closed, key)) = resolved else { return Ok(None) };
    closed.announce(batch, subject)?;
    Ok(Some(key))
}

/// A request that has just been closed.
pub(super) struct Closed {
    pub(super) name: String,
    /// Column of its audience.
    pub(super) audience: i16,
    pub(super) in_inbox: bool,
}

impl Closed {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { name: row.get(0)?, audience: row.get(1)?, in_inbox: row.get(2)? })
    }

    /// Removes the request from the inboxes, and writes its deliveries.
    pub(super) fn announce(
        &self,
        batch: &Batch<'_>,
        subject: &Subject<'_>,
    ) -> Result<(), SqliteError> {
        if self.in_inbox {
            addressee::delete(batch, subject.number, &self.name)?;
        }
        if self.audience > Audience::Client.column() {
            let event = TaskEvent::InputRequestSettled;
            delivery::notify(batch, subject, event, Some(&self.name))?;
        }
        Ok(())
    }
}

/// Updates the number of open requests of a task, and the TTL that depends on it.
pub(super) fn update_task(
    batch: &Batch<'_>,
    task: i64,
    opened: usize,
    closed: usize,
) -> Result<(), SqliteError> {
    if (opened, closed) == (0, 0) {
        return Ok(());
    }
    let row = one(batch.connection, LIFETIME, [task], |row| {
        let open = usize::try_from(row.get::<_, i64>(0)?).unwrap_or_default();
        let lifetime = Lifetime {
            ttl: row.get::<_, Option<i64>>(3)?.map(from_column),
            max: from_column(row.get(4)?),
        };
        let ttl = row.get::<_, Option<i64>>(2)?.map(from_column);
        Ok((open, row.get::<_, i64>(1)?, ttl, lifetime, row.get::<_, bool>(5)?))
    })?;
    let Some((before, created, ttl, lifetime, is_kept)) = row else { return Ok(()) };
    let open = (before + opened).saturating_sub(closed);
    let elapsed = from_column(batch.now() - created);
    // A response does not shorten a quarantine.
    let ttl = match is_kept {
        true => ttl,
        false => lifetime.when_asked(ttl, (before, open), elapsed),
    };
    run(batch.connection, UPDATE_TASK, (task, count(open), ttl.map(to_column)))?;
    Ok(())
}

/// Returns the journal keys of the open requests, in the order of their issue.
pub(super) fn open_keys(connection: &Connection, task: i64) -> Result<Vec<String>, SqliteError> {
    Ok(all(connection, OPEN_KEYS, [task], |row| row.get(0))?)
}

/// Returns the number of reissues of each request.
pub(super) fn reissue_counts(
    connection: &Connection,
    task: i64,
) -> Result<Vec<(String, u32)>, SqliteError> {
    Ok(all(connection, REISSUE_COUNTS, [task], |row| Ok((row.get(0)?, row.get(1)?)))?)
}
