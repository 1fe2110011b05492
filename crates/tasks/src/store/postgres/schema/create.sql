-- Creation of tasks. The functions count the new tasks by phase themselves, because a trigger would
-- have to materialize all new rows, including their requests.

-- Returns the positions of tasks that already exist.
CREATE FUNCTION known_tasks(_ids text[], _principals text[], _idempotency_keys text[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT coalesce(array_agg(w.place), '{}')
        FROM unnest(_ids, _principals, _idempotency_keys)
            WITH ORDINALITY AS w (id, principal, idempotency_key, place)
        WHERE (SELECT true FROM task t WHERE t.id = w.id)
        OR (w.idempotency_key IS NOT NULL AND (SELECT true FROM task t
            WHERE t.principal = w.principal AND t.idempotency_key = w.idempotency_key)));
END $$;

-- Creates tasks. Returns the time, then the tasks that were not created, with a code. 0: an earlier
-- attempt of the same caller created the task. 1: the task exists under this key. 2: the key
-- belongs to another request. 3: over quota. 4: the ID belongs to another principal. 5: over the
-- byte limit.
CREATE FUNCTION create_tasks(
    _ids text[], _principals text[], _tools text[], _origins text[], _listed boolean[],
    _requests text[],
    _ttls bigint[], _max_ttls bigint[], _workers text[], _leases bigint[],
    _idempotency_keys text[], _fingerprints text[], _quotas bigint[], _bytes bigint[], _max_bytes bigint[],
    _reissue_counts text[], _again boolean[],
    _clean_ups boolean[],
    -- NULL if no task has such a value.
    _persons text[], _indexed boolean[], _reruns text[], _notify text[], _messages text[],
    _end_audits text[],
    _entry_places bigint[], _entry_keys text[], _entry_is_input boolean[], _entry_bodies text[],
    _segment_places bigint[], _segment_numbers bigint[], _segment_scopes text[],
    _segment_ordinals bigint[], _segment_bodies text[],
    _call_places bigint[], _call_scopes text[], _call_fingerprints text[], _call_workers text[],
    _call_abandon_afters bigint[],
    _inputs text,              -- input requests by position of their task, as JSON
    _tag_places bigint[], _tags text[],
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
    _asked record;
BEGIN
    -- The row locks prevent other transactions from creating tasks for these principals. Released
    -- quota is added only if a limit is reached; otherwise a sweep adds it.
    WITH wanted AS (
        SELECT w.principal, count(*) AS count, sum(w.bytes) AS bytes
            FROM unnest(_principals, _bytes) AS w (principal, bytes)
            GROUP BY w.principal ORDER BY w.principal COLLATE "C"
    ), counted AS (
        INSERT INTO principal_quota AS o (principal, count, bytes)
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
        PERFORM release_quota(_each);
    END IF;

    -- Nearly all tasks are new, and a lookup would cost half as much as the insert. Only tasks with
    -- an idempotency key are likely to exist.
    IF _over OR array_remove(_idempotency_keys, NULL) <> '{}' THEN
        _known := known_tasks(_ids, _principals, _idempotency_keys);
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
            INSERT INTO task (id, number, principal, tool, origin, listed, request, phase, epoch,
                worker_id, worker_lock, due_at, created_at, updated_at, ttl, max_ttl, effective_ttl, started, crash_count,
                has_cleanup, idempotency_key, idempotency_fingerprint, reissue_counts, acknowledged_at,
                person, indexed, rerun_of, notify, status_message, end_audit)
            SELECT w.id, w.number, w.principal, w.tool, w.origin, w.listed, w.request,
                (w.worker IS NOT NULL)::integer, (w.worker IS NOT NULL)::integer, w.worker,
                CASE WHEN w.worker IS NOT NULL THEN _lock END, _now + coalesce(w.lease, 0),
                _now, _now, w.ttl, w.max_ttl, w.ttl, w.worker IS NOT NULL, 0,
                w.has_cleanup, w.idempotency_key, w.idempotency_fingerprint, w.reissue_counts,
                CASE WHEN _call_places IS NULL OR w.place <> ALL (_call_places) THEN _now END,
                w.person, coalesce(w.indexed, false), w.rerun_of, w.notify, w.status_message,
                w.end_audit
                FROM unnest(_ids, _numbers, _principals, _tools, _origins, _listed, _requests,
                    _ttls, _max_ttls, _workers, _leases, _idempotency_keys, _fingerprints, _reissue_counts,
                    _clean_ups, _persons, _indexed, _reruns, _notify, _messages, _end_audits)
                    WITH ORDINALITY AS w (id, number, principal, tool, origin, listed, request, ttl,
                        max_ttl, worker, lease, idempotency_key, idempotency_fingerprint, reissue_counts, has_cleanup,
                        person, indexed, rerun_of, notify, status_message, end_audit, place)
                WHERE w.place <> ALL (_skipped);
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            -- One retry suffices, because no other transaction creates tasks for these principals.
            IF _known IS NOT NULL THEN
                RAISE;
            END IF;
            _known := known_tasks(_ids, _principals, _idempotency_keys);
        END;
    END LOOP;
    IF _entry_places IS NOT NULL THEN
        INSERT INTO journal_entry (task, key, is_input, body, recorded_at)
            SELECT _numbers[e.place], e.key, e.is_input, e.body,
                CASE WHEN _indexed[e.place] THEN _now END
            FROM unnest(_entry_places, _entry_keys, _entry_is_input, _entry_bodies)
                AS e (place, key, is_input, body)
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
    IF _call_places IS NOT NULL THEN
        INSERT INTO bridged_call (task, id, principal, scope, fingerprint, created_at, attended_by,
            attended_lock, attendants, joinable_at, abandon_after, pending_results)
            SELECT _numbers[c.place], _ids[c.place], _principals[c.place], c.scope, c.fingerprint,
                _now, c.worker, _lock, 1, 0, c.abandon_after, 0
            FROM unnest(_call_places, _call_scopes, _call_fingerprints, _call_workers,
                _call_abandon_afters) AS c (place, scope, fingerprint, worker, abandon_after)
            WHERE c.place <> ALL (_skipped);
    END IF;
    IF _tag_places IS NOT NULL THEN
        INSERT INTO tag (task, tag, created_at, id)
            SELECT _numbers[g.place], g.tag, _now, _ids[g.place]
            FROM unnest(_tag_places, _tags) AS g (place, tag) WHERE g.place <> ALL (_skipped);
    END IF;
    IF _entry_places IS NOT NULL OR _segment_places IS NOT NULL THEN
        INSERT INTO quota_release (principal, tasks, bytes)
            SELECT _principals[b.place], 0, sum(b.bytes) FROM (
                SELECT place, octet_length(key) + octet_length(body) AS bytes
                    FROM unnest(_entry_places, _entry_keys, _entry_bodies) AS e (place, key, body)
                UNION ALL
                SELECT place, octet_length(scope) + octet_length(body) FROM unnest(_segment_places,
                    _segment_scopes, _segment_bodies) AS s (place, scope, body)) AS b
            WHERE b.place <> ALL (_skipped) GROUP BY _principals[b.place];
    END IF;
    INSERT INTO phase_change (queued, running, bytes)
        SELECT count(*) FILTER (WHERE w.worker IS NULL), count(w.worker), sum(w.bytes)
        FROM unnest(_workers, _bytes) WITH ORDINALITY AS w (worker, bytes, place)
        WHERE w.place <> ALL (_skipped) HAVING count(*) > 0;
    IF _inputs IS NOT NULL THEN
        FOR _asked IN SELECT a.place, a.inputs
            FROM json_to_recordset(_inputs::json) AS a (place bigint, inputs text)
            WHERE a.place <> ALL (_skipped)
        LOOP
            PERFORM open_created_inputs(t, _asked.inputs, _now) FROM task t
                WHERE t.id = _ids[_asked.place];
        END LOOP;
    END IF;
    RETURN QUERY SELECT 0::bigint, 0, NULL::text, _now;
    IF _skipped = '{}' THEN
        RETURN;
    END IF;

    UPDATE principal_quota o SET count = o.count - w.count, bytes = o.bytes - w.bytes
        FROM (SELECT w.principal, count(*) AS count, sum(w.bytes) AS bytes
            FROM unnest(_principals, _bytes) WITH ORDINALITY AS w (principal, bytes, place)
            WHERE w.place = ANY (_skipped) GROUP BY w.principal) AS w
        WHERE o.principal = w.principal;
    DELETE FROM principal_quota WHERE principal = ANY (_each) AND count = 0 AND bytes = 0;
    RETURN QUERY SELECT w.place,
            CASE WHEN w.place = ANY (_refused) THEN 3
                WHEN w.place = ANY (_too_large) THEN 5
                WHEN o.id IS NOT NULL AND o.idempotency_fingerprint <> w.idempotency_fingerprint THEN 2
                WHEN o.id IS NULL AND t.principal IS DISTINCT FROM w.principal THEN 4
                WHEN w.again AND coalesce(o.id, t.id) = w.id THEN 0
                ELSE 1 END,
            coalesce(o.id, t.id), coalesce(o.created_at, t.created_at)
        FROM unnest(_ids, _principals, _idempotency_keys, _fingerprints, _again)
            WITH ORDINALITY AS w (id, principal, idempotency_key, idempotency_fingerprint, again, place)
        LEFT JOIN task o ON o.principal = w.principal AND o.idempotency_key = w.idempotency_key
        LEFT JOIN task t ON t.id = w.id
        WHERE w.place = ANY (_skipped);
END $$;

-- Counts tasks before they are copied into the table. Returns the time, and whether a principal
-- exceeds a limit. Until the end of the transaction, no other transaction creates tasks for these
-- principals. Each principal occurs once, in order.
CREATE FUNCTION count_tasks(
    _principals text[], _counts bigint[], _quotas bigint[], _bytes bigint[], _max_bytes bigint[],
    _running bigint,           -- number of tasks that have a worker
    _shift bigint)
RETURNS TABLE (at bigint, is_over boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _most bigint;
    _most_bytes bigint;
BEGIN
    WITH counted AS (
        INSERT INTO principal_quota AS o (principal, count, bytes)
            SELECT * FROM unnest(_principals, _counts, _bytes)
            ON CONFLICT (principal) DO UPDATE SET count = o.count + excluded.count,
                bytes = o.bytes + excluded.bytes
            RETURNING count, bytes
    )
    SELECT max(count), max(bytes) INTO _most, _most_bytes FROM counted;
    INSERT INTO phase_change (queued, running, bytes)
        SELECT sum(w.count) - _running, _running, sum(w.bytes)
        FROM unnest(_counts, _bytes) AS w (count, bytes);
    -- The time is read after all locks are acquired.
    RETURN QUERY SELECT now_ms(_shift),
        _most > (SELECT min(quota) FROM unnest(_quotas) AS quota)
            OR exceeds_bytes(_principals, _most_bytes, _max_bytes);
END $$;
