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
    _ttl bigint;
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
        UPDATE input_request q SET state = 1 FROM given
            WHERE q.task = _task.number AND q.wire_key = given.wire_key AND q.state = 0
            AND (q.body IS NULL) = _is_external AND q.audience <= _max_audience
            RETURNING q.journal_key AS key, given.body
    ), recorded AS (
        INSERT INTO journal_entry (task, key, is_input, body)
            SELECT _task.number, key, true, body FROM answered ON CONFLICT DO NOTHING
            RETURNING octet_length(key) + octet_length(body) AS bytes
    )
    SELECT count(*), (SELECT sum(bytes) FROM recorded) INTO _taken, _bytes FROM answered;
    IF _bytes > 0 THEN
        INSERT INTO quota_release (principal, tasks, bytes) VALUES (_principal, 0, _bytes);
    END IF;
    IF _taken > 0 THEN
        _ttl := effective_ttl(_task, _before, _before - _taken, _now);
        -- A response queues a parked task, because no worker has it.
        UPDATE task SET updated_at = greatest(_now, updated_at + 1),
            due_at = CASE phase WHEN 2 THEN _now ELSE due_at END,
            phase = CASE phase WHEN 2 THEN 0 ELSE phase END,
            effective_ttl = _ttl
            WHERE id = _id;
    END IF;
    RETURN _taken;
END $$;
