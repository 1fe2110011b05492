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

-- As before, but what is kept ends as it says.
CREATE OR REPLACE FUNCTION sweep(_limit bigint, _outcome text, _retention bigint, _shift bigint)
RETURNS TABLE (expired text[], principals text[], purged bigint, more boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _now bigint := now_ms(_shift);
    _numbers bigint[];
    _expired text[] := '{}';
    _owners text[] := '{}';
    _task task;
    _principals text[];
    _ended bigint;
    _notes bigint;
    _events bigint;
BEGIN
    WITH old AS MATERIALIZED (
        SELECT id FROM task WHERE purge <= _now AND due IS NULL
            ORDER BY purge LIMIT _limit FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM task t USING old WHERE t.id = old.id RETURNING t.number
    )
    SELECT array_agg(number) INTO _numbers FROM gone;
    IF _numbers IS NOT NULL THEN
        DELETE FROM entry WHERE task = ANY (_numbers);
        DELETE FROM segment WHERE task = ANY (_numbers);
        DELETE FROM question WHERE task = ANY (_numbers);
    END IF;

    FOR _task IN SELECT * FROM task WHERE expires <= _now ORDER BY expires LIMIT _limit
        FOR UPDATE SKIP LOCKED
    LOOP
        IF _task.phase = 4 THEN
            PERFORM finish(_task, _task.kept, false, _retention, _now);
        ELSE
            PERFORM finish(_task, _outcome, true, _retention, _now);
        END IF;
        _expired := _expired || _task.id;
        _owners := _owners || _task.principal;
    END LOOP;

    DELETE FROM note WHERE key IN (SELECT key FROM note WHERE expires <= _now
        ORDER BY expires LIMIT _limit FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS _notes = ROW_COUNT;
    -- Only the oldest are looked at: all are kept for as long, unless that was changed, and then some
    -- are kept for longer.
    DELETE FROM event WHERE number IN (SELECT number FROM event
        WHERE number < (SELECT min(number) FROM event) + _limit AND expires <= _now
        FOR UPDATE SKIP LOCKED);
    GET DIAGNOSTICS _events = ROW_COUNT;

    SELECT count(*), array_agg(DISTINCT e.principal) INTO _ended, _principals
        FROM (SELECT principal FROM ended_task LIMIT 1000) AS e;
    SELECT array_agg(principal) INTO _principals FROM (
        SELECT o.principal FROM open_tasks o WHERE o.principal = ANY (_principals)
            FOR UPDATE SKIP LOCKED) AS counted;
    PERFORM count_out(_principals);
    DELETE FROM open_tasks WHERE principal = ANY (_principals) AND count = 0;

    RETURN QUERY SELECT _expired, _owners, coalesce(cardinality(_numbers), 0)::bigint,
        _limit IN (cardinality(_expired), coalesce(cardinality(_numbers), 0), _notes, _events)
            OR _ended = 1000;
END $$;
