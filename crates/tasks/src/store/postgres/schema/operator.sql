-- Operations of operators.

-- Lists tasks of all principals. May scan the whole table, because an index would slow down every
-- creation.
CREATE FUNCTION operator_list_tasks(
    _phase smallint, _tool text, _principal text, _before bigint,
    _after_created bigint, _after_id text, _limit bigint,
    _outcome_kind smallint)
RETURNS TABLE (found text) LANGUAGE plpgsql STABLE SET enable_seqscan = on AS $$
BEGIN
    RETURN QUERY SELECT id FROM task
        WHERE (_phase IS NULL OR phase = _phase) AND (_tool IS NULL OR tool = _tool)
        AND (_principal IS NULL OR principal = _principal) AND created_at < _before
        AND (_outcome_kind IS NULL OR outcome_kind = _outcome_kind)
        AND (created_at, id) < (_after_created, _after_id COLLATE "C")
        ORDER BY created_at DESC, id DESC LIMIT _limit;
END $$;

-- Queues a quarantined task and restarts its TTL. Returns its former phase and its principal.
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
        _task.max_ttl := _task.max_ttl + _now - _task.created_at;
        IF _task.ttl IS NULL THEN
            _task.effective_ttl := NULL;
        ELSIF count_open(_task.number) > 0 THEN
            _task.effective_ttl := greatest(_task.ttl, _task.max_ttl);
        ELSE
            _task.effective_ttl := _task.ttl + _now - _task.created_at;
        END IF;
        UPDATE task SET phase = 0, quarantine_outcome = NULL, due_at = _now, crash_count = 0, status_message = NULL,
            max_ttl = _task.max_ttl, effective_ttl = _task.effective_ttl, updated_at = greatest(_now, updated_at + 1)
            WHERE id = _id;
    END IF;
    RETURN QUERY SELECT _task.phase, _task.principal;
END $$;

-- Deletes a task. Returns its phase, its principal, whether it needs a cleanup, and whether it was
-- deleted.
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
    _owed := _task.phase = 3 AND _task.due_at IS NOT NULL;
    _gone := _force OR (_task.phase = 3 AND NOT _owed);
    IF _gone THEN
        IF _task.phase <> 3 THEN
            INSERT INTO quota_release (principal) VALUES (_task.principal);
        END IF;
        DELETE FROM task WHERE id = _id;
        PERFORM delete_tasks(ARRAY[_task.number], ARRAY[_task.principal],
            ARRAY[row_bytes(_task.request, _task.outcome)]);
    END IF;
    RETURN QUERY SELECT _task.phase, _task.principal, _owed, _gone;
END $$;

-- Deletes tasks that ended before a time.
CREATE FUNCTION purge_ended(_before bigint, _limit bigint)
RETURNS TABLE (name text, owned_by text) LANGUAGE plpgsql SET enable_seqscan = on AS $$
DECLARE
    _numbers bigint[];
    _names text[];
    _owners text[];
    _bytes bigint[];
BEGIN
    WITH old AS MATERIALIZED (
        SELECT id FROM task WHERE phase = 3 AND due_at IS NULL AND updated_at < _before
            LIMIT _limit FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM task t USING old WHERE t.id = old.id RETURNING t.number, t.id, t.principal,
            row_bytes(t.request, t.outcome) AS bytes
    )
    SELECT array_agg(number), array_agg(id), array_agg(principal), array_agg(bytes)
        INTO _numbers, _names, _owners, _bytes FROM gone;
    IF _numbers IS NOT NULL THEN
        PERFORM delete_tasks(_numbers, _owners, _bytes);
        RETURN QUERY SELECT * FROM unnest(_names, _owners);
    END IF;
END $$;
