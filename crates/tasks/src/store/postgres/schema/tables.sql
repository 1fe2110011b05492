-- Tables of the store. Times are in milliseconds since 1970, by the clock of the database.
--
-- Child rows refer to a task by its number. There are no foreign keys, because a check would cost
-- as much as the row itself. The functions delete child rows with their task. Text is compared byte
-- by byte. Nearly all indexes are partial and contain only the rows that a worker, a caller or a
-- console still needs.

-- Each connection reserves a hundred numbers at a time.
CREATE SEQUENCE task_number CACHE 100;

CREATE TABLE task (
    id text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL DEFAULT nextval('task_number'), -- key of all child rows
    principal text COLLATE "C" NOT NULL,
    person text COLLATE "C",    -- person of the caller; NULL for an anonymous caller
    tool text COLLATE "C" NOT NULL,
    origin text NOT NULL,
    listed boolean NOT NULL,    -- whether the principal can list the task
    indexed boolean NOT NULL DEFAULT false, -- whether lists of a console contain the task
    phase smallint NOT NULL,    -- 0 queued, 1 running, 2 parked, 3 ended, 4 quarantined
    epoch bigint NOT NULL,
    worker_id text COLLATE "C", -- worker that runs the task or its cleanup
    worker_lock bigint,         -- liveness lock of the worker's process
    due_at bigint,              -- when a worker must claim the task; NULL if it ended and needs no
                                -- cleanup, or is parked without a timer
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    ttl bigint,                 -- as requested by the client
    max_ttl bigint NOT NULL,    -- upper limit of effective_ttl, with open input requests
    effective_ttl bigint,       -- current TTL
    expires_at bigint GENERATED ALWAYS AS (CASE WHEN phase <> 3 THEN created_at + effective_ttl END) STORED,
    purge_at bigint GENERATED ALWAYS AS (CASE WHEN phase = 3 THEN created_at + effective_ttl END) STORED,
    started boolean NOT NULL,
    crash_count integer NOT NULL,
    has_cleanup boolean NOT NULL, -- whether the task needs a cleanup after cancellation or expiry
    cancel_requested_at bigint,
    acknowledged_at bigint,     -- NULL until the client knows the task
    idempotency_key text COLLATE "C",
    idempotency_fingerprint text COLLATE "C",
    status_message text,
    progress text,
    reissue_counts text,        -- reissues of input requests before promotion
    request text NOT NULL,      -- long values are stored out of line (TOAST), and not rewritten
    outcome text,
    quarantine_outcome text,    -- outcome if no operator retries the task in time
    outcome_kind smallint,      -- 0 completed, 1 failed, 2 cancelled, 3 expired
    rerun_of text COLLATE "C",  -- task that this one runs again
    notify text,                -- subscriptions as JSON; NULL without subscriptions
    end_audit text              -- task and retention of the audit event `ended` as JSON; NULL
                                -- without the event
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX task_due_at ON task (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX task_worker_id ON task (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX task_expires_at ON task (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX task_purge_at ON task (purge_at) WHERE purge_at IS NOT NULL;
CREATE UNIQUE INDEX task_idempotency_key ON task (principal, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX task_list ON task (principal, origin, created_at) WHERE listed;
-- Lists of a console, newest first. The first two contain all tasks in some states. The others
-- contain only tasks of a server with a console.
CREATE INDEX task_open ON task (created_at, id) WHERE phase <> 3;
CREATE INDEX task_outcome ON task (outcome_kind, created_at, id) WHERE outcome_kind > 0;
CREATE INDEX task_created_at ON task (created_at, id) WHERE indexed;
CREATE INDEX task_tool ON task (tool, created_at, id) WHERE indexed;
CREATE INDEX task_person ON task (person, created_at, id) WHERE indexed AND person IS NOT NULL;

-- Number of open tasks and stored bytes of a principal, without the rows of `quota_release`.
CREATE TABLE principal_quota (
    principal text COLLATE "C" PRIMARY KEY,
    count bigint NOT NULL,
    bytes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Changes that are not yet in `principal_quota`. A transaction inserts a row here without waiting
-- for a lock. The creation of tasks locks the quota row of the principal. A sweep adds these rows
-- to the quotas, as does a transaction that finds its principal over the limit.
CREATE TABLE quota_release (
    principal text COLLATE "C" NOT NULL,
    tasks bigint NOT NULL DEFAULT 1, -- number of ended tasks
    bytes bigint NOT NULL DEFAULT 0  -- number of added bytes
);
CREATE INDEX quota_release_principal ON quota_release (principal);

CREATE TABLE journal_entry (
    task bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    is_input boolean NOT NULL,
    body text NOT NULL,
    recorded_at bigint,       -- NULL if the task is not indexed
    duration bigint,          -- in microseconds, as the worker measured it
    PRIMARY KEY (task, key)
);

CREATE TABLE segment (
    task bigint NOT NULL,
    number bigint NOT NULL,   -- from 1, without gaps
    scope text COLLATE "C" NOT NULL,
    ordinal bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (task, number),
    UNIQUE (task, scope, ordinal)
);

-- Parts of large results. The bodies are bytes: a part can end inside a character, and text can
-- contain NUL.
CREATE TABLE result_part (
    task bigint NOT NULL,
    block integer NOT NULL,
    number integer NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (task, block, number)
);
-- Not compressed: a compressed part has half of the size, but reading it takes three times as long.
ALTER TABLE result_part ALTER COLUMN body SET STORAGE EXTERNAL;

CREATE TABLE input_request (
    task bigint NOT NULL,
    wire_key text COLLATE "C" NOT NULL,
    journal_key text COLLATE "C" NOT NULL,
    ordinal bigint NOT NULL,
    state smallint NOT NULL,  -- 0 open, 1 answered, 2 withdrawn
    opened_at bigint NOT NULL,
    settled_at bigint,        -- when the request got its response or was withdrawn
    due_at bigint,
    body text,                -- NULL for an external event
    audience smallint NOT NULL, -- 0 client, 1 caller, 2 the addressees
    addressees text,          -- names and scope as JSON, as in the table `addressee`
    binding text,             -- digest, definition and count of an approval request, as JSON
    denial text COLLATE "C",  -- key of the calls that a denial of an approval request denies
    bytes bigint NOT NULL,    -- counted bytes of the request
    PRIMARY KEY (task, wire_key)
);
CREATE INDEX input_request_denial ON input_request (denial, settled_at)
    WHERE denial IS NOT NULL AND state = 1;

-- Open input requests by the people who may respond: `n/NAME` is a person, `s/SCOPE` the holders of
-- a scope, and `*` the operators. The rows of a request are deleted when it is settled.
CREATE TABLE addressee (
    task bigint NOT NULL,
    wire_key text COLLATE "C" NOT NULL,
    addressee text COLLATE "C" NOT NULL,
    opened_at bigint NOT NULL,
    id text COLLATE "C" NOT NULL, -- because the table `task` has no index on numbers
    caller text COLLATE "C",      -- person of the task, who cannot respond as holder of the scope
    PRIMARY KEY (task, wire_key, addressee)
);
CREATE INDEX addressee_inbox ON addressee (addressee, opened_at, id, wire_key);

CREATE TABLE vote (
    task bigint NOT NULL,
    wire_key text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL, -- of the task
    accepts boolean NOT NULL,
    voted_at bigint NOT NULL,
    reason text,
    channel text NOT NULL,
    saw_definition boolean NOT NULL, -- whether the person saw the tool as the request binds it
    PRIMARY KEY (task, wire_key, person)
);
CREATE INDEX vote_person ON vote (person, voted_at, id);

-- Tags of indexed tasks, as `key=value`.
CREATE TABLE tag (
    task bigint NOT NULL,
    tag text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,   -- of the task
    id text COLLATE "C" NOT NULL, -- of the task
    PRIMARY KEY (task, tag)
);
CREATE INDEX tag_list ON tag (tag, created_at, id);

-- Notifications that a receiver has not accepted. A delivery survives the deletion of its task.
CREATE TABLE delivery (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE DEFAULT gen_random_uuid()::text,
    task text COLLATE "C" NOT NULL,
    event text NOT NULL,
    target text COLLATE "C" NOT NULL,
    input_request text,       -- wire key; NULL for an event of the task itself
    recorded_at bigint NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    due_at bigint,            -- also the end of the lease; NULL if the delivery is dead
    error text                -- of the last failed attempt
);
CREATE INDEX delivery_due_at ON delivery (target, due_at, number) WHERE due_at IS NOT NULL;
CREATE INDEX delivery_failing ON delivery (number) WHERE error IS NOT NULL;

-- Counts of ended tasks. A worker adds to its minutes. Old minutes of all workers are added to the
-- row of their hour.
CREATE TABLE metric (
    is_hour boolean NOT NULL,
    at bigint NOT NULL,       -- start of the minute or hour
    tool text COLLATE "C" NOT NULL,
    worker_id text COLLATE "C" NOT NULL, -- empty for an hour
    counts bigint[] NOT NULL, -- ended tasks by outcome, then the histograms of wait and run
    PRIMARY KEY (is_hour, at, tool, worker_id)
);

-- Calls of clients without tasks that wait for a task: one row per bridged task.
CREATE TABLE bridged_call (
    task bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL, -- because the table `task` has no index on numbers
    principal text COLLATE "C" NOT NULL,
    scope text COLLATE "C",       -- NULL if no other call joins or lists the task
    fingerprint text COLLATE "C" NOT NULL, -- of tool and arguments
    created_at bigint NOT NULL,   -- of the task; numbers are not in the order of creation
    attended_by text COLLATE "C", -- worker in whose process a call waits
    attended_lock bigint,         -- liveness lock of that process
    attendants integer NOT NULL,  -- number of waiting calls of that worker
    joinable_at bigint,           -- time before which no call joins; NULL after abandonment
    abandon_after bigint NOT NULL,
    abandon_at bigint,            -- when a sweep cancels the task
    pending_results integer NOT NULL,
    delivered_at bigint           -- when the result was flushed
);
CREATE INDEX bridged_call_equal ON bridged_call (principal, scope, fingerprint, created_at, task)
    WHERE delivered_at IS NULL AND scope IS NOT NULL;
CREATE INDEX bridged_call_open ON bridged_call (principal, scope, created_at, task)
    WHERE delivered_at IS NULL AND scope IS NOT NULL;
CREATE INDEX bridged_call_attended_lock ON bridged_call (attended_lock)
    WHERE attended_lock IS NOT NULL;
CREATE INDEX bridged_call_abandon_at ON bridged_call (abandon_at) WHERE abandon_at IS NOT NULL;
CREATE INDEX bridged_call_delivered_at ON bridged_call (principal, delivered_at)
    WHERE delivered_at IS NOT NULL;

-- Processes that use this database. Each holds its liveness lock while it is alive.
CREATE TABLE replica (
    lock bigint PRIMARY KEY,
    lock_free_since bigint,   -- when another process first found the lock free
    since bigint,             -- when the process took the lock
    returned boolean NOT NULL DEFAULT false -- whether the process had lost an earlier lock
);

CREATE TABLE key_value (
    key text COLLATE "C" PRIMARY KEY,
    body text NOT NULL,
    expires_at bigint NOT NULL,
    principal text COLLATE "C" -- principal that is charged for the entry
);
CREATE INDEX key_value_expires_at ON key_value (expires_at);

CREATE TABLE audit_event (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recorded_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    task text COLLATE "C" NOT NULL,
    principal text NOT NULL,
    action text NOT NULL,
    reason text,
    worker_id text            -- worker that performed the action
);
CREATE INDEX audit_event_task ON audit_event (task, number);

-- Number of tasks in each phase, so that `stats` reads no task. Each statement that changes phases
-- inserts one row into `phase_change`, without waiting for a lock. A sweep adds these rows to the
-- single row of `phase_count`. The current numbers are the sum of both tables.
CREATE TABLE phase_count (
    queued bigint NOT NULL DEFAULT 0,
    running bigint NOT NULL DEFAULT 0,
    parked bigint NOT NULL DEFAULT 0,
    ended bigint NOT NULL DEFAULT 0,
    quarantined bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0 -- stored bytes of all principals
);
CREATE TABLE phase_change (LIKE phase_count INCLUDING DEFAULTS);
INSERT INTO phase_count DEFAULT VALUES;
