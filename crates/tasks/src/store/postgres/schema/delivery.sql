-- Deliveries of notifications. `input.sql` writes them with their events.

-- Leases due deliveries to a target. The end of a lease is the time at which the delivery is due
-- again.
CREATE FUNCTION lease_deliveries(_target text, _lease bigint, _limit bigint, _shift bigint)
RETURNS SETOF delivery LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
BEGIN
    RETURN QUERY WITH due AS MATERIALIZED (
        SELECT d.number, d.due_at FROM delivery d WHERE d.target = _target AND d.due_at <= _now
            ORDER BY d.due_at, d.number LIMIT _limit FOR UPDATE SKIP LOCKED
    ), leased AS (
        UPDATE delivery d SET due_at = _now + _lease, attempts = d.attempts + 1
            FROM due WHERE d.number = due.number RETURNING d.*
    )
    SELECT l.* FROM leased l JOIN due ON due.number = l.number ORDER BY due.due_at, due.number;
END $$;

-- Records a failed attempt. Without `_retry_after`, the delivery is dead. Has no effect if another
-- sender has leased the delivery since this attempt.
CREATE FUNCTION fail_delivery(
    _id text, _attempt integer, _retry_after bigint, _error text, _shift bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE delivery SET due_at = now_ms(_shift) + _retry_after, error = _error
        WHERE id = _id AND attempts = _attempt;
END $$;

-- Makes a delivery due now, with all attempts. Returns whether it exists.
CREATE FUNCTION send_delivery_again(_id text, _shift bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE delivery SET due_at = now_ms(_shift), attempts = 0, error = NULL WHERE id = _id;
    RETURN FOUND;
END $$;
