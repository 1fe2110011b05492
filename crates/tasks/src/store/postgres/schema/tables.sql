-- What a database keeps. Times are in milliseconds since 1970, by its own clock.
--
-- Nothing refers to a task but by its number, and nothing is kept without its task: the functions see
-- to it, because a reference that the database checks costs as much as the row itself. Text is compared
-- byte by byte: names are no words. All indexes but two are partial: they hold what somebody still
-- waits for, however much has ended.

-- Each connection takes a hundred numbers at a time.
CREATE SEQUENCE task_number CACHE 100;

CREATE TABLE task (
    id text COLLATE "C" PRIMARY KEY,
    number bigint NOT NULL,   -- by which all that belongs to it is found
    principal text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    origin text NOT NULL,
    listed boolean NOT NULL,  -- whether anybody can list it
    phase smallint NOT NULL,  -- 0 queued, 1 running, 2 parked, 3 ended
    epoch bigint NOT NULL,
    owner text COLLATE "C",   -- while it runs, or is cleaned up after
    owner_lock bigint,        -- what the owner's process holds for as long as it lives
    due bigint,               -- when somebody must look at it; NULL when ended and cleaned up after,
                              -- or parked for ever
    created bigint NOT NULL,
    updated bigint NOT NULL,
    ttl bigint,               -- as it was asked for
    max_ttl bigint NOT NULL,  -- while a question is open
    lasts bigint,             -- its ttl as things are
    expires bigint GENERATED ALWAYS AS (CASE WHEN phase <> 3 THEN created + lasts END) STORED,
    purge bigint GENERATED ALWAYS AS (CASE WHEN phase = 3 THEN created + lasts END) STORED,
    begun boolean NOT NULL,
    crashes integer NOT NULL,
    clean_up boolean NOT NULL, -- whether something is done after it if it ends before its work
    cancel_requested bigint,
    once_key text COLLATE "C",
    once_digest text COLLATE "C",
    message text,
    progress text,         -- how far it said it was
    reasked text,             -- how often its questions were asked again before it was a task
    request text NOT NULL,    -- what is long is kept beside the row, and is not written again with it
    outcome text
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX task_due ON task (due) WHERE due IS NOT NULL;
CREATE INDEX task_owner ON task (owner) WHERE owner IS NOT NULL;
CREATE INDEX task_expires ON task (expires) WHERE expires IS NOT NULL;
CREATE INDEX task_purge ON task (purge) WHERE purge IS NOT NULL;
CREATE UNIQUE INDEX task_once ON task (principal, once_key) WHERE once_key IS NOT NULL;
CREATE INDEX task_list ON task (principal, created) WHERE listed;

-- How many tasks of a principal have not ended, as far as those in `ended_task` are not counted out.
CREATE TABLE open_tasks (
    principal text COLLATE "C" PRIMARY KEY,
    count bigint NOT NULL
) WITH (fillfactor = 50);

-- One row for each task that has ended and is still counted. Those who end tasks wait for nobody
-- so; those who make them wait for each other, principal by principal. The sweeper counts them out, and
-- whoever finds no room.
CREATE TABLE ended_task (
    principal text COLLATE "C" NOT NULL
);
CREATE INDEX ended_task_principal ON ended_task (principal);

CREATE TABLE entry (
    task bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    answer boolean NOT NULL,
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

CREATE TABLE question (
    task bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    place bigint NOT NULL,
    state smallint NOT NULL,  -- 0 open, 1 answered, 2 withdrawn
    due bigint,
    body text,                -- NULL if it is not the client that answers
    PRIMARY KEY (task, name)
);

-- The processes that use this database. Each holds a lock of its own for as long as it lives.
CREATE TABLE replica (
    lock bigint PRIMARY KEY,
    gone bigint               -- when its lock was first found free
);

CREATE TABLE note (
    key text COLLATE "C" PRIMARY KEY,
    body text NOT NULL,
    expires bigint NOT NULL
);
CREATE INDEX note_expires ON note (expires);

CREATE TABLE event (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at bigint NOT NULL,
    expires bigint NOT NULL,
    task text COLLATE "C" NOT NULL,
    principal text NOT NULL,
    what text NOT NULL,
    cause text
);
CREATE INDEX event_task ON event (task, number);
