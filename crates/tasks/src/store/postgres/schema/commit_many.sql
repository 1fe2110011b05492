-- The most frequent commits of workers, for many tasks at once. The functions lock tasks in the
-- order of the arguments, which is by ID. To avoid deadlocks, a transaction calls only one of them,
-- once.

-- Commits entries, progress and outcomes. Each task occurs once, in the order of the IDs. Returns
-- the positions of lost leases. The result contains 0 if tasks may have been skipped for the byte
-- limit of their principal.
--
-- A recorded step leaves the row of its task unchanged, except for `updated_at` once a second. A
-- new row version would need entries in all indexes, because the page has no space for a version
-- per step.
CREATE FUNCTION commit_tasks(
    _ids text[], _workers text[], _epochs bigint[], _messages text[], _progress text[],
    _outcomes text[], _outcome_kinds smallint[], _retentions bigint[],
    _entry_places bigint[], _entry_keys text[], _entry_is_input boolean[], _entry_bodies text[],
    _entry_durations bigint[],
    _charged text[], _bytes bigint[], _max_bytes bigint[],
    _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _full text[] := principals_without_bytes(_charged, _bytes, _max_bytes);
    _held bigint[];
    _lost bigint[] := '{}';
    _numbers bigint[];
    _changed bigint[];
    _ended bigint[];
    _principals text[];
    _recorded bigint;
    _is_indexed boolean;
    _notifies boolean;
    _asked bigint[];
    _asked_keys text[];
BEGIN
    WITH held AS (
        SELECT w.place, t.number, t.principal, t.indexed, t.notify, w.outcome IS NOT NULL AS ends,
            w.outcome IS NOT NULL OR w.status_message IS NOT NULL OR w.progress IS NOT NULL
                OR t.crash_count > 0 OR t.updated_at <= _now - 1000 AS changes
            FROM unnest(_ids, _workers, _epochs, _messages, _progress, _outcomes)
                WITH ORDINALITY AS w (id, worker, epoch, status_message, progress, outcome, place)
            -- IS NOT DISTINCT FROM, so that the planner finds the task by its ID and not by its
            -- worker, which has many.
            JOIN task t ON t.id = w.id AND t.worker_id IS NOT DISTINCT FROM w.worker
                AND t.epoch = w.epoch AND t.phase = 1
            WHERE _full IS NULL OR t.principal <> ALL (_full)
            FOR NO KEY UPDATE OF t
    )
    SELECT array_agg(place ORDER BY place), array_agg(number ORDER BY place),
            array_agg(place) FILTER (WHERE changes),
            array_agg(number) FILTER (WHERE ends), array_agg(principal ORDER BY place),
            bool_or(indexed), bool_or(ends AND notify IS NOT NULL)
        INTO _held, _numbers, _changed, _ended, _principals, _is_indexed, _notifies FROM held;
    IF cardinality(_held) IS DISTINCT FROM cardinality(_ids) THEN
        SELECT array_agg(place) FILTER (WHERE number IS NULL), array_agg(number ORDER BY place),
                array_agg(principal ORDER BY place)
            INTO _lost, _numbers, _principals
            FROM (SELECT place, _numbers[array_position(_held, place)] AS number,
                    _principals[array_position(_held, place)] AS principal
                FROM generate_series(1::bigint, cardinality(_ids)) AS place) AS each;
    END IF;
    IF _entry_places IS NOT NULL THEN
        -- A server with a console indexes all its tasks, so one flag serves all of them.
        INSERT INTO journal_entry (task, key, is_input, body, recorded_at, duration)
            SELECT _numbers[e.place], e.key, e.is_input, e.body, CASE WHEN _is_indexed THEN _now END,
                e.duration
            FROM unnest(_entry_places, _entry_keys, _entry_is_input, _entry_bodies, _entry_durations)
                AS e (place, key, is_input, body, duration)
            WHERE e.place <> ALL (_lost)
            ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS _recorded = ROW_COUNT;
    END IF;
    IF _recorded > 0 THEN
        -- Existing entries were not inserted and do not count. The check runs only if there are
        -- any.
        INSERT INTO quota_release (principal, tasks, bytes)
            SELECT _principals[e.place], 0, sum(octet_length(e.key) + octet_length(e.body))
            FROM unnest(_entry_places, _entry_keys, _entry_bodies) AS e (place, key, body)
            WHERE e.place <> ALL (_lost) AND (_recorded = cardinality(_entry_places)
                OR EXISTS (SELECT FROM journal_entry k WHERE k.task = _numbers[e.place] AND k.key = e.key
                    AND k.xmin = pg_current_xact_id()::xid))
            GROUP BY _principals[e.place];
    END IF;
    IF _ended IS NOT NULL THEN
        INSERT INTO quota_release (principal, tasks, bytes)
            SELECT _principals[w.place], count(*), sum(octet_length(w.outcome))
            FROM unnest(_outcomes) WITH ORDINALITY AS w (outcome, place)
            WHERE w.outcome IS NOT NULL AND w.place <> ALL (_lost) GROUP BY _principals[w.place];
        WITH withdrawn AS (
            UPDATE input_request SET state = 2, settled_at = _now
                WHERE task = ANY (_ended) AND state = 0 RETURNING task, wire_key
        )
        SELECT array_agg(task), array_agg(wire_key) INTO _asked, _asked_keys FROM withdrawn;
        IF _asked IS NOT NULL THEN
            PERFORM settle_inputs(_asked, ARRAY(SELECT _ids[array_position(_numbers, a.task)]
                FROM unnest(_asked) WITH ORDINALITY AS a (task, place) ORDER BY a.place),
                _asked_keys, _now);
        END IF;
    END IF;
    IF _changed IS NOT NULL THEN
        UPDATE task t SET updated_at = greatest(_now, t.updated_at + 1),
            status_message = coalesce(w.status_message, t.status_message), progress = coalesce(w.progress, t.progress),
            crash_count = CASE WHEN w.place = ANY (_entry_places) THEN 0 ELSE t.crash_count END,
            outcome = w.outcome, outcome_kind = w.outcome_kind,
            phase = CASE WHEN w.outcome IS NULL THEN 1 ELSE 3 END,
            worker_id = CASE WHEN w.outcome IS NULL THEN t.worker_id END,
            worker_lock = CASE WHEN w.outcome IS NULL THEN t.worker_lock END,
            due_at = CASE WHEN w.outcome IS NULL THEN t.due_at END,
            effective_ttl = CASE WHEN w.outcome IS NULL OR t.effective_ttl IS NULL THEN t.effective_ttl
                ELSE greatest(_now + w.retention - t.created_at, CASE WHEN t.number = ANY (_asked)
                    THEN effective_ttl(t, 1, 0, _now) ELSE t.effective_ttl END) END
            FROM unnest(_ids, _messages, _progress, _outcomes, _outcome_kinds, _retentions)
                WITH ORDINALITY AS w (id, status_message, progress, outcome, outcome_kind, retention, place)
            WHERE t.id = w.id AND w.place = ANY (_changed);
    END IF;
    IF _notifies THEN
        PERFORM notify_tasks(ARRAY(SELECT _ids[w.place]
            FROM unnest(_outcomes) WITH ORDINALITY AS w (outcome, place)
            WHERE w.outcome IS NOT NULL AND w.place <> ALL (_lost)), 'task.ended', _now);
    END IF;
    IF _full IS NOT NULL THEN
        RETURN _lost || 0::bigint;
    END IF;
    RETURN _lost;
END $$;

-- Returns the positions of the committed rows; NULL if all rows were committed. The result contains
-- 0 if a principal may be at its byte limit.
CREATE FUNCTION committed_places(_written bigint[], _count integer, _has_full boolean)
RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN cardinality(_written) = _count THEN NULL
        WHEN _has_full THEN coalesce(_written, '{}') || 0::bigint
        ELSE coalesce(_written, '{}') END
$$;

-- Records entries, one row each. `commit_tasks` explains the update of the task's row. Fails if an
-- entry exists; the caller then commits one by one.
CREATE FUNCTION record_steps(
    _worker text, _ids text[], _epochs bigint[], _keys text[], _is_input boolean[], _bodies text[],
    _durations bigint[],
    _charged text[], _bytes bigint[], _max_bytes bigint[],
    _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _full text[] := principals_without_bytes(_charged, _bytes, _max_bytes);
    _written bigint[];
    _changes boolean;
BEGIN
    WITH held AS (
        SELECT w.place, w.key, w.is_input, w.body, w.duration, t.number, t.principal,
            CASE WHEN t.indexed THEN _now END AS recorded_at,
            t.crash_count > 0 OR t.updated_at <= _now - 1000 AS changes
            FROM unnest(_ids, _epochs, _keys, _is_input, _bodies, _durations) WITH ORDINALITY
                AS w (id, epoch, key, is_input, body, duration, place)
            -- IS NOT DISTINCT FROM, so that the planner finds the task by its ID and not by its
            -- worker, which has many.
            JOIN task t ON t.id = w.id AND t.worker_id IS NOT DISTINCT FROM _worker
                AND t.epoch = w.epoch AND t.phase = 1
            WHERE _full IS NULL OR t.principal <> ALL (_full)
            FOR NO KEY UPDATE OF t
    ), recorded AS (
        INSERT INTO journal_entry (task, key, is_input, body, recorded_at, duration)
            SELECT number, key, is_input, body, recorded_at, duration FROM held
    ), counted AS (
        INSERT INTO quota_release (principal, tasks, bytes)
            SELECT principal, 0, sum(octet_length(key) + octet_length(body)) FROM held
            GROUP BY principal
    )
    SELECT array_agg(place), bool_or(changes) INTO _written, _changes FROM held;
    IF _changes THEN
        UPDATE task t SET updated_at = greatest(_now, t.updated_at + 1), crash_count = 0
            FROM unnest(_ids, _epochs) AS w (id, epoch)
            WHERE t.id = w.id AND t.worker_id IS NOT DISTINCT FROM _worker AND t.epoch = w.epoch
                AND t.phase = 1 AND (t.crash_count > 0 OR t.updated_at <= _now - 1000);
    END IF;
    RETURN committed_places(_written, cardinality(_ids), _full IS NOT NULL);
END $$;

-- Ends tasks that have no other changes, one row each.
CREATE FUNCTION end_tasks(
    _worker text, _ids text[], _epochs bigint[], _outcomes text[], _outcome_kinds smallint[],
    _retentions bigint[], _charged text[], _bytes bigint[], _max_bytes bigint[], _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _full text[] := principals_without_bytes(_charged, _bytes, _max_bytes);
    _written bigint[];
    _numbers bigint[];
    _notified text[];
    _asked bigint[];
    _asked_keys text[];
BEGIN
    WITH ended AS (
        UPDATE task t SET updated_at = greatest(_now, t.updated_at + 1), outcome = w.outcome,
            outcome_kind = w.outcome_kind, phase = 3,
            worker_id = NULL, worker_lock = NULL, due_at = NULL,
            effective_ttl = CASE WHEN t.effective_ttl IS NOT NULL
                THEN greatest(_now + w.retention - t.created_at, t.effective_ttl) END
            FROM unnest(_ids, _epochs, _outcomes, _outcome_kinds, _retentions) WITH ORDINALITY
                AS w (id, epoch, outcome, outcome_kind, retention, place)
            WHERE t.id = w.id AND t.worker_id IS NOT DISTINCT FROM _worker AND t.epoch = w.epoch
                AND t.phase = 1 AND (_full IS NULL OR t.principal <> ALL (_full))
            RETURNING w.place, t.number, t.principal, octet_length(w.outcome) AS bytes,
                CASE WHEN t.notify IS NOT NULL THEN t.id END AS notified
    ), counted AS (
        INSERT INTO quota_release (principal, tasks, bytes)
            SELECT principal, count(*), sum(bytes) FROM ended GROUP BY principal
    )
    SELECT array_agg(place), array_agg(number), array_agg(notified) FILTER (WHERE notified IS NOT NULL)
        INTO _written, _numbers, _notified FROM ended;
    -- Rarely finds a row, because few tasks end with an open input request.
    WITH withdrawn AS (
        UPDATE input_request SET state = 2, settled_at = _now
            WHERE task = ANY (_numbers) AND state = 0 RETURNING task, wire_key
    )
    SELECT array_agg(task), array_agg(wire_key) INTO _asked, _asked_keys FROM withdrawn;
    IF _asked IS NOT NULL THEN
        PERFORM settle_inputs(_asked, ARRAY(SELECT _ids[_written[array_position(_numbers, a.task)]]
            FROM unnest(_asked) WITH ORDINALITY AS a (task, place) ORDER BY a.place),
            _asked_keys, _now);
        UPDATE task t SET effective_ttl =
                greatest(_now + w.retention - t.created_at, effective_ttl(t, 1, 0, _now))
            FROM unnest(_ids, _retentions) AS w (id, retention)
            WHERE t.id = w.id AND t.number = ANY (_asked) AND t.effective_ttl IS NOT NULL;
    END IF;
    IF _notified IS NOT NULL THEN
        PERFORM notify_tasks(_notified, 'task.ended', _now);
    END IF;
    RETURN committed_places(_written, cardinality(_ids), _full IS NOT NULL);
END $$;
