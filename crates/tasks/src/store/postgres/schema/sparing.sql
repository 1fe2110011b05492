-- Who is taken for dead. When the database was away, all processes have lost their connections, and the
-- first of them to come back must not take the others for dead before they have had time to come back.
--
-- These functions were other ones in the first version, which knew nothing of that.

ALTER TABLE replica
    ADD COLUMN since bigint,  -- when it has taken its lock
    ADD COLUMN returned boolean NOT NULL DEFAULT false; -- it had lost another

-- Until when a process is not taken for dead that has its lock since then. Locks are lost when the
-- database starts, and probably were if somebody has come back to it.
CREATE FUNCTION spared_until(_since bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN coalesce(_since, 0) < lost THEN lost + 2000 ELSE 0 END FROM (
        SELECT greatest((SELECT max(since) FROM replica WHERE returned),
            (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint) AS lost) AS locks
$$;

-- Has the tasks of processes that are gone looked at. A lock that can be shared is held by nobody;
-- it must have been so for a moment, because a process whose connection broke comes back at once.
CREATE OR REPLACE FUNCTION bury(_shift bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(0);
    _dead replica;
BEGIN
    FOR _dead IN SELECT * FROM replica LOOP
        CONTINUE WHEN NOT pg_try_advisory_xact_lock_shared(_dead.lock);
        PERFORM FROM replica WHERE lock = _dead.lock FOR UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            CONTINUE;
        ELSIF _dead.gone IS NULL THEN
            UPDATE replica SET gone = _now WHERE lock = _dead.lock;
        ELSIF greatest(_dead.gone + 250, spared_until(_dead.since)) <= _now THEN
            -- Those that are locked are being written right now; their lease will end.
            UPDATE task SET due = least(due, _now + _shift) WHERE id IN (
                SELECT id FROM task WHERE owner IS NOT NULL AND owner_lock = _dead.lock
                FOR UPDATE SKIP LOCKED);
            IF NOT EXISTS (SELECT FROM task
                WHERE owner IS NOT NULL AND owner_lock = _dead.lock AND due > _now + _shift)
            THEN
                DELETE FROM replica WHERE lock = _dead.lock;
            END IF;
        END IF;
    END LOOP;
END $$;

-- A process lives, and holds this lock; before it may have held another.
CREATE OR REPLACE FUNCTION live(_lock bigint, _before bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO replica (lock, since, returned) VALUES (_lock, now_ms(0), _before IS NOT NULL);
    IF _before IS NOT NULL THEN
        DELETE FROM replica WHERE lock = _before;
        UPDATE task SET owner_lock = _lock WHERE id IN (
            SELECT id FROM task WHERE owner IS NOT NULL AND owner_lock = _before
            ORDER BY id FOR UPDATE);
    END IF;
END $$;

-- When something is due: what is, or the tasks of a process that is gone. NULL if nothing will be. Who
-- was not found gone before is looked at now, who is spared when that is over.
CREATE OR REPLACE FUNCTION next_due(_shift bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _due bigint;
    _gone bigint;
BEGIN
    SELECT min(due) - now_ms(_shift) INTO _due FROM task WHERE due IS NOT NULL;
    IF _due > 0 THEN
        SELECT min(CASE WHEN gone IS NULL THEN 0
                ELSE greatest(gone + 250, spared_until(since)) - now_ms(0) END) INTO _gone
            FROM replica WHERE pg_try_advisory_xact_lock_shared(lock);
    END IF;
    RETURN least(_due, _gone);
END $$;
