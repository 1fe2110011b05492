-- A task that was stopped for an operator: phase 4. Nobody is due to look at it; when its time is over
-- it ends as it would have, had it not been kept.

ALTER TABLE task ADD COLUMN kept text; -- how it ends then

-- Keeps a task that its worker has written, in the same statement; one that was asked to stop is queued.
CREATE FUNCTION keep_task(_id text, _outcome text, _hold bigint, _shift bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
BEGIN
    UPDATE task SET owner = NULL, owner_lock = NULL,
        phase = CASE WHEN cancel_requested IS NULL THEN 4 ELSE 0 END,
        due = CASE WHEN cancel_requested IS NOT NULL THEN _now END,
        kept = CASE WHEN cancel_requested IS NULL THEN _outcome END,
        lasts = CASE WHEN cancel_requested IS NULL AND lasts IS NOT NULL
            THEN greatest(lasts, _now - created + _hold) ELSE lasts END
        WHERE id = _id;
    RETURN FOUND;
END $$;

-- As before, but an answer does not shorten the time for which a task is kept.
CREATE OR REPLACE FUNCTION lasting(_task task, _before bigint, _after bigint, _now bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN _task.ttl IS NULL THEN NULL
        WHEN _task.phase = 4 THEN _task.lasts
        WHEN _before = 0 AND _after > 0 THEN greatest(_task.ttl, _task.max_ttl)
        WHEN _before > 0 AND _after = 0 THEN
            least(_now - _task.created + _task.ttl, greatest(_task.ttl, _task.max_ttl))
        ELSE _task.lasts END
$$;

