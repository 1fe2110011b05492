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

-- Makes tasks. What it returns is when, and then those that were not made: 0 it was, by a first attempt
-- of the same caller, 1 made before, 2 the key is used for something else, 3 over quota, 4 the name is
-- taken, 5 over the principal's bytes.
CREATE FUNCTION create_tasks(
    _ids text[], _principals text[], _kinds text[], _origins text[], _listed boolean[],
    _requests text[],
    _ttls bigint[], _max_ttls bigint[], _workers text[], _leases bigint[],
    _once_keys text[], _once_digests text[], _quotas bigint[], _bytes bigint[], _max_bytes bigint[],
    _reasked text[], _again boolean[],
    _clean_ups boolean[],
    _entry_places bigint[], _entry_keys text[], _entry_answers boolean[], _entry_bodies text[],
    _segment_places bigint[], _segment_numbers bigint[], _segment_scopes text[],
    _segment_ordinals bigint[], _segment_bodies text[],
    _lock bigint, _shift bigint)
RETURNS TABLE (place bigint, what integer, known text, at bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _now bigint := now_ms(_shift);
    _each text[];
    _over boolean;
    _known bigint[];
    _refused bigint[] := '{}';
    _too_large bigint[] := '{}';
    _most bigint;
    _skipped bigint[];
    _numbers bigint[];
BEGIN
    -- From here on nobody else makes a task for these principals. What has ended is counted out when
    -- it stands in the way, and else by the sweeper.
    WITH wanted AS (
        SELECT w.principal, count(*) AS count, sum(w.bytes) AS bytes
            FROM unnest(_principals, _bytes) AS w (principal, bytes)
            GROUP BY w.principal ORDER BY w.principal COLLATE "C"
    ), counted AS (
        INSERT INTO open_tasks AS o (principal, count, bytes)
            SELECT principal, count, bytes FROM wanted
            ON CONFLICT (principal) DO UPDATE SET count = o.count + excluded.count,
                bytes = o.bytes + excluded.bytes
            RETURNING principal, count, bytes
    )
    SELECT array_agg(principal), max(count) > (SELECT min(quota) FROM unnest(_quotas) AS quota),
            max(bytes)
        INTO _each, _over, _most FROM counted;
    _over := _over OR exceeds_bytes(_each, _most, _max_bytes);
    IF _over THEN
        PERFORM count_out(_each);
    END IF;

    -- Nearly always all of them are new. To look first would make each half as dear again; only who
    -- makes them under a key is likely to have made them before.
    IF _over OR array_remove(_once_keys, NULL) <> '{}' THEN
        _known := known_tasks(_ids, _principals, _once_keys);
    END IF;
    SELECT array_agg(nextval('task_number')) INTO _numbers
        FROM generate_series(1, cardinality(_ids));
    LOOP
        IF _over THEN
            _refused := over_quota(_principals, _quotas, coalesce(_known, '{}'));
            _too_large := over_bytes(_principals, _bytes, _max_bytes,
                coalesce(_known, '{}') || _refused);
        END IF;
        _skipped := coalesce(_known, '{}') || _refused || _too_large;
        BEGIN
            INSERT INTO task (id, number, principal, kind, origin, listed, request, phase, epoch,
                owner, owner_lock, due, created, updated, ttl, max_ttl, lasts, begun, crashes,
                clean_up, once_key, once_digest, reasked)
            SELECT w.id, w.number, w.principal, w.kind, w.origin, w.listed, w.request,
                (w.worker IS NOT NULL)::integer, (w.worker IS NOT NULL)::integer, w.worker,
                CASE WHEN w.worker IS NOT NULL THEN _lock END, _now + coalesce(w.lease, 0),
                _now, _now, w.ttl, w.max_ttl, w.ttl, w.worker IS NOT NULL, 0,
                w.clean_up, w.once_key, w.once_digest, w.reasked
                FROM unnest(_ids, _numbers, _principals, _kinds, _origins, _listed, _requests,
                    _ttls, _max_ttls, _workers, _leases, _once_keys, _once_digests, _reasked,
                    _clean_ups)
                    WITH ORDINALITY AS w (id, number, principal, kind, origin, listed, request, ttl,
                        max_ttl, worker, lease, once_key, once_digest, reasked, clean_up, place)
                WHERE w.place <> ALL (_skipped);
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            -- Once is enough: nobody else makes tasks for these principals.
            IF _known IS NOT NULL THEN
                RAISE;
            END IF;
            _known := known_tasks(_ids, _principals, _once_keys);
        END;
    END LOOP;
    IF _entry_places IS NOT NULL THEN
        INSERT INTO entry (task, key, answer, body)
            SELECT _numbers[e.place], e.key, e.answer, e.body
            FROM unnest(_entry_places, _entry_keys, _entry_answers, _entry_bodies)
                AS e (place, key, answer, body)
            WHERE e.place <> ALL (_skipped);
    END IF;
    IF _segment_places IS NOT NULL THEN
        INSERT INTO segment (task, number, scope, ordinal, body)
            SELECT _numbers[s.place], s.number, s.scope, s.ordinal, s.body
            FROM unnest(_segment_places, _segment_numbers, _segment_scopes, _segment_ordinals,
                _segment_bodies) AS s (place, number, scope, ordinal, body)
            WHERE s.place <> ALL (_skipped)
            ON CONFLICT DO NOTHING;
    END IF;
    IF _entry_places IS NOT NULL OR _segment_places IS NOT NULL THEN
        INSERT INTO ended_task (principal, tasks, bytes)
            SELECT _principals[b.place], 0, sum(b.bytes) FROM (
                SELECT place, octet_length(key) + octet_length(body) AS bytes
                    FROM unnest(_entry_places, _entry_keys, _entry_bodies) AS e (place, key, body)
                UNION ALL
                SELECT place, octet_length(scope) + octet_length(body) FROM unnest(_segment_places,
                    _segment_scopes, _segment_bodies) AS s (place, scope, body)) AS b
            WHERE b.place <> ALL (_skipped) GROUP BY _principals[b.place];
    END IF;
    RETURN QUERY SELECT 0::bigint, 0, NULL::text, _now;
    IF _skipped = '{}' THEN
        RETURN;
    END IF;

    UPDATE open_tasks o SET count = o.count - w.count, bytes = o.bytes - w.bytes
        FROM (SELECT w.principal, count(*) AS count, sum(w.bytes) AS bytes
            FROM unnest(_principals, _bytes) WITH ORDINALITY AS w (principal, bytes, place)
            WHERE w.place = ANY (_skipped) GROUP BY w.principal) AS w
        WHERE o.principal = w.principal;
    DELETE FROM open_tasks WHERE principal = ANY (_each) AND count = 0 AND bytes = 0;
    RETURN QUERY SELECT w.place,
            CASE WHEN w.place = ANY (_refused) THEN 3
                WHEN w.place = ANY (_too_large) THEN 5
                WHEN o.id IS NOT NULL AND o.once_digest <> w.once_digest THEN 2
                WHEN o.id IS NULL AND t.principal IS DISTINCT FROM w.principal THEN 4
                WHEN w.again AND coalesce(o.id, t.id) = w.id THEN 0
                ELSE 1 END,
            coalesce(o.id, t.id), coalesce(o.created, t.created)
        FROM unnest(_ids, _principals, _once_keys, _once_digests, _again)
            WITH ORDINALITY AS w (id, principal, once_key, once_digest, again, place)
        LEFT JOIN task o ON o.principal = w.principal AND o.once_key = w.once_key
        LEFT JOIN task t ON t.id = w.id
        WHERE w.place = ANY (_skipped);
END $$;

-- Counts tasks that are about to be made: when that is, and whether some principal has too many then.
-- From here on nobody else makes a task for these principals, which stand here once each, in order.
CREATE FUNCTION count_tasks(
    _principals text[], _counts bigint[], _quotas bigint[], _bytes bigint[], _max_bytes bigint[],
    _shift bigint)
RETURNS TABLE (at bigint, is_over boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _most bigint;
    _most_bytes bigint;
BEGIN
    WITH counted AS (
        INSERT INTO open_tasks AS o (principal, count, bytes)
            SELECT * FROM unnest(_principals, _counts, _bytes)
            ON CONFLICT (principal) DO UPDATE SET count = o.count + excluded.count,
                bytes = o.bytes + excluded.bytes
            RETURNING count, bytes
    )
    SELECT max(count), max(bytes) INTO _most, _most_bytes FROM counted;
    -- The time is taken when nobody is waited for any more.
    RETURN QUERY SELECT now_ms(_shift),
        _most > (SELECT min(quota) FROM unnest(_quotas) AS quota)
            OR exceeds_bytes(_principals, _most_bytes, _max_bytes);
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
