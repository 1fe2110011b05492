-- Counts of tasks and bytes.
--
-- Each operation on a task is one function call, and so one round trip. A function that changes a
-- task locks its row first, so later statements see everything that was committed before. Locks are
-- taken in one order: quotas by principal, then tasks by ID. Most functions are in PL/pgSQL, which
-- caches plans between calls.

-- Returns the time of the database, plus the offset of a test.
CREATE FUNCTION now_ms(_shift bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + _shift
$$;

-- Returns the bytes of a task without its child rows. 2,048 covers its row, indexes and audit events.
CREATE FUNCTION row_bytes(_request text, _outcome text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT 2048::bigint + octet_length(_request) + coalesce(octet_length(_outcome), 0)
$$;

-- Returns the bytes of a key-value entry. 256 covers its row and indexes.
CREATE FUNCTION key_value_bytes(_key text, _body text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT 256::bigint + octet_length(_key) + octet_length(_body)
$$;

-- Returns the bytes of a vote. 128 covers its row and indexes.
CREATE FUNCTION vote_bytes(_person text, _reason text, _channel text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT 128::bigint + octet_length(_person) + coalesce(octet_length(_reason), 0)
        + octet_length(_channel)
$$;

-- Returns the bytes of a tag. 64 covers its row and index.
CREATE FUNCTION tag_bytes(_tag text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT 64::bigint + octet_length(_tag)
$$;

-- Counts tasks that have changed their phase or were deleted.
CREATE FUNCTION count_phases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        INSERT INTO phase_change SELECT -count(*) FILTER (WHERE phase = 0),
            -count(*) FILTER (WHERE phase = 1), -count(*) FILTER (WHERE phase = 2),
            -count(*) FILTER (WHERE phase = 3), -count(*) FILTER (WHERE phase = 4)
            FROM removed HAVING count(*) > 0;
    ELSE
        -- The condition skips statements that change no phase, which are the most frequent.
        INSERT INTO phase_change SELECT m.queued, m.running, m.parked, m.ended, m.quarantined FROM (
            SELECT coalesce(sum(n) FILTER (WHERE phase = 0), 0) AS queued,
                coalesce(sum(n) FILTER (WHERE phase = 1), 0) AS running,
                coalesce(sum(n) FILTER (WHERE phase = 2), 0) AS parked,
                coalesce(sum(n) FILTER (WHERE phase = 3), 0) AS ended,
                coalesce(sum(n) FILTER (WHERE phase = 4), 0) AS quarantined
            FROM (SELECT phase, 1 AS n FROM added UNION ALL SELECT phase, -1 FROM removed) AS p
        ) AS m WHERE (m.queued, m.running, m.parked, m.ended, m.quarantined) <> (0, 0, 0, 0, 0);
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER count_moved AFTER UPDATE ON task
    REFERENCING NEW TABLE AS added OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_phases();
CREATE TRIGGER count_deleted AFTER DELETE ON task REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_phases();

-- Adds `phase_change` to `phase_count`. Concurrent transactions take different rows.
CREATE FUNCTION fold_phases() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM phase_change WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM phase_change LIMIT 10000 FOR UPDATE SKIP LOCKED))
            RETURNING *
    ), moved AS (
        SELECT sum(queued) AS queued, sum(running) AS running, sum(parked) AS parked,
            sum(ended) AS ended, sum(quarantined) AS quarantined, sum(bytes) AS bytes
            FROM gone HAVING count(*) > 0
    )
    UPDATE phase_count c SET queued = c.queued + m.queued, running = c.running + m.running,
        parked = c.parked + m.parked, ended = c.ended + m.ended, quarantined = c.quarantined + m.quarantined,
        bytes = c.bytes + m.bytes FROM moved m;
END $$;

-- Adds `quota_release` to the quotas of these principals. The caller must hold the locks on their
-- rows.
CREATE FUNCTION release_quota(_principals text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM quota_release WHERE principal = ANY (_principals)
            RETURNING principal, tasks, bytes
    ), ended AS (
        SELECT principal, sum(tasks) AS tasks, sum(bytes) AS bytes FROM gone GROUP BY principal
    ), counted AS (
        UPDATE principal_quota o SET count = greatest(o.count - ended.tasks, 0),
            bytes = greatest(o.bytes + ended.bytes, 0)
            FROM ended WHERE o.principal = ended.principal
    )
    INSERT INTO phase_change (bytes) SELECT sum(bytes) FROM ended HAVING sum(bytes) <> 0;
END $$;

-- Returns the stored bytes of a principal.
CREATE FUNCTION stored_bytes(_principal text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN greatest(0,
        coalesce((SELECT bytes FROM principal_quota WHERE principal = _principal), 0)
        + coalesce((SELECT sum(bytes) FROM quota_release WHERE principal = _principal), 0));
END $$;

-- Returns whether one of these principals may exceed its byte limit. `_most` is the highest byte
-- count among them. Also returns true if `quota_release` has many rows, so that the caller folds
-- them.
CREATE FUNCTION exceeds_bytes(_principals text[], _most bigint, _max_bytes bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) > 1000
            OR _most + coalesce(sum(bytes), 0) > (SELECT min(m) FROM unnest(_max_bytes) AS m)
        FROM quota_release WHERE principal = ANY (_principals));
END $$;

-- Returns the positions of tasks beyond the quota of their principal. Existing tasks do not count.
CREATE FUNCTION over_quota(_principals text[], _quotas bigint[], _known bigint[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        WITH wanted AS (
            SELECT w.*, count(*) OVER (PARTITION BY w.principal) AS counted
                FROM unnest(_principals, _quotas) WITH ORDINALITY AS w (principal, quota, place)
        ), new AS (
            SELECT w.*, row_number() OVER (PARTITION BY w.principal ORDER BY w.place) AS nth
                FROM wanted w WHERE w.place <> ALL (_known)
        )
        SELECT coalesce(array_agg(n.place), '{}') FROM new n
            JOIN principal_quota o ON o.principal = n.principal
            WHERE o.count - n.counted + n.nth > n.quota);
END $$;

-- Returns the positions of tasks beyond the byte limit of their principal. Existing tasks do not
-- count.
CREATE FUNCTION over_bytes(
    _principals text[], _bytes bigint[], _max_bytes bigint[], _known bigint[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        WITH wanted AS (
            SELECT w.*, sum(w.bytes) OVER (PARTITION BY w.principal) AS counted
                FROM unnest(_principals, _bytes, _max_bytes)
                    WITH ORDINALITY AS w (principal, bytes, max_bytes, place)
        ), new AS (
            SELECT w.*, sum(w.bytes) OVER (PARTITION BY w.principal ORDER BY w.place) AS needed
                FROM wanted w WHERE w.place <> ALL (_known)
        )
        SELECT coalesce(array_agg(n.place), '{}') FROM new n
            JOIN principal_quota o ON o.principal = n.principal
            WHERE o.bytes - n.counted + n.needed > n.max_bytes);
END $$;

-- Returns the principals that may exceed their byte limit with `_bytes` more; NULL if there are
-- none. Folds `quota_release` if it has many rows, unless another transaction does.
CREATE FUNCTION principals_without_bytes(_principals text[], _bytes bigint[], _max_bytes bigint[])
RETURNS text[] LANGUAGE plpgsql STRICT AS $$
DECLARE
    _full text[];
    _uncounted bigint;
BEGIN
    WITH uncounted AS (
        SELECT principal, sum(bytes) AS bytes, count(*) AS rows FROM quota_release
            WHERE principal = ANY (_principals) GROUP BY principal
    )
    SELECT array_agg(w.principal) FILTER (WHERE
            w.bytes + coalesce(o.bytes, 0) + coalesce(u.bytes, 0) > w.max_bytes), sum(u.rows)
        INTO _full, _uncounted
        FROM unnest(_principals, _bytes, _max_bytes) AS w (principal, bytes, max_bytes)
        LEFT JOIN principal_quota o ON o.principal = w.principal
        LEFT JOIN uncounted u ON u.principal = w.principal;
    IF _uncounted > 500 THEN
        PERFORM release_quota(ARRAY(SELECT principal FROM principal_quota
            WHERE principal = ANY (_principals) FOR UPDATE SKIP LOCKED));
    END IF;
    RETURN _full;
END $$;
