-- Votes of people on input requests.

-- Records a vote whose outcome was computed from a request in its issue `_ordinal` with `_votes`
-- votes. With `_body`, the vote settles the request, and `_body` is its journal entry. Returns 0 if
-- the request has changed meanwhile, 1 if the vote was recorded, and 2 if the principal would exceed
-- its byte limit.
CREATE FUNCTION record_vote(
    _id text, _wire_key text, _ordinal bigint, _votes bigint,
    _person text,              -- NULL for an operator, who leaves no vote
    _accepts boolean, _reason text, _channel text, _saw_definition boolean, _body text,
    _max_bytes bigint,
    _audit text[],             -- task, principal, action, reason and worker of the audit event
    _retention bigint, _shift bigint)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    _now bigint;
    _task task;
    _input input_request;
    _before bigint;
    _vote bigint;              -- bytes of the vote
    _answer bigint;            -- bytes of the journal entry
BEGIN
    SELECT * INTO _task FROM task WHERE id = _id FOR UPDATE;
    -- The time is read after the lock is acquired, because the timeout may end before.
    _now := now_ms(_shift);
    SELECT * INTO _input FROM input_request WHERE task = _task.number AND wire_key = _wire_key
        AND ordinal = _ordinal AND state = 0 AND (due_at IS NULL OR due_at > _now);
    IF NOT FOUND OR _votes <> (SELECT count(*) FROM vote
        WHERE task = _task.number AND wire_key = _wire_key)
    THEN
        RETURN 0;
    END IF;
    _vote := coalesce(vote_bytes(_person, _reason, _channel), 0);
    _answer := coalesce(octet_length(_input.journal_key) + octet_length(_body), 0);
    IF stored_bytes(_task.principal) + _vote + _answer > _max_bytes THEN
        RETURN 2;
    END IF;
    IF _person IS NOT NULL THEN
        INSERT INTO vote (task, wire_key, person, id, accepts, voted_at, reason, channel,
                saw_definition)
            VALUES (_task.number, _wire_key, _person, _id, _accepts, _now, _reason, _channel,
                _saw_definition);
    END IF;
    IF _body IS NOT NULL THEN
        _before := count_open(_task.number);
        UPDATE input_request SET state = 1, settled_at = _now
            WHERE task = _task.number AND wire_key = _wire_key;
        INSERT INTO journal_entry (task, key, is_input, body, recorded_at)
            VALUES (_task.number, _input.journal_key, true, _body,
                CASE WHEN _task.indexed THEN _now END)
            ON CONFLICT DO NOTHING;
        IF NOT FOUND THEN
            _answer := 0;
        END IF;
        PERFORM wake_task(_task, _before, 1, _now);
        PERFORM settle_inputs_of(_task, ARRAY[_wire_key], _now);
    END IF;
    INSERT INTO quota_release (principal, tasks, bytes)
        VALUES (_task.principal, 0, _vote + _answer);
    IF _audit IS NOT NULL THEN
        PERFORM lock_audit_events();
        INSERT INTO audit_event (recorded_at, expires_at, task, principal, action, reason, worker_id)
            VALUES (_now, _now + _retention, _audit[1], _audit[2], _audit[3], _audit[4], _audit[5]);
    END IF;
    RETURN 1;
END $$;
