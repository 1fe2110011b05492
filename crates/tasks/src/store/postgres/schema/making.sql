-- New tasks are counted by those who make them. A trigger would have to keep all of them, requests
-- included, to count them.
DROP TRIGGER IF EXISTS count_new ON task;

DROP FUNCTION IF EXISTS create_tasks, count_tasks;

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
    INSERT INTO phase_change (queued, running, bytes)
        SELECT count(*) FILTER (WHERE w.worker IS NULL), count(w.worker), sum(w.bytes)
        FROM unnest(_workers, _bytes) WITH ORDINALITY AS w (worker, bytes, place)
        WHERE w.place <> ALL (_skipped) HAVING count(*) > 0;
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
    _running bigint,           -- how many of all have a worker
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
    INSERT INTO phase_change (queued, running, bytes)
        SELECT sum(w.count) - _running, _running, sum(w.bytes)
        FROM unnest(_counts, _bytes) AS w (count, bytes);
    -- The time is taken when nobody is waited for any more.
    RETURN QUERY SELECT now_ms(_shift),
        _most > (SELECT min(quota) FROM unnest(_quotas) AS quota)
            OR exceeds_bytes(_principals, _most_bytes, _max_bytes);
END $$;
