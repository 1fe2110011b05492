//! What a worker writes.

use super::{
    clock::to_column,
    column::{PARKED, QUEUED, RUNNING, count},
    ending::{self, Ending},
    journal,
    problem::Problem,
    questions,
    statement::{one, run},
    writer::Batch,
};
use crate::store::{By, Changes, Lease, Millis, StoreError, Then};

// Who has lost the task finds no row here, and writes nothing after it.
pub(super) const TOUCH: &str = "UPDATE task SET updated = max(?4, updated + 1),
     message = coalesce(?5, message), progress = coalesce(?6, progress)
     WHERE id = ?1 AND epoch = ?2 AND owner = ?3 AND phase = 1 RETURNING number, crashes, open";
pub(super) const FORGET_CRASHES: &str = "UPDATE task SET crashes = 0 WHERE number = ?1";
pub(super) const IS_TO_STOP: &str =
    "SELECT cancel_requested IS NOT NULL FROM task WHERE number = ?1";
pub(super) const PARK: &str =
    "UPDATE task SET phase = ?2, due = ?3, owner = NULL WHERE number = ?1";

pub(super) fn write(
    batch: &mut Batch<'_>,
    lease: &Lease,
    changes: &Changes,
    then: &Then,
) -> Result<(), Problem> {
    let Touched { number, crashes, open } = touch(batch, lease, changes)?;
    let recorded = apply(batch, number, changes)?;
    if recorded && crashes > 0 {
        run(batch.connection, FORGET_CRASHES, [number])?;
    }
    match then {
        Then::GoOn => {}
        Then::Park { due, seen } => park(batch, number, *due, *seen)?,
        Then::End { outcome, retention } => {
            let asks = open > 0 || !changes.asked.is_empty();
            let ending = Ending { number, phase: RUNNING, asks, by: By::Worker };
            ending::end(batch, ending, outcome, *retention)?;
        }
    }
    batch.changed(number, &lease.task, By::Worker);
    Ok(())
}

/// What is known of a task that is written.
struct Touched {
    number: i64,
    crashes: u32,
    /// How many questions are open.
    open: i64,
}

/// Notes the change, if the lease is not lost.
fn touch(batch: &Batch<'_>, lease: &Lease, changes: &Changes) -> Result<Touched, Problem> {
    let (epoch, worker) = (to_column(lease.epoch), lease.worker.as_str());
    let message = changes.message.as_deref();
    let progress = changes.progress.as_ref().map(|progress| progress.get());
    let touched = one(
        batch.connection,
        TOUCH,
        (lease.task.as_str(), epoch, worker, batch.now(), message, progress),
        |row| Ok(Touched { number: row.get(0)?, crashes: row.get(1)?, open: row.get(2)? }),
    )?;
    touched.ok_or(Problem::Store(StoreError::Lost))
}

/// Writes the changes, and says whether there is a new entry among them.
fn apply(batch: &Batch<'_>, number: i64, changes: &Changes) -> Result<bool, Problem> {
    let connection = batch.connection;
    let mut recorded = false;
    for key in &changes.forgotten {
        journal::forget(connection, number, key)?;
    }
    for (key, entry) in &changes.entries {
        recorded |= journal::record(connection, number, key, entry)?;
    }
    journal::emit(connection, number, &changes.segments)?;
    let (mut opened, mut closed) = (0, 0);
    for asked in &changes.asked {
        opened += usize::from(questions::ask(connection, number, asked)?);
    }
    for name in &changes.withdrawn {
        closed += usize::from(questions::withdraw(connection, number, name)?);
    }
    questions::settle(batch, number, opened, closed)?;
    Ok(recorded)
}

fn park(
    batch: &mut Batch<'_>,
    number: i64,
    due: Option<Millis>,
    seen: usize,
) -> Result<(), Problem> {
    // Nobody would look at what came while the worker was on its way here.
    let is_to_stop = one(batch.connection, IS_TO_STOP, [number], |row| row.get(0))?;
    let unseen = is_to_stop.unwrap_or_default()
        || journal::count_answers(batch.connection, number)? > count(seen);
    let (phase, due) = match unseen {
        true => (QUEUED, Some(batch.now())),
        false => (PARKED, due.map(to_column)),
    };
    run(batch.connection, PARK, (number, phase, due))?;
    batch.moved(RUNNING, phase);
    Ok(())
}
