-- How a task has ended, in one word, and how many bytes each principal has stored.
--
-- What a principal has stored is `bytes` of its row of `open_tasks`, and all of its rows of `ended_task`
-- that are not counted yet. New tasks are counted in the row itself, which is locked for them anyway;
-- everything else adds a row to `ended_task`, and waits for nobody. Nothing is counted for each task, so
-- that a step leaves the row of its task as it is: what is forgotten is measured when it is deleted.

ALTER TABLE task ADD COLUMN outcome_kind smallint; -- 0 completed, 1 failed, 2 cancelled, 3 expired
ALTER TABLE open_tasks ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
ALTER TABLE ended_task
    ADD COLUMN tasks bigint NOT NULL DEFAULT 1, -- how many have ended
    ADD COLUMN bytes bigint NOT NULL DEFAULT 0; -- how many bytes more there are
ALTER TABLE note ADD COLUMN principal text COLLATE "C"; -- whom it is counted for

-- What another function has written before.
CREATE FUNCTION outcome_kind(_outcome text) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
    SELECT (CASE WHEN _outcome = '"Cancelled"' THEN 2 WHEN _outcome = '"Expired"' THEN 3
        WHEN _outcome LIKE '{"Result":%' AND _outcome NOT LIKE '%"isError":true%' THEN 0
        ELSE 1 END)::smallint
$$;
UPDATE task SET outcome_kind = outcome_kind(outcome) WHERE phase = 3;

INSERT INTO open_tasks (principal, count, bytes)
    SELECT t.principal, 0, sum(row_bytes(t.request, t.outcome)
        + coalesce((SELECT sum(octet_length(key) + octet_length(body))
            FROM entry WHERE task = t.number), 0)
        + coalesce((SELECT sum(octet_length(scope) + octet_length(body))
            FROM segment WHERE task = t.number), 0))
    FROM task t GROUP BY t.principal
    ON CONFLICT (principal) DO UPDATE SET bytes = excluded.bytes;
UPDATE phase_count SET bytes = coalesce((SELECT sum(bytes) FROM open_tasks), 0);

-- What a key-value entry counts. 256 is for its row and its indexes.
CREATE FUNCTION note_bytes(_key text, _body text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT 256::bigint + octet_length(_key) + octet_length(_body)
$$;

DROP FUNCTION IF EXISTS count_out, create_tasks, finish, write_tasks, write_task, answer_task, sweep,
    forget_tasks, purge_task, purge_ended, find_tasks, record_tasks, record_steps, end_tasks,
    count_tasks, keep_note;

-- Counts out what has ended, and counts the bytes. The counts must be locked.
CREATE FUNCTION count_out(_principals text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM ended_task WHERE principal = ANY (_principals)
            RETURNING principal, tasks, bytes
    ), ended AS (
        SELECT principal, sum(tasks) AS tasks, sum(bytes) AS bytes FROM gone GROUP BY principal
    ), counted AS (
        UPDATE open_tasks o SET count = greatest(o.count - ended.tasks, 0),
            bytes = greatest(o.bytes + ended.bytes, 0)
            FROM ended WHERE o.principal = ended.principal
    )
    INSERT INTO phase_change (bytes) SELECT sum(bytes) FROM ended HAVING sum(bytes) <> 0;
END $$;

-- How many bytes a principal has stored.
CREATE FUNCTION stored_bytes(_principal text) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN greatest(0,
        coalesce((SELECT bytes FROM open_tasks WHERE principal = _principal), 0)
        + coalesce((SELECT sum(bytes) FROM ended_task WHERE principal = _principal), 0));
END $$;

-- Whether one of these principals may have too many bytes: `_most` is what is counted of the one that
-- has most. So it is also if much is not counted yet, which is to be counted now and then.
CREATE FUNCTION exceeds_bytes(_principals text[], _most bigint, _max_bytes bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) > 1000
            OR _most + coalesce(sum(bytes), 0) > (SELECT min(m) FROM unnest(_max_bytes) AS m)
        FROM ended_task WHERE principal = ANY (_principals));
END $$;

-- Which of these are too large, if those that are known need no room.
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
            JOIN open_tasks o ON o.principal = n.principal
            WHERE o.bytes - n.counted + n.needed > n.max_bytes);
END $$;

