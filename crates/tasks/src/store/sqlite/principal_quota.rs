//! The table `principal_quota`: open tasks and stored bytes of each principal. A commit reads and
//! writes each row at most once, however many tasks it creates and ends.

use std::collections::HashMap;

use rusqlite::Connection;

use super::{
    clock::to_column,
    column::count,
    error::SqliteError,
    statement::{one, run},
};
use crate::store::CreateOutcome;

pub(super) const COUNTED: &str = "SELECT count, bytes FROM principal_quota WHERE principal = ?1";
pub(super) const COUNT: &str =
    "INSERT INTO principal_quota (principal, count, bytes) VALUES (?1, ?2, ?3)
     ON CONFLICT DO UPDATE SET count = excluded.count, bytes = excluded.bytes";
pub(super) const FORGET: &str = "DELETE FROM principal_quota WHERE principal = ?1";

/// Rows of the principals whose tasks a commit changes.
#[derive(Clone, Debug, Default)]
pub(super) struct PrincipalQuotas(HashMap<String, Counted>);

#[derive(Clone, Copy, Debug)]
struct Counted {
    stored: Count,
    now: Count,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    tasks: i64,
    bytes: i64,
}

impl PrincipalQuotas {
    /// Counts one more task and its bytes. Returns the outcome if a limit is exceeded.
    pub(super) fn count_in(
        &mut self,
        connection: &Connection,
        principal: &str,
        bytes: usize,
        (quota, max_bytes): (usize, u64),
    ) -> Result<Option<CreateOutcome>, SqliteError> {
        let now = self.of(connection, principal)?;
        if now.tasks >= count(quota) {
            return Ok(Some(CreateOutcome::QuotaExceeded));
        }
        if now.bytes + count(bytes) > to_column(max_bytes) {
            return Ok(Some(CreateOutcome::BytesExceeded));
        }
        now.tasks += 1;
        now.bytes += count(bytes);
        Ok(None)
    }

    /// Counts one task less.
    pub(super) fn count_out(
        &mut self,
        connection: &Connection,
        principal: &str,
    ) -> Result<(), SqliteError> {
        let now = self.of(connection, principal)?;
        now.tasks = (now.tasks - 1).max(0);
        Ok(())
    }

    /// Adds to the stored bytes of a principal.
    pub(super) fn count_bytes(
        &mut self,
        connection: &Connection,
        principal: &str,
        bytes: i64,
    ) -> Result<(), SqliteError> {
        let now = self.of(connection, principal)?;
        now.bytes = (now.bytes + bytes).max(0);
        Ok(())
    }

    /// Returns the stored bytes of a principal.
    pub(super) fn stored_bytes(
        &mut self,
        connection: &Connection,
        principal: &str,
    ) -> Result<i64, SqliteError> {
        Ok(self.of(connection, principal)?.bytes)
    }

    fn of(&mut self, connection: &Connection, principal: &str) -> Result<&mut Count, SqliteError> {
        if !self.0.contains_key(principal) {
            let stored = stored(connection, principal)?;
            self.0.insert(principal.to_owned(), Counted { stored, now: stored });
        }
        Ok(&mut self.0.get_mut(principal).expect("the entry was inserted above").now)
    }

    pub(super) fn write(&self, connection: &Connection) -> Result<(), SqliteError> {
        for (principal, Counted { stored, now }) in &self.0 {
            match now {
                now if now == stored => 0,
                now if *now == Count::default() => run(connection, FORGET, [principal])?,
                now => run(connection, COUNT, (principal, now.tasks, now.bytes))?,
            };
        }
        Ok(())
    }
}

fn stored(connection: &Connection, principal: &str) -> Result<Count, SqliteError> {
    let stored = one(connection, COUNTED, [principal], |row| {
        Ok(Count { tasks: row.get(0)?, bytes: row.get(1)? })
    })?;
    Ok(stored.unwrap_or_default())
}

/// Returns the stored bytes of a principal, from the file.
pub(super) fn bytes(connection: &Connection, principal: &str) -> Result<i64, SqliteError> {
    Ok(stored(connection, principal)?.bytes)
}
