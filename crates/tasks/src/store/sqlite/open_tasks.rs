//! How many tasks of each principal have not ended, and how many bytes it has stored. For a commit that
//! is read once and written once, however many tasks it makes and ends.

use std::collections::HashMap;

use rusqlite::Connection;

use super::{
    clock::to_column,
    column::count,
    error::Problem,
    statement::{one, run},
};
use crate::store::CreateOutcome;

pub(super) const COUNTED: &str = "SELECT count, bytes FROM principal_quota WHERE principal = ?1";
pub(super) const COUNT: &str =
    "INSERT INTO principal_quota (principal, count, bytes) VALUES (?1, ?2, ?3)
     ON CONFLICT DO UPDATE SET count = excluded.count, bytes = excluded.bytes";
pub(super) const FORGET: &str = "DELETE FROM principal_quota WHERE principal = ?1";

/// The counts of those whose tasks a commit makes, writes or ends.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenTasks(HashMap<String, Counted>);

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

impl OpenTasks {
    /// A principal has one task and so many bytes more, if it may; or why it may not.
    pub(super) fn count_in(
        &mut self,
        connection: &Connection,
        principal: &str,
        bytes: usize,
        (quota, max_bytes): (usize, u64),
    ) -> Result<Option<CreateOutcome>, Problem> {
        let now = self.of(connection, principal)?;
        if now.tasks >= count(quota) {
            return Ok(Some(CreateOutcome::QuotaExceeded));
        }
        if now.bytes + count(bytes) > to_column(max_bytes) {
            return Ok(Some(CreateOutcome::OverBytes));
        }
        now.tasks += 1;
        now.bytes += count(bytes);
        Ok(None)
    }

    /// A principal has one task less.
    pub(super) fn count_out(
        &mut self,
        connection: &Connection,
        principal: &str,
    ) -> Result<(), Problem> {
        let now = self.of(connection, principal)?;
        now.tasks = (now.tasks - 1).max(0);
        Ok(())
    }

    /// A principal has so many bytes more, or less.
    pub(super) fn count_bytes(
        &mut self,
        connection: &Connection,
        principal: &str,
        bytes: i64,
    ) -> Result<(), Problem> {
        let now = self.of(connection, principal)?;
        now.bytes = (now.bytes + bytes).max(0);
        Ok(())
    }

    /// How many bytes a principal has.
    pub(super) fn stored_bytes(
        &mut self,
        connection: &Connection,
        principal: &str,
    ) -> Result<i64, Problem> {
        Ok(self.of(connection, principal)?.bytes)
    }

    fn of(&mut self, connection: &Connection, principal: &str) -> Result<&mut Count, Problem> {
        if !self.0.contains_key(principal) {
            let stored = stored(connection, principal)?;
            self.0.insert(principal.to_owned(), Counted { stored, now: stored });
        }
        Ok(&mut self.0.get_mut(principal).expect("if it was not there, it is now").now)
    }

    pub(super) fn write(&self, connection: &Connection) -> Result<(), Problem> {
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

fn stored(connection: &Connection, principal: &str) -> Result<Count, Problem> {
    let stored = one(connection, COUNTED, [principal], |row| {
        Ok(Count { tasks: row.get(0)?, bytes: row.get(1)? })
    })?;
    Ok(stored.unwrap_or_default())
}

/// How many bytes a principal has stored, as it is in the file.
pub(super) fn bytes(connection: &Connection, principal: &str) -> Result<i64, Problem> {
    Ok(stored(connection, principal)?.bytes)
}
