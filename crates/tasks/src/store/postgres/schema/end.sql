-- Cancellation, expiry and deletion of tasks.

-- Cancels a task. Returns NULL if the task does not exist, otherwise a code. 0: the task had ended.
-- 1: its worker must stop. 2: the task has ended now.
CREATE FUNCTION cancel_task(
    _principal text, _id text, _at_once boolean, _outcome text, _retention bigint, _shift bigint)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _task task;
BEGIN
    SELECT * INTO _task FROM task WHERE id = _id AND principal = _principal FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF _task.phase = 3 THEN
        RETURN 0;
    END IF;
    RETURN cancel_open_task(_task, _at_once, _outcome, _retention, _now);
END $$;

-- Cancels a task that has not ended. Returns a code like `cancel_task`. The caller must hold the
-- lock on the row.
CREATE FUNCTION cancel_open_task(
    _task task, _at_once boolean, _outcome text, _retention bigint, _now bigint)
RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    _task.cancel_requested_at := coalesce(_task.cancel_requested_at, _now);
    IF _task.phase <> 1 OR _at_once THEN
        PERFORM end_task(_task, _outcome, true, _retention, _now);
        RETURN 2;
    END IF;
    UPDATE task SET cancel_requested_at = _task.cancel_requested_at,
        updated_at = greatest(_now, updated_at + 1) WHERE id = _task.id;
    RETURN 1;
END $$;

-- Deletes the child rows of deleted tasks, and subtracts their bytes from their principals. Returns
-- these bytes.
CREATE FUNCTION delete_tasks(_numbers bigint[], _principals text[], _bytes bigint[])
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _freed bigint;
BEGIN
    DELETE FROM bridged_call WHERE task = ANY (_numbers);
    DELETE FROM addressee WHERE task = ANY (_numbers);
    WITH gone AS (
        SELECT * FROM unnest(_numbers, _principals, _bytes) AS g (number, principal, bytes)
    ), entries AS (
        DELETE FROM journal_entry WHERE task = ANY (_numbers)
            RETURNING task, octet_length(key) + octet_length(body) AS bytes
    ), segments AS (
        DELETE FROM segment WHERE task = ANY (_numbers)
            RETURNING task, octet_length(scope) + octet_length(body) AS bytes
    ), questions AS (
        DELETE FROM input_request WHERE task = ANY (_numbers)
            RETURNING task, bytes
    ), votes AS (
        DELETE FROM vote WHERE task = ANY (_numbers)
            RETURNING task, vote_bytes(person, reason, channel) AS bytes
    ), parts AS (
        DELETE FROM result_part WHERE task = ANY (_numbers)
            RETURNING task, octet_length(body) AS bytes
    ), tags AS (
        DELETE FROM tag WHERE task = ANY (_numbers)
            RETURNING task, tag_bytes(tag) AS bytes
    ), freed AS (
        SELECT task, sum(bytes) AS bytes
            FROM (SELECT * FROM entries UNION ALL SELECT * FROM segments
                UNION ALL SELECT * FROM parts UNION ALL SELECT * FROM votes
                UNION ALL SELECT * FROM questions UNION ALL SELECT * FROM tags) AS each GROUP BY task
    ), counted AS (
        INSERT INTO quota_release (principal, tasks, bytes)
            SELECT g.principal, 0, -sum(g.bytes + coalesce(f.bytes, 0))
            FROM gone g LEFT JOIN freed f ON f.task = g.number GROUP BY g.principal
            RETURNING bytes
    )
    SELECT -sum(bytes) INTO _freed FROM counted;
    RETURN _freed;
END $$;

-- Ends expired tasks, cancels abandoned ones, and deletes rows whose retention has ended. A
-- quarantined task ends with its quarantine outcome. The newest `_max_deliveries` deliveries stay.
CREATE FUNCTION sweep(
    _limit bigint, _outcome text, _cancelled text, _retention bigint,
    _delivery_retention bigint, _max_deliveries bigint, _shift bigint)
