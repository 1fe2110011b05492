-- Input requests, and the inbox and the deliveries that follow from them.

-- Reads input requests from the JSON that `input_request.rs` writes.
CREATE FUNCTION read_inputs(_inputs text)
RETURNS TABLE (place bigint, wire_key text, journal_key text, due_at bigint, body text,
    audience smallint, addressees text, binding text, denial text, bytes bigint)
LANGUAGE sql IMMUTABLE AS $$
    SELECT * FROM json_to_recordset(_inputs::json) AS i (place bigint, wire_key text,
        journal_key text, due_at bigint, body text, audience smallint, addressees text, binding text,
        denial text, bytes bigint)
$$;

-- Returns the targets that are notified of an event.
CREATE FUNCTION subscribers(_notify text, _event text) RETURNS SETOF text
LANGUAGE sql IMMUTABLE AS $$
    SELECT s.t FROM json_to_recordset(_notify::json) AS s (e text, t text) WHERE s.e = _event
$$;

-- Writes the deliveries of an event of these tasks. Only tasks with subscriptions need this call.
CREATE FUNCTION notify_tasks(_ids text[], _event text, _now bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO delivery (task, event, target, recorded_at, due_at)
        SELECT t.id, _event, s.target, _now, _now
        FROM task t CROSS JOIN LATERAL subscribers(t.notify, _event) AS s (target)
        WHERE t.id = ANY (_ids) AND t.notify IS NOT NULL;
END $$;

-- Writes the deliveries of an event of input requests. Requests to the client have none.
CREATE FUNCTION notify_inputs(
    _numbers bigint[], _ids text[], _wire_keys text[], _event text, _now bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO delivery (task, event, target, input_request, recorded_at, due_at)
        SELECT t.id, _event, s.target, q.wire_key, _now, _now
        FROM unnest(_numbers, _ids, _wire_keys) AS w (number, id, wire_key)
        JOIN task t ON t.id = w.id AND t.notify IS NOT NULL
        JOIN input_request q ON q.task = w.number AND q.wire_key = w.wire_key
            AND q.audience > 0 AND q.body IS NOT NULL
        CROSS JOIN LATERAL subscribers(t.notify, _event) AS s (target);
END $$;

-- Returns the inbox rows of an open input request: the operators, the person of the task or the
-- addressees, and the person who cannot respond as holder of a scope.
CREATE FUNCTION inbox_rows(_input input_request, _person text)
RETURNS TABLE (addressee text, caller text) LANGUAGE sql IMMUTABLE AS $$
    SELECT '*', NULL::text
    UNION ALL
    SELECT 'n/' || _person, NULL WHERE _input.audience < 2 AND _person IS NOT NULL
    UNION ALL
    SELECT DISTINCT n.name, CASE WHEN n.name LIKE 's/%' THEN _person END
        FROM json_array_elements_text(_input.addressees::json) AS n (name)
        WHERE n.name IS DISTINCT FROM ('n/' || _person)
$$;

-- Opens input requests of a task. Returns the bytes that they add. A withdrawn request is opened
-- again, without its votes. Another existing request stays unchanged.
CREATE FUNCTION open_inputs(_task task, _inputs text, _now bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _last bigint;
    _freed bigint;
    _bytes bigint;
    _opened text[];
    _listed boolean;
BEGIN
    SELECT coalesce(max(ordinal), 0) INTO _last FROM input_request WHERE task = _task.number;
    WITH gone AS (
        DELETE FROM input_request q USING read_inputs(_inputs) AS i
            WHERE q.task = _task.number AND q.wire_key = i.wire_key AND q.state = 2
            RETURNING q.wire_key, q.bytes
    ), votes AS (
        DELETE FROM vote v USING gone g WHERE v.task = _task.number AND v.wire_key = g.wire_key
            RETURNING vote_bytes(v.person, v.reason, v.channel) AS bytes
    )
    SELECT coalesce(sum(bytes), 0) INTO _freed
        FROM (SELECT bytes FROM gone UNION ALL SELECT bytes FROM votes) AS each;
    WITH opened AS (
        INSERT INTO input_request AS q (task, wire_key, journal_key, ordinal, state, opened_at,
                due_at, body, audience, addressees, binding, denial, bytes)
            SELECT _task.number, i.wire_key, i.journal_key, _last + i.place, 0, _now, i.due_at,
                i.body, i.audience, i.addressees, i.binding, i.denial, i.bytes
            FROM read_inputs(_inputs) AS i
            ON CONFLICT DO NOTHING
            RETURNING q.wire_key, q.audience, q.bytes
    )
    SELECT coalesce(sum(bytes), 0), array_agg(wire_key), _task.indexed OR bool_or(audience = 2)
        INTO _bytes, _opened, _listed FROM opened;
    IF _listed THEN
        INSERT INTO addressee (task, wire_key, addressee, opened_at, id, caller)
            SELECT q.task, q.wire_key, a.addressee, _now, _task.id, a.caller
            FROM input_request q CROSS JOIN LATERAL inbox_rows(q, _task.person) AS a
            WHERE q.task = _task.number AND q.wire_key = ANY (_opened) AND q.body IS NOT NULL
                AND (_task.indexed OR q.audience = 2);
    END IF;
    IF _task.notify IS NOT NULL AND _opened IS NOT NULL THEN
        PERFORM notify_inputs(array_fill(_task.number, ARRAY[cardinality(_opened)]),
            array_fill(_task.id, ARRAY[cardinality(_opened)]), _opened, 'input_request.opened', _now);
    END IF;
    RETURN _bytes - _freed;
END $$;

-- Opens the input requests of a new task. Without a worker, the task is parked until a response or
-- the first timeout.
CREATE FUNCTION open_created_inputs(_task task, _inputs text, _now bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _due bigint;
BEGIN
    -- The bytes were counted with the task.
    PERFORM open_inputs(_task, _inputs, _now);
    IF _task.phase = 0 THEN
        SELECT min(due_at) INTO _due FROM input_request WHERE task = _task.number;
        _task.phase := 2;
        _task.due_at := _due;
    END IF;
    UPDATE task SET phase = _task.phase, due_at = _task.due_at,
        effective_ttl = effective_ttl(_task, 0, 1, _now) WHERE id = _task.id;
END $$;

-- Takes input requests out of the inbox after they were answered or withdrawn.
CREATE FUNCTION settle_inputs(_numbers bigint[], _ids text[], _wire_keys text[], _now bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM addressee a USING unnest(_numbers, _wire_keys) AS w (number, wire_key)
        WHERE a.task = w.number AND a.wire_key = w.wire_key;
    PERFORM notify_inputs(_numbers, _ids, _wire_keys, 'input_request.settled', _now);
END $$;

-- Takes input requests of one task out of the inbox.
CREATE FUNCTION settle_inputs_of(_task task, _wire_keys text[], _now bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM settle_inputs(array_fill(_task.number, ARRAY[cardinality(_wire_keys)]),
        array_fill(_task.id, ARRAY[cardinality(_wire_keys)]), _wire_keys, _now);
END $$;

-- Withdraws open input requests of a task: those with these wire keys, or all. Returns their number.
CREATE FUNCTION withdraw_inputs(_task task, _wire_keys text[], _now bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _withdrawn text[];
BEGIN
    WITH withdrawn AS (
        UPDATE input_request SET state = 2, settled_at = _now
            WHERE task = _task.number AND state = 0
                AND (_wire_keys IS NULL OR wire_key = ANY (_wire_keys))
            RETURNING wire_key
    )
    SELECT array_agg(wire_key) INTO _withdrawn FROM withdrawn;
    IF _withdrawn IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM settle_inputs_of(_task, _withdrawn, _now);
    RETURN cardinality(_withdrawn);
END $$;

-- Changes a task after `_taken` of its `_before` open input requests were answered. A response
-- queues a parked task, because no worker has it.
CREATE FUNCTION wake_task(_task task, _before bigint, _taken bigint, _now bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE task SET updated_at = greatest(_now, updated_at + 1),
        due_at = CASE phase WHEN 2 THEN _now ELSE due_at END,
        phase = CASE phase WHEN 2 THEN 0 ELSE phase END,
        effective_ttl = effective_ttl(_task, _before, _before - _taken, _now)
        WHERE id = _task.id;
END $$;
