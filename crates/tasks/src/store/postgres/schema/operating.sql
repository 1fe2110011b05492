-- What operators do. Who looks for tasks may look through all of them: an index for it would cost each
-- task that is made.

CREATE FUNCTION find_tasks(
    _phase smallint, _kind text, _principal text, _before bigint,
    _after_created bigint, _after_id text, _limit bigint)
RETURNS TABLE (found text) LANGUAGE plpgsql STABLE SET enable_seqscan = on AS $$
BEGIN
    RETURN QUERY SELECT id FROM task
        WHERE (_phase IS NULL OR phase = _phase) AND (_kind IS NULL OR kind = _kind)
        AND (_principal IS NULL OR principal = _principal) AND created < _before
        AND (created, id) < (_after_created, _after_id COLLATE "C")
        ORDER BY created DESC, id DESC LIMIT _limit;
END $$;

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

CREATE FUNCTION forget_tasks(_numbers bigint[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM entry WHERE task = ANY (_numbers);
    DELETE FROM segment WHERE task = ANY (_numbers);
    DELETE FROM question WHERE task = ANY (_numbers);
END $$;

-- Forgets a task: which phase it was in, whose it was, whether it was owed a clean-up, and whether it is
-- gone.
CREATE FUNCTION purge_task(_id text, _force boolean)
RETURNS TABLE (was smallint, owned_by text, owed boolean, gone boolean) LANGUAGE plpgsql AS $$
DECLARE
    _task task;
    _owed boolean;
    _gone boolean;
BEGIN
    SELECT * INTO _task FROM task WHERE id = _id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    _owed := _task.phase = 3 AND _task.due IS NOT NULL;
    _gone := _force OR (_task.phase = 3 AND NOT _owed);
    IF _gone THEN
        IF _task.phase <> 3 THEN
            INSERT INTO ended_task (principal) VALUES (_task.principal);
        END IF;
        DELETE FROM task WHERE id = _id;
        PERFORM forget_tasks(ARRAY[_task.number]);
    END IF;
    RETURN QUERY SELECT _task.phase, _task.principal, _owed, _gone;
END $$;

-- Forgets what has ended before a time.
CREATE FUNCTION purge_ended(_before bigint, _limit bigint)
RETURNS TABLE (name text, owned_by text) LANGUAGE plpgsql SET enable_seqscan = on AS $$
DECLARE
    _numbers bigint[];
    _names text[];
    _owners text[];
BEGIN
    WITH old AS MATERIALIZED (
        SELECT id FROM task WHERE phase = 3 AND due IS NULL AND updated < _before
            LIMIT _limit FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM task t USING old WHERE t.id = old.id RETURNING t.number, t.id, t.principal
    )
    SELECT array_agg(number), array_agg(id), array_agg(principal)
        INTO _numbers, _names, _owners FROM gone;
    IF _numbers IS NOT NULL THEN
        PERFORM forget_tasks(_numbers);
        RETURN QUERY SELECT * FROM unnest(_names, _owners);
    END IF;
END $$;
