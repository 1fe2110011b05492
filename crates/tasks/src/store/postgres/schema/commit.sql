-- Commits of workers. A principal at its byte limit cannot store more bytes. Functions for many
-- tasks check all principals at once and skip tasks of a principal that may be over its limit. The
-- caller then commits those tasks alone with `commit_task`, which measures exactly.

-- Returns the TTL of a task after a change in its number of open input requests. A response does
-- not shorten a quarantine.
CREATE FUNCTION effective_ttl(_task task, _before bigint, _after bigint, _now bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN _task.ttl IS NULL THEN NULL
        WHEN _task.phase = 4 THEN _task.effective_ttl
        WHEN _before = 0 AND _after > 0 THEN greatest(_task.ttl, _task.max_ttl)
        WHEN _before > 0 AND _after = 0 THEN
            least(_now - _task.created_at + _task.ttl, greatest(_task.ttl, _task.max_ttl))
        ELSE _task.effective_ttl END
$$;

-- Returns the number of open input requests of a task.
CREATE FUNCTION count_open(_number bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM input_request WHERE task = _number AND state = 0);
END $$;

-- Returns the kind of an outcome that the store itself writes.
CREATE FUNCTION outcome_kind(_outcome text) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
    SELECT (CASE WHEN _outcome = '"Cancelled"' THEN 2 WHEN _outcome = '"Expired"' THEN 3
        WHEN _outcome LIKE '{"Result":%' AND _outcome NOT LIKE '%"isError":true%' THEN 0
        ELSE 1 END)::smallint
$$;

-- Ends a task that has not ended, and writes the changed columns of `_task`. The caller must hold
-- the lock on the row. A cancelled or expired task may need a cleanup. The cleanup is due
-- immediately if the task has no worker, and otherwise when its run is gone, at the latest when its
-- lease expires.
CREATE FUNCTION end_task(
    _task task, _outcome text, _unfinished boolean, _retention bigint, _now bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _open bigint;
    _ttl bigint;
BEGIN
    IF NOT (_unfinished AND _task.has_cleanup AND _task.started) THEN
        _task.due_at := NULL;
    ELSE
        _task.crash_count := 0;
        IF _task.worker_id IS NULL THEN
            _task.due_at := _now;
        END IF;
    END IF;
    _open := withdraw_inputs(_task, NULL, _now);
    -- A task that ends late stays readable for its retention. A task without a TTL is never
    -- deleted.
    _ttl := effective_ttl(_task, _open, 0, _now);
    IF _ttl IS NOT NULL THEN
        _ttl := greatest(_ttl, _now + _retention - _task.created_at);
    END IF;
    UPDATE task SET phase = 3, outcome = _outcome,
        outcome_kind = coalesce(_task.outcome_kind, outcome_kind(_outcome)), worker_id = NULL, worker_lock = NULL,
        due_at = _task.due_at, crash_count = _task.crash_count, effective_ttl = _ttl, status_message = _task.status_message,
        progress = _task.progress, cancel_requested_at = _task.cancel_requested_at,
        updated_at = greatest(_now, _task.updated_at + 1)
        WHERE id = _task.id;
    INSERT INTO quota_release (principal, bytes) VALUES (_task.principal, octet_length(_outcome));
    IF _task.notify IS NOT NULL THEN
        PERFORM notify_tasks(ARRAY[_task.id], 'task.ended', _now);
    END IF;
END $$;

-- Returns the tags that a commit adds to an indexed task, up to eight in all.
CREATE FUNCTION new_tags(_number bigint, _indexed boolean, _tags text[]) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT g.tag FROM unnest(_tags) WITH ORDINALITY AS g (tag, place)
        WHERE _indexed AND NOT EXISTS (SELECT FROM tag k WHERE k.task = _number AND k.tag = g.tag)
        GROUP BY g.tag ORDER BY min(g.place)
        LIMIT greatest(0, 8 - (SELECT count(*) FROM tag k WHERE k.task = _number));
END $$;

-- Adds tags to an indexed task, up to eight. Returns the bytes that they add.
CREATE FUNCTION add_tags(_task task, _tags text[]) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _bytes bigint;
BEGIN
    WITH added AS (
        INSERT INTO tag AS k (task, tag, created_at, id)
            SELECT _task.number, g.tag, _task.created_at, _task.id
            FROM new_tags(_task.number, _task.indexed, _tags) AS g (tag)
            ON CONFLICT DO NOTHING
            RETURNING tag_bytes(k.tag) AS bytes
    )
    SELECT coalesce(sum(bytes), 0) INTO _bytes FROM added;
    RETURN _bytes;
END $$;

-- Returns the bytes that a commit adds to a task. `_ends` is the size of the outcome, if it counts.
CREATE FUNCTION growth(
    _task bigint, _forgotten text[], _keys text[], _bodies text[],
    _scopes text[], _ordinals bigint[], _blocks text[], _inputs text,
    _indexed boolean, _tags text[], _ends bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce(_ends, 0)
        - coalesce((SELECT sum(octet_length(key) + octet_length(body)) FROM journal_entry
            WHERE task = _task AND key = ANY (_forgotten)), 0)
        + coalesce((SELECT sum(octet_length(e.key) + octet_length(e.body))
            FROM unnest(_keys, _bodies) AS e (key, body)
            WHERE e.key = ANY (_forgotten)
                OR NOT EXISTS (SELECT FROM journal_entry k WHERE k.task = _task AND k.key = e.key)), 0)
        + coalesce((SELECT sum(octet_length(s.scope) + octet_length(s.body))
            FROM unnest(_scopes, _ordinals, _blocks) AS s (scope, ordinal, body)
            WHERE NOT EXISTS (SELECT FROM segment k
                WHERE k.task = _task AND k.scope = s.scope AND k.ordinal = s.ordinal)), 0)
        + coalesce((SELECT sum(greatest(0, i.bytes - coalesce(q.bytes, 0)))
            FROM read_inputs(_inputs) AS i
            LEFT JOIN input_request q ON q.task = _task AND q.wire_key = i.wire_key), 0)
        + coalesce((SELECT sum(tag_bytes(g.tag)) FROM new_tags(_task, _indexed, _tags) AS g (tag)), 0);
END $$;


-- Commits all kinds of changes of one task. Returns false if the lease is lost, and NULL if the
-- principal would exceed its byte limit. An absent part is NULL.
CREATE FUNCTION commit_task(
    _id text, _worker text, _epoch bigint, _message text, _progress text, _forgotten text[],
    _keys text[], _is_input boolean[], _bodies text[], _durations bigint[],
    _scopes text[], _ordinals bigint[], _blocks text[],
    _inputs text,     -- input requests to open, as JSON
    _withdrawn text[], _tags text[],
    _then integer, -- 0 continue, 1 park, 2 end, 3 end and clean up
    _due bigint, _seen bigint, _outcome text, _retention bigint, _outcome_kind smallint,
    _ends bigint,     -- bytes of the outcome, if they count
    _most bigint,     -- upper bound of the stored bytes
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
        WHERE id = _id AND epoch = _epoch AND worker_id = _worker AND phase = 1 FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Only a principal close to its limit is measured exactly.
    IF _most > 0 AND _max_bytes - stored_bytes(_task.principal) < _most THEN
        _some := growth(_task.number, _forgotten, _keys, _bodies, _scopes, _ordinals, _blocks,
            _inputs, _task.indexed, _tags, _ends);
        IF _some > 0 AND stored_bytes(_task.principal) + _some > _max_bytes THEN
            RETURN NULL;
        END IF;
    END IF;
    _task.status_message := coalesce(_message, _task.status_message);
    _task.progress := coalesce(_progress, _task.progress);
    IF _forgotten IS NOT NULL THEN
        WITH gone AS (
            DELETE FROM journal_entry WHERE task = _task.number AND key = ANY (_forgotten)
                RETURNING octet_length(key) + octet_length(body) AS bytes
        )
        SELECT -coalesce(sum(bytes), 0) INTO _bytes FROM gone;
    END IF;
    IF _keys IS NOT NULL THEN
        WITH recorded AS (
            INSERT INTO journal_entry (task, key, is_input, body, recorded_at, duration)
                SELECT _task.number, e.key, e.is_input, e.body,
                    CASE WHEN _task.indexed THEN _now END, e.duration
                FROM unnest(_keys, _is_input, _bodies, _durations)
                    AS e (key, is_input, body, duration)
                ON CONFLICT DO NOTHING
                RETURNING octet_length(key) + octet_length(body) AS bytes
        )
        SELECT count(*), coalesce(sum(bytes), 0) INTO _rows, _some FROM recorded;
        IF _rows > 0 THEN
            _task.crash_count := 0;
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
    IF _inputs IS NOT NULL OR _withdrawn IS NOT NULL THEN
        _before := count_open(_task.number);
        IF _inputs IS NOT NULL THEN
            _bytes := _bytes + open_inputs(_task, _inputs, _now);
        END IF;
        IF _withdrawn IS NOT NULL THEN
            PERFORM withdraw_inputs(_task, _withdrawn, _now);
        END IF;
        _after := count_open(_task.number);
        _task.effective_ttl := effective_ttl(_task, _before, _after, _now);
    END IF;
    IF _tags IS NOT NULL THEN
        _bytes := _bytes + add_tags(_task, _tags);
    END IF;
    IF _bytes <> 0 THEN
        INSERT INTO quota_release (principal, tasks, bytes) VALUES (_task.principal, 0, _bytes);
    END IF;
    IF _then >= 2 THEN
        _task.worker_id := NULL;
        _task.outcome_kind := _outcome_kind;
        PERFORM end_task(_task, _outcome, _then = 3, _retention, _now);
        RETURN true;
    END IF;
    IF _then = 1 THEN
        _task.worker_id := NULL;
        _task.worker_lock := NULL;
        -- Responses and cancellations that arrived during this commit would not wake a parked task.
        IF _task.cancel_requested_at IS NOT NULL
            OR (SELECT count(*) FROM journal_entry WHERE task = _task.number AND is_input) > _seen THEN
            _task.phase := 0;
            _task.due_at := _now;
        ELSE
            _task.phase := 2;
            _task.due_at := _due;
        END IF;
    END IF;
    -- Parking does not change the visible state of a task that only waits.
    IF _then <> 1 OR num_nonnulls(_message, _progress, _forgotten, _keys, _scopes, _inputs,
        _withdrawn, _tags) > 0 THEN
        _task.updated_at := greatest(_now, _task.updated_at + 1);
    END IF;
    UPDATE task SET updated_at = _task.updated_at, status_message = _task.status_message,
        progress = _task.progress, crash_count = _task.crash_count, effective_ttl = _task.effective_ttl,
        phase = _task.phase, due_at = _task.due_at, worker_id = _task.worker_id, worker_lock = _task.worker_lock
        WHERE id = _id;
    RETURN true;
END $$;

-- Quarantines a task after `commit_task` in the same statement. A task whose cancellation was
-- requested is queued instead.
CREATE FUNCTION quarantine_task(_id text, _outcome text, _hold bigint, _shift bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _notifies boolean;
BEGIN
    UPDATE task SET worker_id = NULL, worker_lock = NULL,
        phase = CASE WHEN cancel_requested_at IS NULL THEN 4 ELSE 0 END,
        due_at = CASE WHEN cancel_requested_at IS NOT NULL THEN _now END,
        quarantine_outcome = CASE WHEN cancel_requested_at IS NULL THEN _outcome END,
        effective_ttl = CASE WHEN cancel_requested_at IS NULL AND effective_ttl IS NOT NULL
            THEN greatest(effective_ttl, _now - created_at + _hold) ELSE effective_ttl END
        WHERE id = _id RETURNING phase = 4 AND notify IS NOT NULL INTO _notifies;
    IF _notifies THEN
        PERFORM notify_tasks(ARRAY[_id], 'task.quarantined', _now);
    END IF;
    RETURN _notifies IS NOT NULL;
END $$;
