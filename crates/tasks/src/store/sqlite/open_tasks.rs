//! How many tasks of each principal have not ended. For a commit that is read once and written once,
//! however many tasks it makes and ends.

use std::collections::HashMap;

use rusqlite::Connection;

use super::{
    column::count,
    problem::Problem,
    statement::{one, run},
};

pub(super) const COUNTED: &str = "SELECT count FROM open_tasks WHERE principal = ?1";
pub(super) const COUNT: &str = "INSERT INTO open_tasks (principal, count) VALUES (?1, ?2)
     ON CONFLICT DO UPDATE SET count = excluded.count";
pub(super) const FORGET: &str = "DELETE FROM open_tasks WHERE principal = ?1";

/// The counts of those whose tasks a commit makes or ends.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenTasks(HashMap<String, Count>);

#[derive(Clone, Copy, Debug)]
struct Count {
    stored: i64,
    now: i64,
}

impl OpenTasks {
    /// A principal has one task more, if it may have that many; whether it may.
    pub(super) fn count_in(
        &mut self,
        connection: &Connection,
        principal: &str,
        quota: usize,
    ) -> Result<bool, Problem> {
        self.change(connection, principal, |now| {
            let may = *now < count(quota);
            *now += i64::from(may);
            may
        })
    }

    /// A principal has one task less.
    pub(super) fn count_out(
        &mut self,
        connection: &Connection,
        principal: &str,
    ) -> Result<(), Problem> {
        self.change(connection, principal, |now| *now = (*now - 1).max(0))
    }

    fn change<T>(
        &mut self,
        connection: &Connection,
        principal: &str,
        change: impl FnOnce(&mut i64) -> T,
    ) -> Result<T, Problem> {
        if let Some(count) = self.0.get_mut(principal) {
            return Ok(change(&mut count.now));
        }
        let stored = one(connection, COUNTED, [principal], |row| row.get(0))?.unwrap_or(0);
        let mut now = stored;
        let changed = change(&mut now);
        self.0.insert(principal.to_owned(), Count { stored, now });
        Ok(changed)
    }

    pub(super) fn write(&self, connection: &Connection) -> Result<(), Problem> {
        for (principal, Count { stored, now }) in &self.0 {
            match now {
                now if now == stored => 0,
                0 => run(connection, FORGET, [principal])?,
                now => run(connection, COUNT, (principal, now))?,
            };
        }
        Ok(())
    }
}
