-- The audit log.

-- Appends audit events, and keeps only the newest `_max_events`. Transactions append one after the
-- other, so that a reader that has read up to a number has missed no earlier event.
CREATE FUNCTION append_audit_events(
    _tasks text[], _principals text[], _actions text[], _reasons text[], _retention bigint,
    _max_events bigint, _shift bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
BEGIN
    PERFORM pg_advisory_xact_lock('audit_event'::regclass::oid::bigint);
    INSERT INTO audit_event (recorded_at, expires_at, task, principal, action, reason)
        SELECT _now, _now + _retention, e.task, e.principal, e.action, e.reason
        FROM unnest(_tasks, _principals, _actions, _reasons)
            WITH ORDINALITY AS e (task, principal, action, reason, place)
        ORDER BY e.place;
    DELETE FROM audit_event WHERE number <= (SELECT max(number) FROM audit_event) - _max_events;
END $$;
