//! The past of a store: tasks are written now, with a clock that runs ahead, and then moved back.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use outlive::store::{SqliteStore, TaskId, UnixMillis};
use rusqlite::Connection;

/// Statements that move a task back. `?1` is its ID, and `?2` the span in milliseconds. The time at
/// which a task is deleted stays. A vote becomes half as old as its request.
const MOVES: [&str; 6] = [
    "UPDATE task SET created_at = created_at - ?2, updated_at = updated_at - ?2,
         due_at = due_at - ?2, expires_at = expires_at - ?2 WHERE id = ?1",
    "UPDATE journal_entry SET recorded_at = recorded_at - ?2
         WHERE task = (SELECT number FROM task WHERE id = ?1)",
    "UPDATE input_request SET opened_at = opened_at - ?2, settled_at = settled_at - ?2,
         due_at = due_at - ?2 WHERE task = (SELECT number FROM task WHERE id = ?1)",
    "UPDATE addressee SET opened_at = opened_at - ?2 WHERE task_id = ?1",
    "UPDATE vote SET voted_at = voted_at - ?2 / 2
         WHERE task = (SELECT number FROM task WHERE id = ?1)",
    "UPDATE audit_event SET recorded_at = recorded_at - ?2 WHERE task = ?1",
];

/// A store whose clock starts now and runs ahead.
pub(super) struct Past {
    path: PathBuf,
    pub(super) store: SqliteStore,
    passed: Duration,
}

impl Past {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let store = SqliteStore::open(path)?;
        Ok(Self { path: path.to_owned(), store, passed: Duration::ZERO })
    }

    /// Advances the clock to a time after the opening. An earlier time has no effect.
    pub(super) fn reach(&mut self, span: Duration) {
        self.store.advance_clock(span.saturating_sub(self.passed));
        self.passed = self.passed.max(span);
    }

    /// Moves tasks back by the time that has passed, so that the clock of the store ends now.
    pub(super) fn end(self, tasks: &[TaskId]) -> Result<()> {
        let Self { path, store, passed } = self;
        drop(store);
        tasks.iter().try_for_each(|task| move_back(&path, task, passed))
    }
}

/// Moves a task back in time, with its journal, input requests, votes and audit events. Tasks must be
/// created in the order of the times that they are moved to: a store finds a time by bisection.
pub(super) fn move_back(path: &Path, task: &TaskId, span: Duration) -> Result<()> {
    let file = Connection::open(path)
        .with_context(|| format!("could not open the store {}", path.display()))?;
    let millis = i64::try_from(span.as_millis())?;
    for statement in MOVES {
        file.execute(statement, (task.as_str(), millis))
            .with_context(|| format!("the tables of the store have changed: `{statement}`"))?;
    }
    Ok(())
}

/// Returns the time of the system clock.
pub(super) fn now() -> Result<UnixMillis> {
    Ok(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;
    use std::{env, fs, process, slice};

    use outlive::store::{
        Changes, DecisionStore, JournalEntry, NewInputRequest, OperatorStore, RecordedEntry,
        SqliteStore, TaskId, TaskIndex, Transition, UnixMillis, WorkQueue, WorkerId,
    };
    use serde_json::json;
    use serde_json::value::to_raw_value;
    use tokio::runtime::Runtime;

    use super::super::tasks::{create, form, new_task};
    use super::Past;

    const MINUTE: Duration = Duration::from_secs(60);
    const LEASE: Duration = Duration::from_secs(3_600);

    /// Writes a task that is ten minutes old. Returns the time at which it was written.
    async fn write(path: &Path) -> (TaskId, UnixMillis) {
        let mut past = Past::open(path).unwrap();
        let task = new_task("4be07c19a2d85f3361fc08e97ad4b25e", "ann", "deploy", &json!({}))
            .unwrap()
            .worker(Some((WorkerId::new("w"), LEASE)));
        let (lease, written_at) = create(&past.store, task).await.unwrap();
        let lease = lease.unwrap();
        past.reach(MINUTE * 9);
        past.reach(MINUTE * 8);
        let request = form("When?", &json!({})).unwrap();
        let entry = JournalEntry::Value(to_raw_value(&1).unwrap());
        let changes = Changes::default()
            .entries(vec![RecordedEntry::new("copy", entry)])
            .input_requests(vec![NewInputRequest::new("window", "window", Some(request))]);
        past.store.commit(&lease, &changes, &Transition::Continue).await.unwrap();
        past.reach(MINUTE * 10);
        past.end(slice::from_ref(&lease.task)).unwrap();
        (lease.task, written_at)
    }

    #[test]
    fn task_of_the_past_has_old_times_and_the_rest_of_its_lease() {
        let folder = env::temp_dir().join(format!("outlive-past-{}", process::id()));
        let path = folder.join("tasks.db");
        Runtime::new().unwrap().block_on(async {
            let (id, written_at) = write(&path).await;
            let store = SqliteStore::open(&path).unwrap();
            let detail = store.inspect(&id).await.unwrap().unwrap();
            let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap();
            assert_eq!(detail.task.view.created_at, written_at - millis(MINUTE * 10));
            assert_eq!(detail.task.due_at, Some(written_at + millis(LEASE - MINUTE * 10)));
            // The commit was in the ninth of ten minutes, and the test takes less than one.
            let is_ninth = |at: u64| at.abs_diff(written_at - millis(MINUTE)) < millis(MINUTE);
            assert!(is_ninth(store.timeline(&id, 9).await.unwrap()[0].recorded_at));
            let asked = store.input_request(&id, "window").await.unwrap().unwrap();
            assert!(is_ninth(asked.item.opened_at));
        });
        fs::remove_dir_all(folder).unwrap();
    }
}
