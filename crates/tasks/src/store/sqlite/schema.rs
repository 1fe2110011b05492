//! The tables, in numbered steps. A file says how many of them it has seen.

use rusqlite::{Connection, TransactionBehavior};

use super::{error::Problem, statement::one};
use crate::store::StoreError;

/// What says that a file is ours: "outl".
const APPLICATION: i64 = 0x6f75_746c;

/// What each version of the tables adds to the one before. What stands here is in files all over
/// the world: it is never changed, only followed.
const STEPS: &[&str] = &[FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH];

/// Brings the tables up to date, in one transaction under the lock for writing: several processes
/// may open a file at once, and one of them does it.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), Problem> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version = version(&transaction)?;
    for (index, step) in STEPS.iter().enumerate().skip(version) {
        transaction.execute_batch(step)?;
        transaction.execute_batch(&format!("PRAGMA user_version = {}", index + 1))?;
    }
    // A file that cannot be written is opened for reading, and that is said at the first write
    // only. This is one, of nothing.
    transaction.execute_batch("DELETE FROM change WHERE number < 0")?;
    transaction.commit()?;
    Ok(())
}

/// How many steps there are.
pub(super) const KNOWN: usize = STEPS.len();

/// How many steps a file has seen, if it is one of ours or empty. It is not touched.
pub(super) fn look(connection: &Connection) -> Result<usize, Problem> {
    seen(connection)
}

/// How many steps a file has seen, if it is one of ours or empty, and none that we do not know.
fn version(connection: &Connection) -> Result<usize, Problem> {
    match seen(connection)? {
        version if version <= STEPS.len() => Ok(version),
        version => Err(StoreError::Incompatible(format!(
            "a newer version of this program has written it (its tables have version {version}, \
             known here is {}); upgrade this program",
            STEPS.len()
        ))
        .into()),
    }
}

