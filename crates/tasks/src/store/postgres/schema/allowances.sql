-- What tasks write is refused when their principal has as many bytes stored as it may, and what they ask
-- counts as well.
--
-- What is written for many tasks at once asks for all of its principals once, `without_room`. Who may
-- have too little is left out there, and written by itself by `write_task`, which looks closely.

DROP FUNCTION IF EXISTS write_tasks, write_task, record_steps, end_tasks, answer_task, forget_tasks,
    record_events;

-- What a question counts.
CREATE FUNCTION question_bytes(_name text, _key text, _body text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT octet_length(_name)::bigint + octet_length(_key) + coalesce(octet_length(_body), 0)
$$;

INSERT INTO ended_task (principal, tasks, bytes)
    SELECT t.principal, 0, sum(question_bytes(q.name, q.key, q.body))
        FROM question q JOIN task t ON t.number = q.task GROUP BY t.principal;

-- Which of these principals may have too many bytes when they have so many more; NULL if none has. What
-- is not counted yet is counted here when there is much of it, unless somebody else does.
CREATE FUNCTION without_room(_principals text[], _bytes bigint[], _max_bytes bigint[])
RETURNS text[] LANGUAGE plpgsql STRICT AS $$
DECLARE
    _full text[];
    _uncounted bigint;
BEGIN
    WITH uncounted AS (
        SELECT principal, sum(bytes) AS bytes, count(*) AS rows FROM ended_task
            WHERE principal = ANY (_principals) GROUP BY principal
    )
    SELECT array_agg(w.principal) FILTER (WHERE
            w.bytes + coalesce(o.bytes, 0) + coalesce(u.bytes, 0) > w.max_bytes), sum(u.rows)
        INTO _full, _uncounted
        FROM unnest(_principals, _bytes, _max_bytes) AS w (principal, bytes, max_bytes)
        LEFT JOIN open_tasks o ON o.principal = w.principal
        LEFT JOIN uncounted u ON u.principal = w.principal;
    IF _uncounted > 500 THEN
        PERFORM count_out(ARRAY(SELECT principal FROM open_tasks
            WHERE principal = ANY (_principals) FOR UPDATE SKIP LOCKED));
    END IF;
    RETURN _full;
END $$;

-- What workers write most often, to many tasks at once: entries, how far they are, their end. Each
-- task stands here once, in the order of their names. Returns the places of those that were lost, and 0 if
-- there are some among them whose principal may have no room.
--
-- A step that is recorded leaves the task's own row as it is, but once a second, when the time of its
-- last change is: a new version of the row would have to be put into all indexes, because there is no
-- room on the page for as many versions as a task has steps.
CREATE FUNCTION write_tasks(
    _ids text[], _workers text[], _epochs bigint[], _messages text[], _progress text[],
    _outcomes text[], _outcome_kinds smallint[], _retentions bigint[],
    _entry_places bigint[], _entry_keys text[], _entry_answers boolean[], _entry_bodies text[],
    _charged text[], _bytes bigint[], _max_bytes bigint[],
    _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _full text[] := without_room(_charged, _bytes, _max_bytes);
    _held bigint[];
    _lost bigint[] := '{}';
    _numbers bigint[];
    _changed bigint[];
    _ended bigint[];
    _principals text[];
    _recorded bigint;
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
            WHERE _full IS NULL OR t.principal <> ALL (_full)
            FOR NO KEY UPDATE OF t
    )
    SELECT array_agg(place ORDER BY place), array_agg(number ORDER BY place),
            array_agg(place) FILTER (WHERE changes),
            array_agg(number) FILTER (WHERE ends), array_agg(principal ORDER BY place)
        INTO _held, _numbers, _changed, _ended, _principals FROM held;
    IF cardinality(_held) IS DISTINCT FROM cardinality(_ids) THEN
        SELECT array_agg(place) FILTER (WHERE number IS NULL), array_agg(number ORDER BY place),
                array_agg(principal ORDER BY place)
            INTO _lost, _numbers, _principals
            FROM (SELECT place, _numbers[array_position(_held, place)] AS number,
                    _principals[array_position(_held, place)] AS principal
                FROM generate_series(1::bigint, cardinality(_ids)) AS place) AS each;
    END IF;
    IF _entry_places IS NOT NULL THEN
        INSERT INTO entry (task, key, answer, body)
            SELECT _numbers[e.place], e.key, e.answer, e.body
            FROM unnest(_entry_places, _entry_keys, _entry_answers, _entry_bodies)
                AS e (place, key, answer, body)
            WHERE e.place <> ALL (_lost)
            ON CONFLICT DO NOTHING;
        GET DIAGNOSTICS _recorded = ROW_COUNT;
    END IF;
    IF _recorded > 0 THEN
        -- Entries that were there already are told apart only where there are some.
        INSERT INTO ended_task (principal, tasks, bytes)
            SELECT _principals[e.place], 0, sum(octet_length(e.key) + octet_length(e.body))
            FROM unnest(_entry_places, _entry_keys, _entry_bodies) AS e (place, key, body)
            WHERE e.place <> ALL (_lost) AND (_recorded = cardinality(_entry_places)
                OR EXISTS (SELECT FROM entry k WHERE k.task = _numbers[e.place] AND k.key = e.key
                    AND k.xmin = pg_current_xact_id()::xid))
            GROUP BY _principals[e.place];
    END IF;
    IF _ended IS NOT NULL THEN
        INSERT INTO ended_task (principal, tasks, bytes)
            SELECT _principals[w.place], count(*), sum(octet_length(w.outcome))
            FROM unnest(_outcomes) WITH ORDINALITY AS w (outcome, place)
            WHERE w.outcome IS NOT NULL AND w.place <> ALL (_lost) GROUP BY _principals[w.place];
        WITH withdrawn AS (
            UPDATE question SET state = 2 WHERE task = ANY (_ended) AND state = 0 RETURNING task
        )
        SELECT array_agg(task) INTO _asked FROM withdrawn;
    END IF;
    IF _changed IS NOT NULL THEN
        UPDATE task t SET updated = greatest(_now, t.updated + 1),
            message = coalesce(w.message, t.message), progress = coalesce(w.progress, t.progress),
            crashes = CASE WHEN w.place = ANY (_entry_places) THEN 0 ELSE t.crashes END,
            outcome = w.outcome, outcome_kind = w.outcome_kind,
            phase = CASE WHEN w.outcome IS NULL THEN 1 ELSE 3 END,
            owner = CASE WHEN w.outcome IS NULL THEN t.owner END,
            owner_lock = CASE WHEN w.outcome IS NULL THEN t.owner_lock END,
            due = CASE WHEN w.outcome IS NULL THEN t.due END,
            lasts = CASE WHEN w.outcome IS NULL OR t.lasts IS NULL THEN t.lasts
                ELSE greatest(_now + w.retention - t.created, CASE WHEN t.number = ANY (_asked)
                    THEN lasting(t, 1, 0, _now) ELSE t.lasts END) END
            FROM unnest(_ids, _messages, _progress, _outcomes, _outcome_kinds, _retentions)
                WITH ORDINALITY AS w (id, message, progress, outcome, outcome_kind, retention, place)
            WHERE t.id = w.id AND w.place = ANY (_changed);
    END IF;
    IF _full IS NOT NULL THEN
        RETURN _lost || 0::bigint;
    END IF;
    RETURN _lost;
END $$;

-- How many bytes more a task has when this is written. Its outcome counts if that is `_ends` bytes long.
CREATE FUNCTION growth(
    _task bigint, _forgotten text[], _keys text[], _bodies text[],
    _scopes text[], _ordinals bigint[], _blocks text[],
    _asked_names text[], _asked_keys text[], _asked_bodies text[], _ends bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(_ends, 0)
        - coalesce((SELECT sum(octet_length(key) + octet_length(body)) FROM entry
            WHERE task = _task AND key = ANY (_forgotten)), 0)
        + coalesce((SELECT sum(octet_length(e.key) + octet_length(e.body))
            FROM unnest(_keys, _bodies) AS e (key, body)
            WHERE e.key = ANY (_forgotten)
                OR NOT EXISTS (SELECT FROM entry k WHERE k.task = _task AND k.key = e.key)), 0)
        + coalesce((SELECT sum(octet_length(s.scope) + octet_length(s.body))
            FROM unnest(_scopes, _ordinals, _blocks) AS s (scope, ordinal, body)
            WHERE NOT EXISTS (SELECT FROM segment k
                WHERE k.task = _task AND k.scope = s.scope AND k.ordinal = s.ordinal)), 0)
        + coalesce((SELECT sum(greatest(question_bytes(a.name, a.key, a.body)
                - coalesce(question_bytes(q.name, q.key, q.body), 0), 0))
            FROM unnest(_asked_names, _asked_keys, _asked_bodies) AS a (name, key, body)
            LEFT JOIN question q ON q.task = _task AND q.name = a.name), 0);
END $$;

-- All that a worker can write: false if it has lost the task, NULL if that is too much for its principal.
-- What there is nothing of is NULL.
CREATE FUNCTION write_task(
    _id text, _worker text, _epoch bigint, _message text, _progress text, _forgotten text[],
    _keys text[], _answers boolean[], _bodies text[],
    _scopes text[], _ordinals bigint[], _blocks text[],
    _asked_names text[], _asked_keys text[], _asked_dues bigint[], _asked_bodies text[],
    _withdrawn text[],
    _then integer, -- 0 goes on, 1 parks, 2 ends, 3 ends before its work did
    _due bigint, _seen bigint, _outcome text, _retention bigint, _outcome_kind smallint,
    _ends bigint,     -- bytes of its outcome, if that needs room
    _most bigint,     -- bytes that are stored at most
    _max_bytes bigint,
    _shift bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _task task;
    _before bigint;
    _after bigint;
    _last bigint;
    _rows bigint;
    _some bigint;
    _bytes bigint := 0;
BEGIN
    SELECT * INTO _task FROM task
        WHERE id = _id AND epoch = _epoch AND owner = _worker AND phase = 1 FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Only who has hardly any room left is looked at closely.
    IF _most > 0 AND _max_bytes - stored_bytes(_task.principal) < _most THEN
        _some := growth(_task.number, _forgotten, _keys, _bodies, _scopes, _ordinals, _blocks,
            _asked_names, _asked_keys, _asked_bodies, _ends);
        IF _some > 0 AND stored_bytes(_task.principal) + _some > _max_bytes THEN
            RETURN NULL;
        END IF;
    END IF;
    _task.message := coalesce(_message, _task.message);
    _task.progress := coalesce(_progress, _task.progress);
    IF _forgotten IS NOT NULL THEN
        WITH gone AS (
            DELETE FROM entry WHERE task = _task.number AND key = ANY (_forgotten)
                RETURNING octet_length(key) + octet_length(body) AS bytes
        )
        SELECT -coalesce(sum(bytes), 0) INTO _bytes FROM gone;
    END IF;
    IF _keys IS NOT NULL THEN
        WITH recorded AS (
            INSERT INTO entry (task, key, answer, body)
                SELECT _task.number, e.key, e.answer, e.body
                FROM unnest(_keys, _answers, _bodies) AS e (key, answer, body)
                ON CONFLICT DO NOTHING
                RETURNING octet_length(key) + octet_length(body) AS bytes
        )
        SELECT count(*), coalesce(sum(bytes), 0) INTO _rows, _some FROM recorded;
        IF _rows > 0 THEN
            _task.crashes := 0;
        END IF;
        _bytes := _bytes + _some;
    END IF;
    IF _scopes IS NOT NULL THEN
        SELECT coalesce(max(number), 0) INTO _last FROM segment WHERE task = _task.number;
        WITH emitted AS (
            INSERT INTO segment (task, number, scope, ordinal, body)
                SELECT _task.number, _last + row_number() OVER (ORDER BY s.place),
                    s.scope, s.ordinal, s.body
                FROM unnest(_scopes, _ordinals, _blocks)
                    WITH ORDINALITY AS s (scope, ordinal, body, place)
                WHERE NOT EXISTS (SELECT FROM segment k WHERE k.task = _task.number
                    AND k.scope = s.scope AND k.ordinal = s.ordinal)
                ON CONFLICT DO NOTHING
                RETURNING octet_length(scope) + octet_length(body) AS bytes
        )
        SELECT _bytes + coalesce(sum(bytes), 0) INTO _bytes FROM emitted;
    END IF;
    IF _asked_names IS NOT NULL THEN
        _bytes := _bytes - coalesce((SELECT sum(question_bytes(name, key, body)) FROM question
            WHERE task = _task.number AND name = ANY (_asked_names)), 0);
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
        IF _asked_names IS NOT NULL THEN
            _bytes := _bytes + coalesce((SELECT sum(question_bytes(name, key, body)) FROM question
                WHERE task = _task.number AND name = ANY (_asked_names)), 0);
        END IF;
        _after := count_open(_task.number);
        _task.lasts := lasting(_task, _before, _after, _now);
    END IF;
    IF _bytes <> 0 THEN
        INSERT INTO ended_task (principal, tasks, bytes) VALUES (_task.principal, 0, _bytes);
    END IF;
    IF _then >= 2 THEN
        _task.owner := NULL;
        _task.outcome_kind := _outcome_kind;
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
    -- A task that only waits does not change when its worker parks it.
    IF _then <> 1 OR num_nonnulls(_message, _progress, _forgotten, _keys, _scopes, _asked_names,
        _withdrawn) > 0 THEN
        _task.updated := greatest(_now, _task.updated + 1);
    END IF;
    UPDATE task SET updated = _task.updated, message = _task.message,
        progress = _task.progress, crashes = _task.crashes, lasts = _task.lasts,
        phase = _task.phase, due = _task.due, owner = _task.owner, owner_lock = _task.owner_lock
        WHERE id = _id;
    RETURN true;
END $$;

-- What workers write most often, to many tasks at once, the short ways: steps that are recorded, and tasks
-- that end. Each task is held by the worker, or it is left out. Both return the places of what was
-- written, or nothing if all was; and 0 if what was not
-- may have no room.
--
-- They lock in the order in which tasks stand here, which is that of their names. So one transaction
-- takes one of them, once.

-- One row for each entry. Fails if an entry is there already: who wrote it knows another way then.
--
-- A step that is recorded leaves the task's own row as it is, but once a second, when the time of its
-- last change is: a new version of the row would have to be put into all indexes, because there is no
-- room on the page for as many versions as a task has steps.
CREATE FUNCTION record_steps(
    _worker text, _ids text[], _epochs bigint[], _keys text[], _answers boolean[], _bodies text[],
    _charged text[], _bytes bigint[], _max_bytes bigint[],
    _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _full text[] := without_room(_charged, _bytes, _max_bytes);
    _written bigint[];
    _changes boolean;
BEGIN
    WITH held AS (
        SELECT w.place, w.key, w.answer, w.body, t.number, t.principal,
            t.crashes > 0 OR t.updated <= _now - 1000 AS changes
            FROM unnest(_ids, _epochs, _keys, _answers, _bodies) WITH ORDINALITY
                AS w (id, epoch, key, answer, body, place)
            -- Written so that it is found by its name, and not by its owner, who has many.
            JOIN task t ON t.id = w.id AND t.owner IS NOT DISTINCT FROM _worker
                AND t.epoch = w.epoch AND t.phase = 1
            WHERE _full IS NULL OR t.principal <> ALL (_full)
            FOR NO KEY UPDATE OF t
    ), recorded AS (
        INSERT INTO entry (task, key, answer, body) SELECT number, key, answer, body FROM held
    ), counted AS (
        INSERT INTO ended_task (principal, tasks, bytes)
            SELECT principal, 0, sum(octet_length(key) + octet_length(body)) FROM held
            GROUP BY principal
    )
    SELECT array_agg(place), bool_or(changes) INTO _written, _changes FROM held;
    IF _changes THEN
        UPDATE task t SET updated = greatest(_now, t.updated + 1), crashes = 0
            FROM unnest(_ids, _epochs) AS w (id, epoch)
            WHERE t.id = w.id AND t.owner IS NOT DISTINCT FROM _worker AND t.epoch = w.epoch
                AND t.phase = 1 AND (t.crashes > 0 OR t.updated <= _now - 1000);
    END IF;
    IF cardinality(_written) = cardinality(_ids) THEN
        RETURN NULL;
    END IF;
    IF _full IS NOT NULL THEN
        _written := coalesce(_written, '{}') || 0::bigint;
    END IF;
    RETURN coalesce(_written, '{}');
END $$;

-- One row for each task, which has done its work and has nothing else to say.
CREATE FUNCTION end_tasks(
    _worker text, _ids text[], _epochs bigint[], _outcomes text[], _outcome_kinds smallint[],
    _retentions bigint[], _charged text[], _bytes bigint[], _max_bytes bigint[], _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _full text[] := without_room(_charged, _bytes, _max_bytes);
    _written bigint[];
    _numbers bigint[];
    _asked bigint[];
BEGIN
    WITH ended AS (
        UPDATE task t SET updated = greatest(_now, t.updated + 1), outcome = w.outcome,
            outcome_kind = w.outcome_kind, phase = 3,
            owner = NULL, owner_lock = NULL, due = NULL,
            lasts = CASE WHEN t.lasts IS NOT NULL
                THEN greatest(_now + w.retention - t.created, t.lasts) END
            FROM unnest(_ids, _epochs, _outcomes, _outcome_kinds, _retentions) WITH ORDINALITY
                AS w (id, epoch, outcome, outcome_kind, retention, place)
            WHERE t.id = w.id AND t.owner IS NOT DISTINCT FROM _worker AND t.epoch = w.epoch
                AND t.phase = 1 AND (_full IS NULL OR t.principal <> ALL (_full))
            RETURNING w.place, t.number, t.principal, octet_length(w.outcome) AS bytes
    ), counted AS (
        INSERT INTO ended_task (principal, tasks, bytes)
            SELECT principal, count(*), sum(bytes) FROM ended GROUP BY principal
    )
    SELECT array_agg(place), array_agg(number) INTO _written, _numbers FROM ended;
    -- Hardly any asks something when it ends.
    WITH withdrawn AS (
        UPDATE question SET state = 2 WHERE task = ANY (_numbers) AND state = 0 RETURNING task
    )
    SELECT array_agg(task) INTO _asked FROM withdrawn;
    IF _asked IS NOT NULL THEN
        UPDATE task t SET lasts =
                greatest(_now + w.retention - t.created, lasting(t, 1, 0, _now))
            FROM unnest(_ids, _retentions) AS w (id, retention)
            WHERE t.id = w.id AND t.number = ANY (_asked) AND t.lasts IS NOT NULL;
    END IF;
    IF cardinality(_written) = cardinality(_ids) THEN
        RETURN NULL;
    END IF;
    IF _full IS NOT NULL THEN
        _written := coalesce(_written, '{}') || 0::bigint;
    END IF;
    RETURN coalesce(_written, '{}');
END $$;

-- Takes answers: how many, or NULL if there is no such task for this principal, or -1 if that is too much
-- for it.
CREATE FUNCTION answer_task(
    _principal text, _id text, _outside boolean, _names text[], _bodies text[], _max_bytes bigint,
    _shift bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _task task;
    _before bigint;
    _taken bigint;
    _bytes bigint;
    _lasts bigint;
BEGIN
    SELECT * INTO _task FROM task WHERE id = _id AND principal = _principal FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF _task.phase = 3 THEN
        RETURN 0;
    END IF;
    SELECT sum(octet_length(q.key) + octet_length(a.body)) INTO _bytes
        FROM unnest(_names, _bodies) AS a (name, body)
        JOIN question q ON q.task = _task.number AND q.name = a.name AND q.state = 0
            AND (q.body IS NULL) = _outside;
    IF _bytes > 0 AND stored_bytes(_principal) + _bytes > _max_bytes THEN
        RETURN -1;
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
            RETURNING octet_length(key) + octet_length(body) AS bytes
    )
    SELECT count(*), (SELECT sum(bytes) FROM recorded) INTO _taken, _bytes FROM answered;
    IF _bytes > 0 THEN
        INSERT INTO ended_task (principal, tasks, bytes) VALUES (_principal, 0, _bytes);
    END IF;
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

-- Forgets what belongs to tasks that are gone, and gives their bytes back to their principals.
CREATE FUNCTION forget_tasks(_numbers bigint[], _principals text[], _bytes bigint[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        SELECT * FROM unnest(_numbers, _principals, _bytes) AS g (number, principal, bytes)
    ), entries AS (
        DELETE FROM entry WHERE task = ANY (_numbers)
            RETURNING task, octet_length(key) + octet_length(body) AS bytes
    ), segments AS (
        DELETE FROM segment WHERE task = ANY (_numbers)
            RETURNING task, octet_length(scope) + octet_length(body) AS bytes
    ), questions AS (
        DELETE FROM question WHERE task = ANY (_numbers)
            RETURNING task, question_bytes(name, key, body) AS bytes
    ), freed AS (
        SELECT task, sum(bytes) AS bytes
            FROM (SELECT * FROM entries UNION ALL SELECT * FROM segments
                UNION ALL SELECT * FROM questions) AS each GROUP BY task
    )
    INSERT INTO ended_task (principal, tasks, bytes)
        SELECT g.principal, 0, -sum(g.bytes + coalesce(f.bytes, 0))
        FROM gone g LEFT JOIN freed f ON f.task = g.number GROUP BY g.principal;
END $$;

-- Writes down what has happened. One at a time: whoever has read up to some number must have missed
-- nothing before it. Of all events the newest `_max_events` stay.
CREATE FUNCTION record_events(
    _tasks text[], _principals text[], _whats text[], _causes text[], _retention bigint,
    _max_events bigint, _shift bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
BEGIN
    PERFORM pg_advisory_xact_lock('event'::regclass::oid::bigint);
    INSERT INTO event (at, expires, task, principal, what, cause)
        SELECT _now, _now + _retention, e.task, e.principal, e.what, e.cause
        FROM unnest(_tasks, _principals, _whats, _causes)
            WITH ORDINALITY AS e (task, principal, what, cause, place)
        ORDER BY e.place;
    DELETE FROM event WHERE number <= (SELECT max(number) FROM event) - _max_events;
END $$;
