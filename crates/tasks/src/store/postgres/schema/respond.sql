-- Input responses.

-- Stores input responses to requests that their source may respond to. Returns the number of
-- accepted responses, NULL if the principal has no such task, and -1 if the principal would exceed
-- its byte limit.
CREATE FUNCTION respond_task(
    _principal text, _id text, _is_external boolean, _wire_keys text[], _bodies text[], _max_bytes bigint,
    _shift bigint,
    _max_audience smallint)    -- most restricted audience that the source may respond for
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _task task;
    _before bigint;
    _taken bigint;
    _bytes bigint;
    _answered text[];
BEGIN
    SELECT * INTO _task FROM task WHERE id = _id AND principal = _principal FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF _task.phase = 3 THEN
        RETURN 0;
    END IF;
    SELECT sum(octet_length(q.journal_key) + octet_length(a.body)) INTO _bytes
        FROM unnest(_wire_keys, _bodies) AS a (wire_key, body)
        JOIN input_request q ON q.task = _task.number AND q.wire_key = a.wire_key AND q.state = 0
            AND (q.body IS NULL) = _is_external AND q.audience <= _max_audience;
    IF _bytes > 0 AND stored_bytes(_principal) + _bytes > _max_bytes THEN
        RETURN -1;
    END IF;
    _before := count_open(_task.number);
    WITH given AS (
        SELECT DISTINCT ON (a.wire_key) a.wire_key, a.body
            FROM unnest(_wire_keys, _bodies) WITH ORDINALITY AS a (wire_key, body, place)
            ORDER BY a.wire_key, a.place
    ), answered AS (
        UPDATE input_request q SET state = 1, settled_at = _now FROM given
            WHERE q.task = _task.number AND q.wire_key = given.wire_key AND q.state = 0
            AND (q.body IS NULL) = _is_external AND q.audience <= _max_audience
            RETURNING q.wire_key, q.journal_key AS key, given.body
    ), recorded AS (
        INSERT INTO journal_entry (task, key, is_input, body, recorded_at)
            SELECT _task.number, key, true, body, CASE WHEN _task.indexed THEN _now END FROM answered
            ON CONFLICT DO NOTHING
            RETURNING octet_length(key) + octet_length(body) AS bytes
    )
    SELECT count(*), array_agg(wire_key), (SELECT sum(bytes) FROM recorded)
        INTO _taken, _answered, _bytes FROM answered;
    IF _bytes > 0 THEN
        INSERT INTO quota_release (principal, tasks, bytes) VALUES (_principal, 0, _bytes);
    END IF;
    IF _taken > 0 THEN
        PERFORM wake_task(_task, _before, _taken, _now);
        -- No source of `respond` reaches named people or a scope, so other tasks are in no inbox.
        IF _task.indexed OR _task.notify IS NOT NULL THEN
            PERFORM settle_inputs_of(_task, _answered, _now);
        END IF;
    END IF;
    RETURN _taken;
END $$;
