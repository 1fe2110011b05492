-- What operators do.

-- Queues a task that is kept; its time begins anew. Which phase it was in, and whose it is.
CREATE FUNCTION retry_task(_id text, _shift bigint)
RETURNS TABLE (was smallint, owned_by text) LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _task task;
BEGIN
    SELECT * INTO _task FROM task WHERE id = _id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF _task.phase = 4 THEN
        _task.max_ttl := _task.max_ttl + _now - _task.created;
        IF _task.ttl IS NULL THEN
            _task.lasts := NULL;
        ELSIF count_open(_task.number) > 0 THEN
            _task.lasts := greatest(_task.ttl, _task.max_ttl);
        ELSE
            _task.lasts := _task.ttl + _now - _task.created;
        END IF;
        UPDATE task SET phase = 0, kept = NULL, due = _now, crashes = 0, message = NULL,
            max_ttl = _task.max_ttl, lasts = _task.lasts, updated = greatest(_now, updated + 1)
            WHERE id = _id;
    END IF;
    RETURN QUERY SELECT _task.phase, _task.principal;
END $$;

