-- Claims, leases and liveness. Only `renew_tasks` and `release_tasks` wait for locks of other
-- transactions. Both lock tasks by ID.
--
-- After an outage of the database, all processes have lost their connections. The first process to
-- reconnect must give the others time to reconnect before it reclaims their tasks.

-- Returns the time until which a process whose lock dates from `_since` counts as alive. A restart
-- of the database releases all locks, and a reconnected process indicates an outage.
CREATE FUNCTION restart_grace_until(_since bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN coalesce(_since, 0) < lost THEN lost + 2000 ELSE 0 END FROM (
        SELECT greatest((SELECT max(since) FROM replica WHERE returned),
            (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint) AS lost) AS locks
$$;

-- Makes the tasks of dead processes due, and their attended runs unattended. A liveness lock that can be acquired in shared mode has no
-- holder. It must have been free for a moment, because a process whose connection broke reconnects
-- quickly.
CREATE FUNCTION reclaim_dead_workers(_shift bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(0);
    _dead replica;
BEGIN
    FOR _dead IN SELECT * FROM replica LOOP
        CONTINUE WHEN NOT pg_try_advisory_xact_lock_shared(_dead.lock);
        PERFORM FROM replica WHERE lock = _dead.lock FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            CONTINUE;
        ELSIF _dead.lock_free_since IS NULL THEN
            UPDATE replica SET lock_free_since = _now WHERE lock = _dead.lock;
        ELSIF greatest(_dead.lock_free_since + 250, restart_grace_until(_dead.since)) <= _now THEN
            -- Skips tasks that are being committed at this moment; their leases expire later.
            UPDATE task SET due_at = least(due_at, _now + _shift) WHERE id IN (
                SELECT id FROM task WHERE worker_id IS NOT NULL AND worker_lock = _dead.lock
                FOR UPDATE SKIP LOCKED);
            PERFORM lose_attendants(_dead.lock, _now + _shift);
            IF NOT EXISTS (SELECT FROM task
                WHERE worker_id IS NOT NULL AND worker_lock = _dead.lock AND due_at > _now + _shift)
                AND NOT EXISTS (SELECT FROM bridged_call WHERE attended_lock = _dead.lock)
            THEN
                DELETE FROM replica WHERE lock = _dead.lock;
            END IF;
        END IF;
    END LOOP;
END $$;

-- Registers a process with its liveness lock. `_before` is its former lock, or NULL.
CREATE FUNCTION register_replica(_lock bigint, _before bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO replica (lock, since, returned) VALUES (_lock, now_ms(0), _before IS NOT NULL);
    IF _before IS NOT NULL THEN
        DELETE FROM replica WHERE lock = _before;
        UPDATE task SET worker_lock = _lock WHERE id IN (
            SELECT id FROM task WHERE worker_id IS NOT NULL AND worker_lock = _before
            ORDER BY id FOR UPDATE);
        UPDATE bridged_call SET attended_lock = _lock WHERE task IN (
            SELECT task FROM bridged_call WHERE attended_lock = _before ORDER BY task FOR UPDATE);
    END IF;
END $$;

-- Claims due tasks. `_principals` are the principals of which the worker runs tasks, and `_rooms`
-- their remaining numbers of tasks. The limit for all others is `_room`. The claim skips `_full`
-- principals.
CREATE FUNCTION claim_tasks(
    _worker text, _lock bigint, _lease bigint, _limit bigint, _wanted text[], _full text[],
    _principals text[], _rooms bigint[], _room bigint, _shift bigint)
RETURNS TABLE (id text, epoch bigint, principal text, tool text, request text, started boolean,
    crash_count integer, is_cancel_requested boolean, reissue_counts text, keys text[], bodies text[],
    scopes text[], ordinals bigint[], blocks text[], asked text[],
    again_keys text[], again_counts bigint[], progress text, outcome text, lost boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _now bigint := now_ms(_shift);
    _ids text[];
    _started boolean[];
    _lost boolean[];
BEGIN
    PERFORM reclaim_dead_workers(_shift);
    WITH wanted AS MATERIALIZED (
        SELECT t.id, t.phase, t.started, t.due_at, t.number, false AS lost FROM task t
            WHERE t.id = ANY (_wanted) AND t.worker_id IS NULL AND t.phase IN (0, 2)
            FOR UPDATE SKIP LOCKED
    ), candidates AS MATERIALIZED (
        SELECT t.id, t.phase, t.started, t.due_at, t.number, t.worker_id IS NOT NULL AS lost, t.principal
            FROM task t
            WHERE t.due_at <= _now AND t.principal <> ALL (_full) AND t.id <> ALL (_wanted)
            ORDER BY t.due_at LIMIT _limit FOR UPDATE SKIP LOCKED
    ), placed AS (
        SELECT n.*, row_number() OVER (PARTITION BY n.principal ORDER BY n.due_at, n.number) AS place
            FROM candidates n
    ), chosen AS (
        SELECT w.id, w.phase, w.started, w.due_at, w.number, w.lost FROM wanted w
        UNION ALL
        SELECT p.id, p.phase, p.started, p.due_at, p.number, p.lost FROM placed p
            LEFT JOIN unnest(_principals, _rooms) AS r (principal, room) ON r.principal = p.principal
            WHERE p.place <= coalesce(r.room, _room)
    ), taken AS (
        -- A due task that still has a worker has an expired lease, which counts as a crash. An
        -- ended task keeps its phase during its cleanup.
        UPDATE task t SET phase = CASE c.phase WHEN 3 THEN 3 ELSE 1 END, worker_id = _worker,
            worker_lock = _lock, epoch = t.epoch + 1, due_at = _now + _lease, started = true,
            crash_count = t.crash_count + c.lost::integer
            FROM chosen c WHERE t.id = c.id RETURNING t.id, c.started, c.due_at, c.number, c.lost
    )
    SELECT array_agg(id ORDER BY due_at, number), array_agg(started ORDER BY due_at, number),
            array_agg(lost ORDER BY due_at, number) INTO _ids, _started, _lost FROM taken;
    IF _ids IS NULL THEN
        RETURN;
    END IF;
    -- A separate statement, because it sees everything that was committed before the rows were
    -- locked.
    RETURN QUERY SELECT t.id, t.epoch, t.principal, t.tool, t.request, c.started, t.crash_count,
            t.cancel_requested_at IS NOT NULL, t.reissue_counts, e.keys, e.bodies,
            s.scopes, s.ordinals, s.blocks, q.asked, again.keys, again.counts, t.progress, t.outcome, c.lost
        FROM unnest(_ids, _started, _lost) WITH ORDINALITY AS c (id, started, lost, place)
        JOIN task t ON t.id = c.id
        CROSS JOIN LATERAL (SELECT array_agg(key) AS keys, array_agg(body) AS bodies
            FROM journal_entry WHERE task = t.number) AS e
        CROSS JOIN LATERAL (SELECT array_agg(scope ORDER BY number) AS scopes,
            array_agg(ordinal ORDER BY number) AS ordinals,
            array_agg(body ORDER BY number) AS blocks
            FROM segment WHERE task = t.number) AS s
        CROSS JOIN LATERAL (SELECT array_agg(journal_key ORDER BY ordinal) AS asked
            FROM input_request WHERE task = t.number AND state = 0) AS q
        CROSS JOIN LATERAL (SELECT array_agg(k.key) AS keys, array_agg(k.count) AS counts FROM (
            SELECT journal_key AS key, count(*) - 1 AS count FROM input_request WHERE task = t.number
                GROUP BY journal_key HAVING count(*) > 1) AS k) AS again
        ORDER BY c.place;
END $$;

-- Renews all leases of a worker.
CREATE FUNCTION renew_tasks(_worker text, _lock bigint, _lease bigint, _shift bigint)
RETURNS TABLE (id text, epoch bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _until bigint := now_ms(_shift) + _lease;
BEGIN
    PERFORM FROM task t WHERE t.worker_id = _worker ORDER BY t.id FOR UPDATE;
    RETURN QUERY UPDATE task t SET due_at = _until, worker_lock = _lock
        WHERE t.worker_id = _worker RETURNING t.id, t.epoch;
END $$;

-- Releases all tasks of a worker.
CREATE FUNCTION release_tasks(_worker text, _shift bigint)
RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM task t WHERE t.worker_id = _worker ORDER BY t.id FOR UPDATE;
    RETURN QUERY UPDATE task t SET phase = CASE t.phase WHEN 3 THEN 3 ELSE 0 END,
        worker_id = NULL, worker_lock = NULL, due_at = now_ms(_shift) WHERE t.worker_id = _worker RETURNING t.id;
END $$;

-- Returns the milliseconds until a task is due, or until the tasks of a dead process are; NULL if
-- there is neither. A process whose lock has just become free counts immediately. A process within
-- its restart grace counts at the end of the grace.
CREATE FUNCTION next_due(_except text[], _shift bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _due bigint;
    _gone bigint;
BEGIN
    SELECT due_at - now_ms(_shift) INTO _due FROM task
        WHERE due_at IS NOT NULL AND principal <> ALL (_except) ORDER BY due_at LIMIT 1;
    IF _due > 0 THEN
        SELECT min(CASE WHEN lock_free_since IS NULL THEN 0
                ELSE greatest(lock_free_since + 250, restart_grace_until(since)) - now_ms(0) END) INTO _gone
            FROM replica WHERE pg_try_advisory_xact_lock_shared(lock);
    END IF;
    RETURN least(_due, _gone);
END $$;
