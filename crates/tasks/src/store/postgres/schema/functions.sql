-- What is done to a task, each in one call, so that it takes one way to the database and back.
--
-- Whoever changes a task locks its row first; each statement of a function then sees everything that
-- was committed before. Locks are taken in one order: counts of principals, by principal; then tasks,
-- by name. So nobody waits in a circle. All but the simplest are in PL/pgSQL, because it keeps its
-- plans from call to call.

CREATE FUNCTION now_ms(_shift bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + _shift
$$;

-- Which of these are too many, if those that are known need no room.
CREATE FUNCTION over_quota(_principals text[], _quotas bigint[], _known bigint[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        WITH wanted AS (
            SELECT w.*, count(*) OVER (PARTITION BY w.principal) AS counted
                FROM unnest(_principals, _quotas) WITH ORDINALITY AS w (principal, quota, place)
        ), new AS (
            SELECT w.*, row_number() OVER (PARTITION BY w.principal ORDER BY w.place) AS nth
                FROM wanted w WHERE w.place <> ALL (_known)
        )
        SELECT coalesce(array_agg(n.place), '{}') FROM new n
            JOIN open_tasks o ON o.principal = n.principal
            WHERE o.count - n.counted + n.nth > n.quota);
END $$;

-- Which of these are there already.
CREATE FUNCTION known_tasks(_ids text[], _principals text[], _once_keys text[])
RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT coalesce(array_agg(w.place), '{}')
        FROM unnest(_ids, _principals, _once_keys)
            WITH ORDINALITY AS w (id, principal, once_key, place)
        WHERE (SELECT true FROM task t WHERE t.id = w.id)
        OR (w.once_key IS NOT NULL AND (SELECT true FROM task t
            WHERE t.principal = w.principal AND t.once_key = w.once_key)));
END $$;

-- What a task's ttl is when this many questions were open, and this many are now.
CREATE FUNCTION lasting(_task task, _before bigint, _after bigint, _now bigint)
RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN _task.ttl IS NULL THEN NULL
        WHEN _before = 0 AND _after > 0 THEN greatest(_task.ttl, _task.max_ttl)
        WHEN _before > 0 AND _after = 0 THEN
            least(_now - _task.created + _task.ttl, greatest(_task.ttl, _task.max_ttl))
        ELSE _task.lasts END
$$;

CREATE FUNCTION count_open(_number bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT count(*) FROM question WHERE task = _number AND state = 0);
END $$;

-- Cancels: 0 it was over before, 1 its worker is asked to stop, 2 it is over; NULL if there is none.
CREATE FUNCTION cancel_task(
    _principal text, _id text, _at_once boolean, _outcome text, _retention bigint, _shift bigint)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _task task;
BEGIN
    SELECT * INTO _task FROM task WHERE id = _id AND principal = _principal FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    ELSIF _task.phase = 3 THEN
        RETURN 0;
    END IF;
    _task.cancel_requested := coalesce(_task.cancel_requested, _now);
    IF _task.phase <> 1 OR _at_once THEN
        PERFORM finish(_task, _outcome, true, _retention, _now);
        RETURN 2;
    END IF;
    UPDATE task SET cancel_requested = _task.cancel_requested,
        updated = greatest(_now, updated + 1) WHERE id = _id;
    RETURN 1;
END $$;
