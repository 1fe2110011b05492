-- What is done to a task, each in one call, so that it takes one way to the database and back.
--
-- Whoever changes a task locks its row first; each statement of a function then sees everything that
-- was committed before. Locks are taken in one order: counts of principals, by principal; then tasks,
-- by name. So nobody waits in a circle. All but the simplest are in PL/pgSQL, because it keeps its
-- plans from call to call.

CREATE FUNCTION now_ms(_shift bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + _shift
$$;

-- Counts out what has ended. The counts must be locked.
CREATE FUNCTION count_out(_principals text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM ended_task WHERE principal = ANY (_principals) RETURNING principal
    ), ended AS (
        SELECT principal, count(*) AS count FROM gone GROUP BY principal
    )
    UPDATE open_tasks o SET count = greatest(o.count - ended.count, 0)
        FROM ended WHERE o.principal = ended.principal;
END $$;

-- Which of these are too many, if those that are known need no room.
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
            JOIN open_tasks o ON o.principal = n.principal
            WHERE o.count - n.counted + n.nth > n.quota);
END $$;

-- Which of these are there already.
CREATE FUNCTION known_tasks(_ids text[], _principals text[], _once_keys text[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT coalesce(array_agg(w.place), '{}')
        FROM unnest(_ids, _principals, _once_keys)
            WITH ORDINALITY AS w (id, principal, once_key, place)
        WHERE (SELECT true FROM task t WHERE t.id = w.id)
        OR (w.once_key IS NOT NULL AND (SELECT true FROM task t
            WHERE t.principal = w.principal AND t.once_key = w.once_key)));
END $$;

-- Makes tasks. What it returns is when, and then those that were not made: 0 it was, by a first attempt
-- of the same caller, 1 made before, 2 the key is used for something else, 3 over quota, 4 the name is
-- taken.
CREATE FUNCTION create_tasks(
    _ids text[], _principals text[], _kinds text[], _origins text[], _listed boolean[],
    _requests text[],
    _ttls bigint[], _max_ttls bigint[], _workers text[], _leases bigint[],
    _once_keys text[], _once_digests text[], _quotas bigint[], _reasked text[], _again boolean[],
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
    _skipped bigint[];
    _numbers bigint[];
BEGIN
    -- From here on nobody else makes a task for these principals. What has ended is counted out when
    -- it stands in the way, and else by the sweeper.
    WITH wanted AS (
        SELECT w.principal, count(*) AS count FROM unnest(_principals) AS w (principal)
            GROUP BY w.principal ORDER BY w.principal COLLATE "C"
    ), counted AS (
        INSERT INTO open_tasks AS o (principal, count) SELECT principal, count FROM wanted
            ON CONFLICT (principal) DO UPDATE SET count = o.count + excluded.count
            RETURNING principal, count
    )
    SELECT array_agg(principal), max(count) > (SELECT min(quota) FROM unnest(_quotas) AS quota)
        INTO _each, _over FROM counted;
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
        END IF;
        _skipped := coalesce(_known, '{}') || _refused;
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
    RETURN QUERY SELECT 0::bigint, 0, NULL::text, _now;
    IF _skipped = '{}' THEN
        RETURN;
    END IF;

    UPDATE open_tasks o SET count = o.count - w.count
        FROM (SELECT w.principal, count(*) AS count
            FROM unnest(_principals) WITH ORDINALITY AS w (principal, place)
            WHERE w.place = ANY (_skipped) GROUP BY w.principal) AS w
        WHERE o.principal = w.principal;
    DELETE FROM open_tasks WHERE principal = ANY (_each) AND count = 0;
    RETURN QUERY SELECT w.place,
            CASE WHEN w.place = ANY (_refused) THEN 3
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

-- What a task's ttl is when this many questions were open, and this many are now.
CREATE FUNCTION lasting(_task task, _before bigint, _after bigint, _now bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN _task.ttl IS NULL THEN NULL
        WHEN _before = 0 AND _after > 0 THEN greatest(_task.ttl, _task.max_ttl)
        WHEN _before > 0 AND _after = 0 THEN
            least(_now - _task.created + _task.ttl, greatest(_task.ttl, _task.max_ttl))
        ELSE _task.lasts END
$$;

CREATE FUNCTION count_open(_number bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM question WHERE task = _number AND state = 0);
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
    UPDATE task SET phase = 3, outcome = _outcome, owner = NULL, owner_lock = NULL,
        due = _task.due, crashes = _task.crashes, lasts = _lasts, message = _task.message,
        progress = _task.progress, cancel_requested = _task.cancel_requested,
        updated = greatest(_now, _task.updated + 1)
        WHERE id = _task.id;
    INSERT INTO ended_task (principal) VALUES (_task.principal);
END $$;

-- What workers write most often, to many tasks at once: entries, how far they are, their end. Each
-- task stands here once, in the order of their names. Returns the places of those that were lost.
--
-- A step that is recorded leaves the task's own row as it is, but once a second, when the time of its
-- last change is: a new version of the row would have to be put into all indexes, because there is no
-- room on the page for as many versions as a task has steps.
CREATE FUNCTION write_tasks(
    _ids text[], _workers text[], _epochs bigint[], _messages text[], _progress text[],
    _outcomes text[], _retentions bigint[],
    _entry_places bigint[], _entry_keys text[], _entry_answers boolean[], _entry_bodies text[],
    _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _held bigint[];
    _lost bigint[] := '{}';
    _numbers bigint[];
    _changed bigint[];
    _ended bigint[];
    _principals text[];
    _asked bigint[];
BEGIN
    WITH held AS (
        SELECT w.place, t.number, t.principal, w.outcome IS NOT NULL AS ends,
            w.outcome IS NOT NULL OR w.message IS NOT NULL OR w.progress IS NOT NULL
                OR t.crashes > 0 OR t.updated <= _now - 1000 AS changes
            FROM unnest(_ids, _workers, _epochs, _messages, _progress, _outcomes)
                WITH ORDINALITY AS w (id, worker, epoch, message, progress, outcome, place)
            -- Written so that it is found by its name, and not by its owner, who has many.
            JOIN task t ON t.id = w.id AND t.owner IS NOT DISTINCT FROM w.worker
                AND t.epoch = w.epoch AND t.phase = 1
            FOR NO KEY UPDATE OF t
    )
    SELECT array_agg(place ORDER BY place), array_agg(number ORDER BY place),
            array_agg(place) FILTER (WHERE changes),
            array_agg(number) FILTER (WHERE ends), array_agg(principal) FILTER (WHERE ends)
        INTO _held, _numbers, _changed, _ended, _principals FROM held;
    IF cardinality(_held) IS DISTINCT FROM cardinality(_ids) THEN
        SELECT array_agg(place) FILTER (WHERE number IS NULL), array_agg(number ORDER BY place)
            INTO _lost, _numbers
            FROM (SELECT place, _numbers[array_position(_held, place)] AS number
                FROM generate_series(1::bigint, cardinality(_ids)) AS place) AS each;
    END IF;
    IF _entry_places IS NOT NULL THEN
        INSERT INTO entry (task, key, answer, body)
            SELECT _numbers[e.place], e.key, e.answer, e.body
            FROM unnest(_entry_places, _entry_keys, _entry_answers, _entry_bodies)
                AS e (place, key, answer, body)
            WHERE e.place <> ALL (_lost)
            ON CONFLICT DO NOTHING;
    END IF;
    IF _ended IS NOT NULL THEN
        INSERT INTO ended_task (principal) SELECT unnest(_principals);
        WITH withdrawn AS (
            UPDATE question SET state = 2 WHERE task = ANY (_ended) AND state = 0 RETURNING task
        )
        SELECT array_agg(task) INTO _asked FROM withdrawn;
    END IF;
    IF _changed IS NOT NULL THEN
        UPDATE task t SET updated = greatest(_now, t.updated + 1),
            message = coalesce(w.message, t.message), progress = coalesce(w.progress, t.progress),
            crashes = CASE WHEN w.place = ANY (_entry_places) THEN 0 ELSE t.crashes END,
            outcome = w.outcome,
            phase = CASE WHEN w.outcome IS NULL THEN 1 ELSE 3 END,
            owner = CASE WHEN w.outcome IS NULL THEN t.owner END,
            owner_lock = CASE WHEN w.outcome IS NULL THEN t.owner_lock END,
            due = CASE WHEN w.outcome IS NULL THEN t.due END,
            lasts = CASE WHEN w.outcome IS NULL OR t.lasts IS NULL THEN t.lasts
                ELSE greatest(_now + w.retention - t.created, CASE WHEN t.number = ANY (_asked)
                    THEN lasting(t, 1, 0, _now) ELSE t.lasts END) END
            FROM unnest(_ids, _messages, _progress, _outcomes, _retentions)
                WITH ORDINALITY AS w (id, message, progress, outcome, retention, place)
            WHERE t.id = w.id AND w.place = ANY (_changed);
    END IF;
    RETURN _lost;
END $$;

-- All that a worker can write: false if it has lost the task. What there is nothing of is NULL.
CREATE FUNCTION write_task(
    _id text, _worker text, _epoch bigint, _message text, _progress text, _forgotten text[],
    _keys text[], _answers boolean[], _bodies text[],
    _scopes text[], _ordinals bigint[], _blocks text[],
    _asked_names text[], _asked_keys text[], _asked_dues bigint[], _asked_bodies text[],
    _withdrawn text[],
    _then integer, -- 0 goes on, 1 parks, 2 ends, 3 ends before its work did
    _due bigint, _seen bigint, _outcome text, _retention bigint, _shift bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _task task;
    _before bigint;
    _after bigint;
    _last bigint;
BEGIN
    SELECT * INTO _task FROM task
        WHERE id = _id AND epoch = _epoch AND owner = _worker AND phase = 1 FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    _task.message := coalesce(_message, _task.message);
    _task.progress := coalesce(_progress, _task.progress);
    IF _forgotten IS NOT NULL THEN
        DELETE FROM entry WHERE task = _task.number AND key = ANY (_forgotten);
    END IF;
    IF _keys IS NOT NULL THEN
        INSERT INTO entry (task, key, answer, body)
            SELECT _task.number, e.key, e.answer, e.body
            FROM unnest(_keys, _answers, _bodies) AS e (key, answer, body)
            ON CONFLICT DO NOTHING;
        IF FOUND THEN
            _task.crashes := 0;
        END IF;
    END IF;
    IF _scopes IS NOT NULL THEN
        SELECT coalesce(max(number), 0) INTO _last FROM segment WHERE task = _task.number;
        INSERT INTO segment (task, number, scope, ordinal, body)
            SELECT _task.number, _last + row_number() OVER (ORDER BY s.place),
                s.scope, s.ordinal, s.body
            FROM unnest(_scopes, _ordinals, _blocks)
                WITH ORDINALITY AS s (scope, ordinal, body, place)
            WHERE NOT EXISTS (SELECT FROM segment k WHERE k.task = _task.number
                AND k.scope = s.scope AND k.ordinal = s.ordinal)
            ON CONFLICT DO NOTHING;
    END IF;
    IF _asked_names IS NOT NULL OR _withdrawn IS NOT NULL THEN
        _before := count_open(_task.number);
        IF _asked_names IS NOT NULL THEN
            SELECT coalesce(max(place), 0) INTO _last FROM question WHERE task = _task.number;
            INSERT INTO question AS q (task, name, key, place, state, due, body)
                SELECT _task.number, a.name, a.key, _last + a.place, 0, a.due, a.body
                FROM unnest(_asked_names, _asked_keys, _asked_dues, _asked_bodies)
                    WITH ORDINALITY AS a (name, key, due, body, place)
                ON CONFLICT (task, name) DO UPDATE SET key = excluded.key,
                    place = excluded.place, state = 0, due = excluded.due, body = excluded.body
                WHERE q.state = 2;
        END IF;
        IF _withdrawn IS NOT NULL THEN
            UPDATE question SET state = 2
                WHERE task = _task.number AND name = ANY (_withdrawn) AND state = 0;
        END IF;
        _after := count_open(_task.number);
        _task.lasts := lasting(_task, _before, _after, _now);
    END IF;
    IF _then >= 2 THEN
        _task.owner := NULL;
        PERFORM finish(_task, _outcome, _then = 3, _retention, _now);
        RETURN true;
    END IF;
    IF _then = 1 THEN
        _task.owner := NULL;
        _task.owner_lock := NULL;
        -- Nobody would look at what came while the worker was on its way here.
        IF _task.cancel_requested IS NOT NULL
            OR (SELECT count(*) FROM entry WHERE task = _task.number AND answer) > _seen THEN
            _task.phase := 0;
            _task.due := _now;
        ELSE
            _task.phase := 2;
            _task.due := _due;
        END IF;
    END IF;
    UPDATE task SET updated = greatest(_now, _task.updated + 1), message = _task.message,
        progress = _task.progress, crashes = _task.crashes, lasts = _task.lasts,
        phase = _task.phase, due = _task.due, owner = _task.owner, owner_lock = _task.owner_lock
        WHERE id = _id;
    RETURN true;
END $$;

-- Takes answers: how many, or NULL if there is no such task for this principal.
CREATE FUNCTION answer_task(
    _principal text, _id text, _outside boolean, _names text[], _bodies text[], _shift bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _task task;
    _before bigint;
    _taken bigint;
    _lasts bigint;
BEGIN
    SELECT * INTO _task FROM task WHERE id = _id AND principal = _principal FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF _task.phase = 3 THEN
        RETURN 0;
    END IF;
    _before := count_open(_task.number);
    WITH given AS (
        SELECT DISTINCT ON (a.name) a.name, a.body
            FROM unnest(_names, _bodies) WITH ORDINALITY AS a (name, body, place)
            ORDER BY a.name, a.place
    ), answered AS (
        UPDATE question q SET state = 1 FROM given
            WHERE q.task = _task.number AND q.name = given.name AND q.state = 0
            AND (q.body IS NULL) = _outside
            RETURNING q.key, given.body
    ), recorded AS (
        INSERT INTO entry (task, key, answer, body)
            SELECT _task.number, key, true, body FROM answered ON CONFLICT DO NOTHING
    )
    SELECT count(*) INTO _taken FROM answered;
    IF _taken > 0 THEN
        _lasts := lasting(_task, _before, _before - _taken, _now);
        -- Nobody has a parked task: it waits for a worker from now on.
        UPDATE task SET updated = greatest(_now, updated + 1),
            due = CASE phase WHEN 2 THEN _now ELSE due END,
            phase = CASE phase WHEN 2 THEN 0 ELSE phase END,
            lasts = _lasts
            WHERE id = _id;
    END IF;
    RETURN _taken;
END $$;

-- Cancels: 0 it was over before, 1 its worker is asked to stop, 2 it is over; NULL if there is none.
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
    _task.cancel_requested := coalesce(_task.cancel_requested, _now);
    IF _task.phase <> 1 OR _at_once THEN
        PERFORM finish(_task, _outcome, true, _retention, _now);
        RETURN 2;
    END IF;
    UPDATE task SET cancel_requested = _task.cancel_requested,
        updated = greatest(_now, updated + 1) WHERE id = _id;
    RETURN 1;
END $$;
