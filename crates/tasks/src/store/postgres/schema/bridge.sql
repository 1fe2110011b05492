-- Bridged calls: calls of clients without tasks that wait for a task. `attendance.rs` describes the
-- same rules. Locks are taken in one order: the task, then its row here.

-- Returns whether a live process attends a run. A liveness lock that can be acquired in shared mode
-- has no holder. Unlike a reclaim, this takes effect at once, because a repeated call must find the
-- run of a killed process. A process whose connection broke may thus share a run with a second call,
-- which executes nothing twice.
CREATE FUNCTION is_attended(_call bridged_call) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN _call.attended_by IS NULL THEN false
        ELSE NOT pg_try_advisory_xact_lock_shared(_call.attended_lock) END
$$;

-- Returns the number of the oldest run that an equal call can join, or else the milliseconds after
-- which it can join one. Both are NULL if there is no run.
CREATE FUNCTION joinable_call(
    _principal text, _scope text, _fingerprint text, _shift bigint, OUT run bigint, OUT wait bigint)
LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _call bridged_call;
BEGIN
    FOR _call IN SELECT c.* FROM bridged_call c JOIN task t ON t.id = c.id
        WHERE c.principal = _principal AND c.scope = _scope AND c.fingerprint = _fingerprint
            AND c.delivered_at IS NULL AND c.joinable_at IS NOT NULL
            AND t.cancel_requested_at IS NULL AND coalesce(t.outcome_kind, 0) < 2
        ORDER BY c.created_at, c.task
    LOOP
        IF is_attended(_call) THEN
            CONTINUE;
        END IF;
        IF _call.joinable_at <= _now THEN
            run := _call.task;
            RETURN;
        END IF;
        wait := least(wait, _call.joinable_at - _now);
    END LOOP;
END $$;

-- Attends the oldest run that an equal call can join. Returns no row if there is none.
CREATE FUNCTION join_call(
    _principal text, _scope text, _fingerprint text, _worker text, _lock bigint, _shift bigint)
RETURNS TABLE (joined text, at bigint, pending integer) LANGUAGE plpgsql AS $$
DECLARE
    _task bigint;
BEGIN
    LOOP
        SELECT run INTO _task FROM joinable_call(_principal, _scope, _fingerprint, _shift);
        IF _task IS NULL THEN
            RETURN;
        END IF;
        RETURN QUERY UPDATE bridged_call c SET attended_by = _worker, attended_lock = _lock,
            attendants = 1, joinable_at = 0, abandon_at = NULL
            WHERE c.task = _task AND c.delivered_at IS NULL AND c.joinable_at <= now_ms(_shift)
                AND NOT is_attended(c)
            RETURNING c.id, c.created_at, c.pending_results;
        IF FOUND THEN
            RETURN;
        END IF;
        -- Another transaction has attended, delivered or abandoned this run first.
    END LOOP;
END $$;

-- Attends a bridged task that the client knows. A delivered task stays unattended. Returns no row if
-- the principal has no such task.
CREATE FUNCTION attend_call(_principal text, _id text, _worker text, _lock bigint)
RETURNS TABLE (at bigint, pending integer) LANGUAGE plpgsql AS $$
DECLARE
    _number bigint;
BEGIN
    SELECT number INTO _number FROM task WHERE id = _id AND principal = _principal FOR UPDATE;
    UPDATE bridged_call c SET
        attendants = CASE WHEN c.attended_by = _worker THEN c.attendants + 1 ELSE 1 END,
        attended_by = _worker, attended_lock = _lock, joinable_at = 0, abandon_at = NULL
        WHERE c.task = _number AND c.delivered_at IS NULL;
    RETURN QUERY SELECT c.created_at, c.pending_results FROM bridged_call c WHERE c.task = _number;
END $$;