RETURNS TABLE (expired text[], principals text[], were_quarantined boolean[], purged bigint, more boolean,
    abandoned text[], abandoned_principals text[], are_running boolean[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _now bigint := now_ms(_shift);
    _numbers bigint[];
    _expired text[] := '{}';
    _owners text[] := '{}';
    _quarantined boolean[] := '{}';
    _bytes bigint[];
    _gone text[];
    _task task;
    _principals text[];
    _ended bigint;
    _entries bigint;
    _events bigint;
    _deliveries bigint;
    _abandoned text[];
    _abandoned_owners text[];
    _running boolean[];
    _resolved bigint;
BEGIN
    -- Quotas are locked before tasks, as in all functions.
    SELECT count(*), array_agg(DISTINCT e.principal ORDER BY e.principal) INTO _ended, _principals
        FROM (SELECT principal FROM quota_release LIMIT 1000) AS e;
    INSERT INTO principal_quota (principal, count) SELECT unnest(_principals), 0 ON CONFLICT DO NOTHING;
    SELECT array_agg(principal) INTO _principals FROM (
        SELECT o.principal FROM principal_quota o WHERE o.principal = ANY (_principals)
            FOR UPDATE SKIP LOCKED) AS counted;
    PERFORM release_quota(_principals);
    DELETE FROM principal_quota WHERE principal = ANY (_principals) AND count = 0 AND bytes = 0;
    PERFORM fold_phases();

    WITH old AS MATERIALIZED (
        SELECT id FROM task WHERE purge_at <= _now AND due_at IS NULL
            ORDER BY purge_at LIMIT _limit FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM task t USING old WHERE t.id = old.id
            RETURNING t.number, t.principal, row_bytes(t.request, t.outcome) AS bytes
    )
    SELECT array_agg(number), array_agg(principal), array_agg(bytes)
        INTO _numbers, _gone, _bytes FROM gone;
    IF _numbers IS NOT NULL THEN
        PERFORM delete_tasks(_numbers, _gone, _bytes);
    END IF;

    FOR _task IN SELECT * FROM task WHERE expires_at <= _now ORDER BY expires_at LIMIT _limit
        FOR UPDATE SKIP LOCKED
    LOOP
        IF _task.phase = 4 THEN
            PERFORM end_task(_task, _task.quarantine_outcome, false, _retention, _now);
        ELSE
            PERFORM end_task(_task, _outcome, true, _retention, _now);
        END IF;
        _expired := _expired || _task.id;
        _owners := _owners || _task.principal;
        _quarantined := _quarantined || (_task.phase = 4);
    END LOOP;

    SELECT coalesce(array_agg(a.task_id) FILTER (WHERE a.what > 0), '{}'),
            coalesce(array_agg(a.owned_by) FILTER (WHERE a.what > 0), '{}'),
            coalesce(array_agg(a.what = 1) FILTER (WHERE a.what > 0), '{}'), count(*)
        INTO _abandoned, _abandoned_owners, _running, _resolved
        FROM cancel_abandoned(_limit, _cancelled, _retention, _now) AS a;

    WITH gone AS (
        DELETE FROM key_value WHERE key IN (SELECT key FROM key_value WHERE expires_at <= _now
            ORDER BY expires_at LIMIT _limit FOR UPDATE SKIP LOCKED)
            RETURNING principal, key_value_bytes(key, body) AS bytes
    ), counted AS (
        INSERT INTO quota_release (principal, tasks, bytes)
            SELECT principal, 0, -sum(bytes) FROM gone WHERE principal IS NOT NULL
            GROUP BY principal
    )
    SELECT count(*) INTO _entries FROM gone;
    -- The end of a task takes this lock at the commit. It precedes the locks on rows of the log,
    -- because `append_audit_events` waits for these rows under it.
    PERFORM lock_audit_events();
    -- Checks only the oldest rows. With a constant retention, events expire in the order of their
    -- numbers.
    DELETE FROM audit_event WHERE number IN (SELECT number FROM audit_event
        WHERE number < (SELECT min(number) FROM audit_event) + _limit AND expires_at <= _now
        FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS _events = ROW_COUNT;
    DELETE FROM delivery WHERE number IN (SELECT d.number FROM delivery d
        WHERE d.number IN (SELECT number FROM delivery ORDER BY number LIMIT _limit)
            AND (d.recorded_at <= _now - _delivery_retention OR d.number <=
                (SELECT number FROM delivery ORDER BY number DESC OFFSET _max_deliveries LIMIT 1))
        FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS _deliveries = ROW_COUNT;

    RETURN QUERY SELECT _expired, _owners, _quarantined, coalesce(cardinality(_numbers), 0)::bigint,
        _limit IN (cardinality(_expired), coalesce(cardinality(_numbers), 0), _entries, _events,
            _deliveries, _resolved)
            OR _ended = 1000,
        _abandoned, _abandoned_owners, _running;
END $$;
