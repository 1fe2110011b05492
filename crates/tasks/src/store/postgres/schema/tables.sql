-- Tables of the store. Times are in milliseconds since 1970, by the clock of the database.
--
-- Child rows refer to a task by its number. There are no foreign keys, because a check would cost as
-- much as the row itself; the functions delete child rows with their task. Text is compared byte by
-- byte. All indexes but two are partial: they hold rows that a worker or a caller still waits for.

-- Each connection takes a hundred numbers at a time.
CREATE SEQUENCE task_number CACHE 100;

CREATE TABLE task (
    id text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL DEFAULT nextval('task_number'), -- key of all child rows
    principal text COLLATE "C" NOT NULL,
    tool text NOT NULL,
    origin text NOT NULL,
    listed boolean NOT NULL,    -- whether its principal can list it
    phase smallint NOT NULL,    -- 0 queued, 1 running, 2 parked, 3 ended, 4 quarantined
    epoch bigint NOT NULL,
    worker_id text COLLATE "C", -- while it runs, or its cleanup does
    worker_lock bigint,         -- liveness lock of the worker's process
    due_at bigint,              -- when a worker must claim it; NULL if it ended and needs no cleanup,
                                -- or is parked without a time
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    ttl bigint,                 -- as requested
    max_ttl bigint NOT NULL,    -- while an input request is open
    effective_ttl bigint,       -- as things are
    expires_at bigint GENERATED ALWAYS AS (CASE WHEN phase <> 3 THEN created_at + effective_ttl END) STORED,
    purge_at bigint GENERATED ALWAYS AS (CASE WHEN phase = 3 THEN created_at + effective_ttl END) STORED,
    started boolean NOT NULL,
    crash_count integer NOT NULL,
    has_cleanup boolean NOT NULL, -- whether a cleanup runs if it is cancelled or expires
    cancel_requested_at bigint,
    idempotency_key text COLLATE "C",
    idempotency_fingerprint text COLLATE "C",
    status_message text,
    progress text,
    reissue_counts text,        -- how often its input requests were reissued before promotion
    request text NOT NULL,      -- long values are stored beside the row, and not rewritten with it
    outcome text,
    quarantine_outcome text,    -- its outcome if no operator retries it in time
    outcome_kind smallint       -- 0 completed, 1 failed, 2 cancelled, 3 expired
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX task_due_at ON task (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX task_worker_id ON task (worker_id) WHERE worker_id IS NOT NULL;
CREATE INDEX task_expires_at ON task (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX task_purge_at ON task (purge_at) WHERE purge_at IS NOT NULL;
CREATE UNIQUE INDEX task_idempotency_key ON task (principal, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX task_list ON task (principal, origin, created_at) WHERE listed;

-- Number of open tasks and bytes of a principal, without the rows of `quota_release`.
CREATE TABLE principal_quota (
    principal text COLLATE "C" PRIMARY KEY,
    count bigint NOT NULL,
    bytes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Changes that are not in `principal_quota` yet. A transaction adds a row here and waits for no lock.
-- New tasks lock the row of their principal. A sweep folds these rows in, and so does a transaction
-- that finds its principal over the limit.
CREATE TABLE quota_release (
    principal text COLLATE "C" NOT NULL,
    tasks bigint NOT NULL DEFAULT 1, -- how many have ended
    bytes bigint NOT NULL DEFAULT 0  -- how many bytes were added
);
CREATE INDEX quota_release_principal ON quota_release (principal);

CREATE TABLE journal_entry (
    task bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    is_input boolean NOT NULL,
    body text NOT NULL,
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

CREATE TABLE input_request (
    task bigint NOT NULL,
    wire_key text COLLATE "C" NOT NULL,
    journal_key text COLLATE "C" NOT NULL,
    ordinal bigint NOT NULL,
    state smallint NOT NULL,  -- 0 open, 1 answered, 2 withdrawn
    due_at bigint,
    body text,                -- NULL for an external event
    PRIMARY KEY (task, wire_key)
);

-- The processes that use this database. Each holds its liveness lock while it is alive.
CREATE TABLE replica (
    lock bigint PRIMARY KEY,
    lock_free_since bigint,   -- when its lock was first found free
    since bigint,             -- when it took its lock
    returned boolean NOT NULL DEFAULT false -- it had lost another lock
);

CREATE TABLE key_value (
    key text COLLATE "C" PRIMARY KEY,
    body text NOT NULL,
    expires_at bigint NOT NULL,
    principal text COLLATE "C" -- the principal that is charged for it
);
CREATE INDEX key_value_expires_at ON key_value (expires_at);

CREATE TABLE audit_event (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    recorded_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    task text COLLATE "C" NOT NULL,
    principal text NOT NULL,
    action text NOT NULL,
    reason text
);
CREATE INDEX audit_event_task ON audit_event (task, number);

-- Number of tasks in each phase, so that `stats` reads no task. Every statement that moves tasks adds
-- one row to `phase_change`, which waits for no lock. A sweep adds these rows to the one row of
-- `phase_count`. The numbers are the sum of both.
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
