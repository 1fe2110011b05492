-- Tables of the store. Times are in milliseconds since 1970.
--
-- Rows are numbered, for two reasons. Child rows and indexes contain a short number instead of the
-- task's long ID. New rows are adjacent although IDs are random. Nearly all indexes are partial and
-- contain only the rows that a worker, a caller or a list needs. Numbers grow with the time of
-- creation, so the lists of the console are ordered by number.

PRAGMA application_id = 0x6f75746c; -- "outl"
PRAGMA user_version = 1;

-- Fingerprint of the schema that the file was created with.
CREATE TABLE schema_version (
    fingerprint TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE task (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    origin TEXT NOT NULL,
    listed INTEGER NOT NULL,      -- 1 if the principal can list the task
    phase INTEGER NOT NULL,       -- 0 queued, 1 running, 2 parked, 3 ended, 4 quarantined
    epoch INTEGER NOT NULL,
    worker_id TEXT,               -- worker that runs the task or its cleanup
    due_at INTEGER,               -- when a worker must claim the task; NULL if it ended and needs no
                                  -- cleanup, or is parked without a timer
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ttl INTEGER,                  -- as requested by the client
    max_ttl INTEGER NOT NULL,     -- upper limit of effective_ttl, with open input requests
    effective_ttl INTEGER,        -- current TTL
    expires_at INTEGER,           -- NULL after the end of the task
    purge_at INTEGER,             -- NULL before the end of the task
    started INTEGER NOT NULL,
    crash_count INTEGER NOT NULL,
    has_cleanup INTEGER NOT NULL, -- 1 if the task needs a cleanup after cancellation or expiry
    open INTEGER NOT NULL DEFAULT 0, -- number of open input requests
    cancel_requested_at INTEGER,
    acknowledged_at INTEGER,      -- NULL until the client knows the task
    idempotency_key TEXT,
    idempotency_fingerprint TEXT,
    status_message TEXT,
    progress TEXT,
    reissue_counts TEXT,          -- reissues of input requests before promotion
    quarantine_outcome TEXT,      -- outcome if no operator retries the task in time
    person TEXT,                  -- person of the caller; NULL for an anonymous caller
    indexed INTEGER NOT NULL,     -- 1 if lists by tool, person and tag contain the task
    rerun_of TEXT,                -- ID of the task that this one runs again
    tags TEXT,                    -- as JSON; NULL without tags
    notify TEXT,                  -- subscriptions, as JSON; NULL without subscriptions
    end_audit TEXT,               -- task and retention of the audit event `ended`, as JSON; NULL
                                  -- without the event
    outcome_kind INTEGER,         -- 0 completed, 1 failed, 2 cancelled, 3 expired
    outcome TEXT                  -- last column, because it may be long
) STRICT;
-- A claim skips principals at their limit without reading their rows.
CREATE INDEX task_due_at ON task (due_at, principal) WHERE due_at IS NOT NULL;
CREATE INDEX task_worker_id ON task (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX task_expires_at ON task (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX task_purge_at ON task (purge_at) WHERE purge_at IS NOT NULL;
CREATE UNIQUE INDEX task_idempotency_key ON task (principal, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX task_list ON task (principal, origin, created_at) WHERE listed = 1;
-- Lists of the console, each with one filter. Completed tasks are in none of the first three.
CREATE INDEX task_open ON task (phase) WHERE phase <> 3;
CREATE INDEX task_input ON task (number) WHERE open > 0;
CREATE INDEX task_outcome ON task (outcome_kind) WHERE outcome_kind > 0;
CREATE INDEX task_tool ON task (tool) WHERE indexed = 1;
CREATE INDEX task_person ON task (person) WHERE indexed = 1 AND person IS NOT NULL;

-- Tasks by tag. The column `task.tags` has the tags of one task.
CREATE TABLE tag (
    tag TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (tag, number)
) STRICT, WITHOUT ROWID;

-- A separate table, because the task's row is often rewritten and the request never changes.
CREATE TABLE task_request (
    task INTEGER PRIMARY KEY REFERENCES task ON DELETE CASCADE,
    body TEXT NOT NULL
) STRICT;

-- Number of open tasks and stored bytes of a principal. `budget.rs` defines the counted bytes. The
-- bytes of a task are measured when the task is deleted, so no column contains them.
CREATE TABLE principal_quota (
    principal TEXT PRIMARY KEY,
    count INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE journal_entry (
    task INTEGER NOT NULL REFERENCES task ON DELETE CASCADE,
    key TEXT NOT NULL,
    kind INTEGER NOT NULL,        -- 0 step, 1 input response, 2 failed step, 3 failed input request, 4 timer
    recorded_at INTEGER,          -- NULL if the task is not indexed, and before its creation
    duration INTEGER,             -- of the step, in microseconds, as its worker measured it
    body TEXT NOT NULL,           -- last column, because a timeline does not read it
    PRIMARY KEY (task, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX journal_entry_input ON journal_entry (task, key) WHERE kind = 1;

CREATE TABLE segment (
    task INTEGER NOT NULL REFERENCES task ON DELETE CASCADE,
    number INTEGER NOT NULL, -- from 1, without gaps
    scope TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task, number),
    UNIQUE (task, scope, ordinal)
) STRICT, WITHOUT ROWID;

-- Parts of large results. The bodies are bytes, because a part can end inside a character.
CREATE TABLE result_part (
    task INTEGER NOT NULL REFERENCES task ON DELETE CASCADE,
    block INTEGER NOT NULL,
    number INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (task, block, number)
) STRICT;

CREATE TABLE input_request (
    task INTEGER NOT NULL REFERENCES task ON DELETE CASCADE,
    wire_key TEXT NOT NULL,
    journal_key TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    state INTEGER NOT NULL,       -- 0 open, 1 answered, 2 withdrawn
    due_at INTEGER,
    opened_at INTEGER NOT NULL,
    settled_at INTEGER,           -- when the request was answered or withdrawn
    is_external INTEGER NOT NULL, -- 1 for an external event
    audience INTEGER NOT NULL,    -- 0 client, 1 caller, 2 people
    people TEXT,                  -- names and scope of an audience of people, as JSON
    binding TEXT,                 -- digest, definition, count and denial key of an approval request,
                                  -- as JSON
    in_inbox INTEGER NOT NULL,    -- 1 if inboxes contain the request while it is open
    bytes INTEGER NOT NULL,       -- counted bytes of the request, see `budget.rs`
    body TEXT NOT NULL,
    PRIMARY KEY (task, wire_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX input_request_denial ON input_request (binding ->> 'denial', settled_at)
    WHERE binding IS NOT NULL AND state = 1;

-- Inboxes: the people who may respond to an open input request.
CREATE TABLE addressee (
    addressee TEXT NOT NULL,      -- `n:` and the name of a person, `s:` and a scope, or `*` for operators
    opened_at INTEGER NOT NULL,
    task_id TEXT NOT NULL,
    wire_key TEXT NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (addressee, opened_at, task_id, wire_key),
    FOREIGN KEY (task, wire_key) REFERENCES input_request ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX addressee_request ON addressee (task, wire_key);

CREATE TABLE vote (
    task INTEGER NOT NULL,
    wire_key TEXT NOT NULL,
    person TEXT NOT NULL,
    accepts INTEGER NOT NULL,
    voted_at INTEGER NOT NULL,
    channel TEXT NOT NULL,
    reason TEXT,
    saw_definition INTEGER NOT NULL, -- whether the person saw the tool as the request binds it
    PRIMARY KEY (task, wire_key, person),
    FOREIGN KEY (task, wire_key) REFERENCES input_request ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX vote_person ON vote (person, voted_at);

-- Calls of clients without tasks that wait for a task: one row per bridged task. A separate table,
-- because most tasks have none.
CREATE TABLE bridged_call (
    task INTEGER PRIMARY KEY REFERENCES task ON DELETE CASCADE,
    principal TEXT NOT NULL,
    scope TEXT,                      -- NULL if no other call joins or lists the task
    fingerprint TEXT NOT NULL,       -- of tool and arguments
    attended_by TEXT,                -- worker in whose process a call waits
    attendants INTEGER NOT NULL,     -- number of waiting calls of that worker
    joinable_at INTEGER NOT NULL,    -- time before which no call joins
    abandon_after INTEGER NOT NULL,
    abandon_at INTEGER,              -- when a sweep cancels the task
    pending_results INTEGER NOT NULL,
    delivered_at INTEGER             -- when the result was flushed
) STRICT;
CREATE INDEX bridged_call_equal ON bridged_call (principal, scope, fingerprint)
    WHERE delivered_at IS NULL AND scope IS NOT NULL;
CREATE INDEX bridged_call_open ON bridged_call (principal, scope)
    WHERE delivered_at IS NULL AND scope IS NOT NULL;
CREATE INDEX bridged_call_attended_by ON bridged_call (attended_by) WHERE attended_by IS NOT NULL;
CREATE INDEX bridged_call_abandon_at ON bridged_call (abandon_at) WHERE abandon_at IS NOT NULL;
CREATE INDEX bridged_call_delivered_at ON bridged_call (principal, delivered_at)
    WHERE delivered_at IS NOT NULL;

-- Changed tasks of the last commits, for other processes.
CREATE TABLE change_log (
    number INTEGER PRIMARY KEY,
    origin INTEGER NOT NULL,
    tasks TEXT NOT NULL      -- row numbers, as JSON
) STRICT;

-- Number of tasks in each phase, and stored bytes of all principals.
CREATE TABLE phase_count (
    number INTEGER PRIMARY KEY,
    queued INTEGER NOT NULL DEFAULT 0,
    running INTEGER NOT NULL DEFAULT 0,
    parked INTEGER NOT NULL DEFAULT 0,
    ended INTEGER NOT NULL DEFAULT 0,
    quarantined INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO phase_count (number) VALUES (1);

CREATE TABLE key_value (
    key TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    principal TEXT           -- principal that is charged for the entry
) STRICT, WITHOUT ROWID;
CREATE INDEX key_value_expires_at ON key_value (expires_at);

-- AUTOINCREMENT, so that a number is not reused after the last event is swept.
CREATE TABLE audit_event (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    recorded_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    task TEXT NOT NULL,
    principal TEXT NOT NULL,
    action TEXT NOT NULL,
    reason TEXT,
    worker_id TEXT
) STRICT;
CREATE INDEX audit_event_task ON audit_event (task);

-- Notifications that no receiver has accepted. A row has the ID of its task and no reference to it,
-- because a delivery outlives its task.
CREATE TABLE delivery (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task TEXT NOT NULL,
    event TEXT NOT NULL,
    target TEXT NOT NULL,
    wire_key TEXT,                -- of the input request; NULL for events of the task
    recorded_at INTEGER NOT NULL,
    due_at INTEGER,               -- of the next attempt, or the end of the sender's lease; NULL if
                                  -- the delivery is dead
    attempts INTEGER NOT NULL,
    error TEXT                    -- of the last attempt
) STRICT;
CREATE INDEX delivery_due_at ON delivery (target, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_failing ON delivery (recorded_at) WHERE error IS NOT NULL;

-- Counts of ended tasks. `metric.rs` defines the counts.
CREATE TABLE metric (
    is_hour INTEGER NOT NULL,     -- 0 for a minute, 1 for an hour
    starts_at INTEGER NOT NULL,
    tool TEXT NOT NULL,
    worker_id TEXT NOT NULL,      -- empty in an hour, which is the sum of all workers
    counts BLOB NOT NULL,
    PRIMARY KEY (is_hour, starts_at, tool, worker_id)
) STRICT, WITHOUT ROWID;