-- Records that a call stops waiting. `_return_after` is the time in which the client returns, or
-- NULL. A client that knows the task does not abandon it.
CREATE FUNCTION leave_call(
    _principal text, _id text, _worker text, _is_pending_result boolean, _return_after bigint,
    _shift bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _number bigint;
    _acknowledged boolean;
    _left integer;
BEGIN
    SELECT number, acknowledged_at IS NOT NULL INTO _number, _acknowledged FROM task
        WHERE id = _id AND principal = _principal FOR UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    IF _is_pending_result THEN
        UPDATE task SET acknowledged_at = _now WHERE id = _id AND acknowledged_at IS NULL;
        UPDATE bridged_call SET pending_results = pending_results + 1, abandon_at = NULL
            WHERE task = _number;
    END IF;
    UPDATE bridged_call SET attendants = attendants - 1
        WHERE task = _number AND attended_by = _worker RETURNING attendants INTO _left;
    IF _left = 0 THEN
        UPDATE bridged_call SET attended_by = NULL, attended_lock = NULL,
            joinable_at = coalesce(_now + _return_after, 0),
            abandon_at = CASE WHEN NOT _acknowledged AND NOT _is_pending_result
                THEN _now + abandon_after END
            WHERE task = _number;
    END IF;
END $$;

-- Records that the result of a bridged task was flushed. With `_retention`, an ended task is deleted
-- after that time at the latest.
CREATE FUNCTION deliver_call(_principal text, _id text, _retention bigint, _shift bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _number bigint;
BEGIN
    SELECT number INTO _number FROM task WHERE id = _id AND principal = _principal FOR UPDATE;
    UPDATE bridged_call SET delivered_at = coalesce(delivered_at, _now), attended_by = NULL,
        attended_lock = NULL, attendants = 0, abandon_at = NULL
        WHERE task = _number;
    IF FOUND AND _retention IS NOT NULL THEN
        UPDATE task SET effective_ttl = least(effective_ttl, _now + _retention - created_at)
            WHERE id = _id AND phase = 3;
    END IF;
END $$;

-- Deletes delivered tasks of a principal until `_bytes` are free. Returns the freed bytes.
CREATE FUNCTION evict_calls(_principal text, _bytes bigint, _limit bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _freed bigint := 0;
    _old record;
BEGIN
    FOR _old IN SELECT t.id, t.number, row_bytes(t.request, t.outcome) AS bytes
        FROM bridged_call c JOIN task t ON t.id = c.id
        WHERE c.principal = _principal AND c.delivered_at IS NOT NULL AND t.phase = 3
            AND t.due_at IS NULL
        ORDER BY c.delivered_at LIMIT _limit FOR UPDATE OF t SKIP LOCKED
    LOOP
        EXIT WHEN _freed >= _bytes;
        DELETE FROM task WHERE id = _old.id;
        _freed := _freed
            + delete_tasks(ARRAY[_old.number], ARRAY[_principal], ARRAY[_old.bytes]);
    END LOOP;
    RETURN _freed;
END $$;

-- Starts the abandon timeout of the tasks that a dead process attends. Skips rows that are being
-- changed at this moment. A client that knows the task does not abandon it.
CREATE FUNCTION lose_attendants(_lock bigint, _now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE bridged_call c SET attended_by = NULL, attended_lock = NULL, attendants = 0,
        abandon_at = (SELECT _now + c.abandon_after FROM task t
            WHERE t.id = c.id AND t.acknowledged_at IS NULL)
        WHERE c.task IN (SELECT task FROM bridged_call WHERE attended_lock = _lock
            FOR UPDATE SKIP LOCKED);
END $$;

-- Cancels abandoned tasks. Returns all tasks whose timeout has ended, with a code. 0: the task had
-- ended. 1: its worker must stop. 2: the task has ended now. An open input request restarts the
-- timeout, and its task is not returned.
CREATE FUNCTION cancel_abandoned(_limit bigint, _outcome text, _retention bigint, _now bigint)
RETURNS TABLE (task_id text, owned_by text, what integer) LANGUAGE plpgsql AS $$
DECLARE
    _task task;
BEGIN
    FOR _task IN SELECT t.* FROM bridged_call c JOIN task t ON t.id = c.id
        WHERE c.abandon_at <= _now ORDER BY c.abandon_at LIMIT _limit FOR UPDATE OF t SKIP LOCKED
    LOOP
        IF _task.phase <> 3 AND count_open(_task.number) > 0 THEN
            UPDATE bridged_call SET abandon_at = _now + abandon_after
                WHERE task = _task.number AND abandon_at <= _now;
            CONTINUE;
        END IF;
        -- No call joins a run that is about to stop.
        UPDATE bridged_call SET abandon_at = NULL,
            joinable_at = CASE WHEN _task.phase = 3 THEN joinable_at END
            WHERE task = _task.number AND abandon_at <= _now;
        IF FOUND THEN
            RETURN QUERY SELECT _task.id, _task.principal, CASE WHEN _task.phase = 3 THEN 0
                ELSE cancel_open_task(_task, false, _outcome, _retention, _now) END;
        END IF;
    END LOOP;
END $$;
