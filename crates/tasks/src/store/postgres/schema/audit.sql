-- The audit log.

-- Prevents other transactions from appending events until the end of this one, so that a reader
-- that has read up to a number has missed no earlier event. This lock is the last one that a
-- transaction takes.
CREATE FUNCTION lock_audit_events() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock('audit_event'::regclass::oid::bigint);
END $$;

-- Appends the audit event of the end of a task. Its time is that of the end, because a trigger does
-- not know the offset of a test.
CREATE FUNCTION append_end_event() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    _audit json := NEW.end_audit::json;
BEGIN
    PERFORM lock_audit_events();
    INSERT INTO audit_event (recorded_at, expires_at, task, principal, action, reason)
        VALUES (NEW.updated_at, NEW.updated_at + (_audit->>1)::bigint, _audit->>0, NEW.principal,
            'ended', (ARRAY['completed', 'failed', 'cancelled', 'expired'])[NEW.outcome_kind + 1]);
    RETURN NULL;
END $$;

-- Deferred until the commit, so that the transaction takes the lock of the audit log last.
CREATE CONSTRAINT TRIGGER audit_end AFTER UPDATE OF phase ON task
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.end_audit IS NOT NULL AND NEW.phase = 3 AND OLD.phase <> 3)
    EXECUTE FUNCTION append_end_event();

-- Appends audit events, and keeps only the newest `_max_events`.
CREATE FUNCTION append_audit_events(
    _tasks text[], _principals text[], _actions text[], _reasons text[], _workers text[],
    _retention bigint, _max_events bigint, _shift bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
BEGIN
    PERFORM lock_audit_events();
    INSERT INTO audit_event (recorded_at, expires_at, task, principal, action, reason, worker_id)
        SELECT _now, _now + _retention, e.task, e.principal, e.action, e.reason, e.worker
        FROM unnest(_tasks, _principals, _actions, _reasons, _workers)
            WITH ORDINALITY AS e (task, principal, action, reason, worker, place)
        ORDER BY e.place;
    DELETE FROM audit_event WHERE number <= (SELECT max(number) FROM audit_event) - _max_events;
END $$;