fn seen(connection: &Connection) -> Result<usize, Problem> {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let tables = one(connection, "SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION && (version, tables) != (0, Some(0_i64)) {
        let what = "it is a database of another program; name another file";
        return Err(StoreError::Incompatible(what.to_owned()).into());
    }
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

// Rows are numbered: what belongs to a task, and every index, repeats five bytes instead of the
// task's long name, and new rows stand side by side although names are random. All indexes but two
// are partial: they hold what somebody still waits for, however much has ended.
//
// The request stands beside the task: the task's row is written again and again, the request never.
const FIRST: &str = "
PRAGMA application_id = 0x6f75746c;

CREATE TABLE task (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,
    kind TEXT NOT NULL,
    phase INTEGER NOT NULL, -- 0 queued, 1 running, 2 parked, 3 ended
    epoch INTEGER NOT NULL,
    owner TEXT,             -- while it runs
    due INTEGER,            -- when somebody must look at it; NULL when ended, or parked for ever
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    ttl INTEGER,
    expires INTEGER,        -- until it has ended
    purge INTEGER,          -- from when it has ended
    begun INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    cancel_requested INTEGER,
    once_key TEXT,
    once_digest TEXT,
    message TEXT,
    reasked TEXT,           -- how often its questions were asked again before it was a task
    outcome TEXT
) STRICT;
CREATE INDEX task_due ON task (due) WHERE due IS NOT NULL;
CREATE INDEX task_owner ON task (owner) WHERE owner IS NOT NULL;
CREATE INDEX task_expires ON task (expires) WHERE expires IS NOT NULL;
CREATE INDEX task_purge ON task (purge) WHERE purge IS NOT NULL;
CREATE UNIQUE INDEX task_once ON task (principal, once_key) WHERE once_key IS NOT NULL;
CREATE INDEX task_list ON task (principal, created);

CREATE TABLE request (
    task INTEGER PRIMARY KEY REFERENCES task ON DELETE CASCADE,
    body TEXT NOT NULL
) STRICT;

-- How many tasks of a principal have not ended.
CREATE TABLE open_tasks (
    principal TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE entry (
    task INTEGER NOT NULL REFERENCES task ON DELETE CASCADE,
    key TEXT NOT NULL,
    answer INTEGER NOT NULL, -- 1 if a client has given it
    body TEXT NOT NULL,
    PRIMARY KEY (task, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX entry_answer ON entry (task, key) WHERE answer = 1;

CREATE TABLE segment (
    task INTEGER NOT NULL REFERENCES task ON DELETE CASCADE,
    number INTEGER NOT NULL, -- from 1, without gaps
    scope TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task, number),
    UNIQUE (task, scope, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE question (
    task INTEGER NOT NULL REFERENCES task ON DELETE CASCADE,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    place INTEGER NOT NULL,
    state INTEGER NOT NULL, -- 0 open, 1 answered, 2 withdrawn
    due INTEGER,
    body TEXT NOT NULL,
    PRIMARY KEY (task, name)
) STRICT, WITHOUT ROWID;

-- What the last commits have changed, for other processes.
CREATE TABLE change (
    number INTEGER PRIMARY KEY,
    origin INTEGER NOT NULL,
    tasks TEXT NOT NULL      -- their numbers, as JSON
) STRICT;
";

// What was added to a task stands behind its outcome, which may be long. That is read by whoever
// looks at the task anyway, and until it has ended there is none.
const SECOND: &str = "
ALTER TABLE task ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN base_ttl INTEGER;                   -- ttl is what it is by its questions
ALTER TABLE task ADD COLUMN max_ttl INTEGER NOT NULL DEFAULT 0; -- while a question is open
ALTER TABLE task ADD COLUMN open INTEGER NOT NULL DEFAULT 0;    -- how many questions are
ALTER TABLE task ADD COLUMN progress TEXT;                      -- how far it said it was
ALTER TABLE question ADD COLUMN outside INTEGER NOT NULL DEFAULT 0; -- 1 if no client answers it
UPDATE task SET base_ttl = ttl;
UPDATE task SET open = (SELECT count(*) FROM question WHERE task = task.number AND state = 0)
    WHERE phase <> 3;

-- How many tasks there are in each phase.
CREATE TABLE tally (
    number INTEGER PRIMARY KEY,
    queued INTEGER NOT NULL,
    running INTEGER NOT NULL,
    parked INTEGER NOT NULL,
    ended INTEGER NOT NULL
) STRICT;
INSERT INTO tally SELECT 1, count(*) FILTER (WHERE phase = 0), count(*) FILTER (WHERE phase = 1),
    count(*) FILTER (WHERE phase = 2), count(*) FILTER (WHERE phase = 3) FROM task;

CREATE TABLE note (
    key TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    expires INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX note_expires ON note (expires);

-- A number is not used again when the last event is swept.
CREATE TABLE event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    task TEXT NOT NULL,
    principal TEXT NOT NULL,
    what TEXT NOT NULL,
    cause TEXT
) STRICT;
CREATE INDEX event_task ON event (task);
CREATE INDEX event_expires ON event (expires);
";

// Callers of one dialect list their tasks; those of the other would pay for a place in the index, a
// page of it for nearly every task, and never look.
//
// Something may be done after a task that was cancelled or has expired. While that is owed, what has
// ended has a time when it is due, and an owner while somebody does it.
const THIRD: &str = "
ALTER TABLE task ADD COLUMN listed INTEGER NOT NULL DEFAULT 1;
DROP INDEX task_list;
CREATE INDEX task_list ON task (principal, created) WHERE listed = 1;
ALTER TABLE task ADD COLUMN clean_up INTEGER NOT NULL DEFAULT 0;
DROP INDEX event_expires;
";

// A task that was stopped for an operator is in a phase of its own, 4, and says how it ends if nobody
// has it tried again.
const FOURTH: &str = "
ALTER TABLE task ADD COLUMN kept TEXT;
ALTER TABLE tally ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
";

// A claim skips principals that are at their limit without reading their rows.
const FIFTH: &str = "
DROP INDEX task_due;
CREATE INDEX task_due ON task (due, principal) WHERE due IS NOT NULL;
";

// The outcome in one word, for lists and statistics: 0 completed, 1 failed, 2 cancelled, 3 expired.
//
// And how many bytes each principal has stored, and all of them: what a task and a key-value entry
// count is in `budget.rs`. Nothing is counted for each task: what is forgotten is measured then.
const SIXTH: &str = r#"
ALTER TABLE task ADD COLUMN outcome_kind INTEGER;
UPDATE task SET outcome_kind = CASE WHEN outcome = '"Cancelled"' THEN 2
    WHEN outcome = '"Expired"' THEN 3 WHEN outcome LIKE '{"Error":%' THEN 1
    WHEN json_extract(outcome, '$.Result.isError') THEN 1 ELSE 0 END
    WHERE phase = 3 AND outcome IS NOT NULL;

ALTER TABLE open_tasks ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tally ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE note ADD COLUMN principal TEXT; -- whom it is counted for
INSERT INTO open_tasks (principal, count, bytes)
    SELECT principal, 0, sum(2048 + octet_length(request.body) + coalesce(octet_length(outcome), 0)
        + coalesce((SELECT sum(octet_length(key) + octet_length(body)) FROM entry
            WHERE entry.task = task.number), 0)
        + coalesce((SELECT sum(octet_length(scope) + octet_length(body)) FROM segment
            WHERE segment.task = task.number), 0))
    FROM task JOIN request ON request.task = task.number WHERE true GROUP BY principal
    ON CONFLICT DO UPDATE SET bytes = excluded.bytes;
UPDATE tally SET bytes = coalesce((SELECT sum(bytes) FROM open_tasks), 0);
"#;

// What tasks ask counts as well.
const SEVENTH: &str = "
UPDATE open_tasks SET bytes = open_tasks.bytes + asked.bytes FROM (
    SELECT principal, sum(octet_length(name) + octet_length(key) + octet_length(body)) AS bytes
        FROM question JOIN task ON task.number = question.task GROUP BY principal) AS asked
    WHERE asked.principal = open_tasks.principal;
UPDATE tally SET bytes = coalesce((SELECT sum(bytes) FROM open_tasks), 0);
";

#[cfg(test)]
mod tests {
    use std::{env, fs, process, time::Duration};

    use rusqlite::Connection;

    use super::FIRST;
    use crate::store::{
        InputSource, Phase, SqliteStore, StoreMonitor, StoreStats, TaskId, TaskStore, WorkQueue,
        WorkerId,
    };

    const FILLED: &str = r#"
INSERT INTO task (id, principal, kind, phase, epoch, due, created, updated, ttl, expires, begun,
    crashes) VALUES ('queued', 'ada', 'k', 0, 0, 1, 1, 1, 600, 601, 0, 0),
    ('parked', 'ada', 'k', 2, 1, NULL, 1, 1, NULL, NULL, 1, 0),
    ('ended', 'ada', 'k', 3, 1, NULL, 1, 1, 600, NULL, 1, 0);
INSERT INTO open_tasks VALUES ('ada', 2);
INSERT INTO request VALUES (1, '{}'), (2, '{}'), (3, '{}');
INSERT INTO question (task, name, key, place, state, body)
    VALUES (2, 'a', 'a', 1, 0, '{"method":"roots/list"}'), (2, 'b', 'b', 2, 1, '{}');
"#;

    #[tokio::test]
    async fn a_file_of_the_first_version_is_brought_up_to_date() {
        let folder = env::temp_dir().join(format!("outlive-schema-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("tasks.db");
        let connection = Connection::open(&path).unwrap();
        for step in [FIRST, FILLED, "PRAGMA user_version = 1"] {
            connection.execute_batch(step).unwrap();
        }
        drop(connection);
        let store = SqliteStore::open(&path).unwrap();
        let census = store.stats().await.unwrap();
        let counts = StoreStats { queued: 1, parked: 1, ended: 1, ..StoreStats::default() };
        assert_eq!(StoreStats { oldest_due: None, bytes: 0, ..census }, counts);
        let asked = 2 + 23 + 2 + 2;
        assert_eq!(census.bytes, 3 * 2_050 + asked, "what was there is counted");
        let parked = TaskId::new("parked");
        let view = store.get("ada", &parked).await.unwrap().unwrap();
        assert_eq!((view.phase, view.input_requests.len(), view.ttl), (Phase::Parked, 1, None));
        let answer = vec![("a".to_owned(), serde_json::value::to_raw_value(&1).unwrap())];
        let answered = store.respond("ada", &parked, InputSource::Client, answer, u64::MAX).await;
        assert_eq!(answered.unwrap(), Some(1));
        let claimed = store
            .claim(&WorkerId::new("w"), Duration::from_secs(30), &10_usize.into())
            .await
            .unwrap();
        assert_eq!(claimed.len(), 2);
        drop(store);
        fs::remove_dir_all(folder).unwrap();
    }
}