-- Ends a task that has not ended, whose row is locked. What stands in it is written with its end. If
-- it ended before its work did it may be owed a clean-up. That is due when its run is gone, at the end
-- of its lease at the latest; and now if it has no owner.
CREATE FUNCTION finish(
    _task task, _outcome text, _unfinished boolean, _retention bigint, _now bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _open bigint;
    _lasts bigint;
BEGIN
    IF NOT (_unfinished AND _task.clean_up AND _task.begun) THEN
        _task.due := NULL;
    ELSE
        _task.crashes := 0;
        IF _task.owner IS NULL THEN
            _task.due := _now;
        END IF;
    END IF;
    UPDATE question SET state = 2 WHERE task = _task.number AND state = 0;
    GET DIAGNOSTICS _open = ROW_COUNT;
    -- What ends late can still be read for a while; without a ttl it stays.
    _lasts := lasting(_task, _open, 0, _now);
    IF _lasts IS NOT NULL THEN
        _lasts := greatest(_lasts, _now + _retention - _task.created);
    END IF;
    UPDATE task SET phase = 3, outcome = _outcome,
        outcome_kind = coalesce(_task.outcome_kind, outcome_kind(_outcome)), owner = NULL, owner_lock = NULL,
        due = _task.due, crashes = _task.crashes, lasts = _lasts, message = _task.message,
        progress = _task.progress, cancel_requested = _task.cancel_requested,
        updated = greatest(_now, _task.updated + 1)
        WHERE id = _task.id;
    INSERT INTO ended_task (principal, bytes) VALUES (_task.principal, octet_length(_outcome));
END $$;

-- Forgets a task: which phase it was in, whose it was, whether it was owed a clean-up, and whether it is
-- gone.
CREATE FUNCTION purge_task(_id text, _force boolean)
RETURNS TABLE (was smallint, owned_by text, owed boolean, gone boolean) LANGUAGE plpgsql AS $$
DECLARE
    _task task;
    _owed boolean;
    _gone boolean;
BEGIN
    SELECT * INTO _task FROM task WHERE id = _id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    _owed := _task.phase = 3 AND _task.due IS NOT NULL;
    _gone := _force OR (_task.phase = 3 AND NOT _owed);
    IF _gone THEN
        IF _task.phase <> 3 THEN
            INSERT INTO ended_task (principal) VALUES (_task.principal);
        END IF;
        DELETE FROM task WHERE id = _id;
        PERFORM forget_tasks(ARRAY[_task.number], ARRAY[_task.principal],
            ARRAY[row_bytes(_task.request, _task.outcome)]);
    END IF;
    RETURN QUERY SELECT _task.phase, _task.principal, _owed, _gone;
END $$;

-- Forgets what has ended before a time.
CREATE FUNCTION purge_ended(_before bigint, _limit bigint)
RETURNS TABLE (name text, owned_by text) LANGUAGE plpgsql SET enable_seqscan = on AS $$
DECLARE
    _numbers bigint[];
    _names text[];
    _owners text[];
    _bytes bigint[];
BEGIN
    WITH old AS MATERIALIZED (
        SELECT id FROM task WHERE phase = 3 AND due IS NULL AND updated < _before
            LIMIT _limit FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM task t USING old WHERE t.id = old.id RETURNING t.number, t.id, t.principal,
            row_bytes(t.request, t.outcome) AS bytes
    )
    SELECT array_agg(number), array_agg(id), array_agg(principal), array_agg(bytes)
        INTO _numbers, _names, _owners, _bytes FROM gone;
    IF _numbers IS NOT NULL THEN
        PERFORM forget_tasks(_numbers, _owners, _bytes);
        RETURN QUERY SELECT * FROM unnest(_names, _owners);
    END IF;
END $$;

-- Who looks for tasks may look through all of them: an index for it would cost each task that is made.
CREATE FUNCTION find_tasks(
    _phase smallint, _kind text, _principal text, _before bigint,
    _after_created bigint, _after_id text, _limit bigint,
    _outcome_kind smallint)
RETURNS TABLE (found text) LANGUAGE plpgsql STABLE SET enable_seqscan = on AS $$
BEGIN
    RETURN QUERY SELECT id FROM task
        WHERE (_phase IS NULL OR phase = _phase) AND (_kind IS NULL OR kind = _kind)
        AND (_principal IS NULL OR principal = _principal) AND created < _before
        AND (_outcome_kind IS NULL OR outcome_kind = _outcome_kind)
        AND (created, id) < (_after_created, _after_id COLLATE "C")
        ORDER BY created DESC, id DESC LIMIT _limit;
END $$;

-- Ends what is over its time, and forgets what has been over for long enough. What is kept ends as it
-- says.
CREATE FUNCTION sweep(_limit bigint, _outcome text, _retention bigint, _shift bigint)
RETURNS TABLE (expired text[], principals text[], were_kept boolean[], purged bigint, more boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _now bigint := now_ms(_shift);
    _numbers bigint[];
    _expired text[] := '{}';
    _owners text[] := '{}';
    _kept boolean[] := '{}';
    _bytes bigint[];
    _gone text[];
    _task task;
    _principals text[];
    _ended bigint;
    _notes bigint;
    _events bigint;
BEGIN
    -- Counts are locked before tasks, here as everywhere.
    SELECT count(*), array_agg(DISTINCT e.principal ORDER BY e.principal) INTO _ended, _principals
        FROM (SELECT principal FROM ended_task LIMIT 1000) AS e;
    INSERT INTO open_tasks (principal, count) SELECT unnest(_principals), 0 ON CONFLICT DO NOTHING;
    SELECT array_agg(principal) INTO _principals FROM (
        SELECT o.principal FROM open_tasks o WHERE o.principal = ANY (_principals)
            FOR UPDATE SKIP LOCKED) AS counted;
    PERFORM count_out(_principals);
    DELETE FROM open_tasks WHERE principal = ANY (_principals) AND count = 0 AND bytes = 0;
    PERFORM fold_phases();

    WITH old AS MATERIALIZED (
        SELECT id FROM task WHERE purge <= _now AND due IS NULL
            ORDER BY purge LIMIT _limit FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM task t USING old WHERE t.id = old.id
            RETURNING t.number, t.principal, row_bytes(t.request, t.outcome) AS bytes
    )
    SELECT array_agg(number), array_agg(principal), array_agg(bytes)
        INTO _numbers, _gone, _bytes FROM gone;
    IF _numbers IS NOT NULL THEN
        PERFORM forget_tasks(_numbers, _gone, _bytes);
    END IF;

    FOR _task IN SELECT * FROM task WHERE expires <= _now ORDER BY expires LIMIT _limit
        FOR UPDATE SKIP LOCKED
    LOOP
        IF _task.phase = 4 THEN
            PERFORM finish(_task, _task.kept, false, _retention, _now);
        ELSE
            PERFORM finish(_task, _outcome, true, _retention, _now);
        END IF;
        _expired := _expired || _task.id;
        _owners := _owners || _task.principal;
        _kept := _kept || (_task.phase = 4);
    END LOOP;

    WITH gone AS (
        DELETE FROM note WHERE key IN (SELECT key FROM note WHERE expires <= _now
            ORDER BY expires LIMIT _limit FOR UPDATE SKIP LOCKED)
            RETURNING principal, note_bytes(key, body) AS bytes
    ), counted AS (
        INSERT INTO ended_task (principal, tasks, bytes)
            SELECT principal, 0, -sum(bytes) FROM gone WHERE principal IS NOT NULL
            GROUP BY principal
    )
    SELECT count(*) INTO _notes FROM gone;
    -- Only the oldest are looked at: all are kept for as long, unless that was changed, and then some
    -- are kept for longer.
    DELETE FROM event WHERE number IN (SELECT number FROM event
        WHERE number < (SELECT min(number) FROM event) + _limit AND expires <= _now
        FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS _events = ROW_COUNT;

    RETURN QUERY SELECT _expired, _owners, _kept, coalesce(cardinality(_numbers), 0)::bigint,
        _limit IN (cardinality(_expired), coalesce(cardinality(_numbers), 0), _notes, _events)
            OR _ended = 1000;
END $$;

-- Stores a key-value entry. One that is there stays, unless it is to be replaced. What became of it: 0 it
-- is stored, 1 there is one, 2 its principal has too many bytes.
CREATE FUNCTION put_note(
    _key text, _body text, _ttl bigint, _replace boolean, _principal text, _max_bytes bigint,
    _shift bigint)
RETURNS TABLE (what integer, there text) LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _old note;
    _freed bigint;
BEGIN
    LOOP
        SELECT * INTO _old FROM note WHERE key = _key FOR UPDATE;
        IF FOUND AND NOT _replace AND _old.expires > _now THEN
            RETURN QUERY SELECT 1, _old.body;
            RETURN;
        END IF;
        _freed := coalesce(note_bytes(_old.key, _old.body), 0);
        IF stored_bytes(_principal) + note_bytes(_key, _body)
            - (CASE WHEN _old.principal = _principal THEN _freed ELSE 0 END) > _max_bytes
        THEN
            RETURN QUERY SELECT 2, NULL::text;
            RETURN;
        END IF;
        IF _old.key IS NOT NULL THEN
            UPDATE note SET body = _body, expires = _now + _ttl, principal = _principal
                WHERE key = _key;
        ELSE
            INSERT INTO note (key, body, expires, principal)
                VALUES (_key, _body, _now + _ttl, _principal) ON CONFLICT DO NOTHING;
            -- Another one was there first.
            CONTINUE WHEN NOT FOUND;
        END IF;
        INSERT INTO ended_task (principal, tasks, bytes)
            SELECT n.principal, 0, n.bytes FROM (VALUES
                (_principal, note_bytes(_key, _body)), (_old.principal, -_freed))
                AS n (principal, bytes)
            WHERE n.principal IS NOT NULL AND n.bytes <> 0;
        RETURN QUERY SELECT 0, NULL::text;
        RETURN;
    END LOOP;
END $$;

CREATE FUNCTION forget_note(_key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM note WHERE key = _key RETURNING principal, note_bytes(key, body) AS bytes
    )
    INSERT INTO ended_task (principal, tasks, bytes)
        SELECT principal, 0, -bytes FROM gone WHERE principal IS NOT NULL;
END $$;
