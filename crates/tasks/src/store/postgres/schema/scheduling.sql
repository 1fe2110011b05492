-- Who runs a task, and what is done for all of them at once. Nothing here waits for a lock that
-- somebody else may hold for long, but `renew_tasks` and `release_tasks`, which lock by name.

CREATE FUNCTION claim_tasks(
    _worker text, _lock bigint, _lease bigint, _limit bigint, _shift bigint)
RETURNS TABLE (id text, epoch bigint, principal text, kind text, request text, begun boolean,
    crashes integer, cancel_requested boolean, reasked text, keys text[], bodies text[],
    scopes text[], ordinals bigint[], blocks text[], asked text[],
    again_keys text[], again_counts bigint[], progress text, outcome text, lost boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _now bigint := now_ms(_shift);
    _ids text[];
    _begun boolean[];
    _lost boolean[];
BEGIN
    PERFORM bury(_shift);
    WITH due AS MATERIALIZED (
        SELECT t.id, t.phase, t.begun, t.due, t.number, t.owner IS NOT NULL AS lost FROM task t WHERE t.due <= _now
            ORDER BY t.due LIMIT _limit FOR UPDATE SKIP LOCKED
    ), taken AS (
        -- Whoever had it has not renewed its lease: that worker is lost. What has ended stays so,
        -- also while it is cleaned up after.
        UPDATE task t SET phase = CASE due.phase WHEN 3 THEN 3 ELSE 1 END, owner = _worker,
            owner_lock = _lock, epoch = t.epoch + 1, due = _now + _lease, begun = true,
            crashes = t.crashes + due.lost::integer
            FROM due WHERE t.id = due.id RETURNING t.id, due.begun, due.due, due.number, due.lost
    )
    SELECT array_agg(id ORDER BY due, number), array_agg(begun ORDER BY due, number),
            array_agg(lost ORDER BY due, number) INTO _ids, _begun, _lost FROM taken;
    IF _ids IS NULL THEN
        RETURN;
    END IF;
    -- A statement of its own: it sees what was committed until the rows were locked.
    RETURN QUERY SELECT t.id, t.epoch, t.principal, t.kind, t.request, c.begun, t.crashes,
            t.cancel_requested IS NOT NULL, t.reasked, e.keys, e.bodies,
            s.scopes, s.ordinals, s.blocks, q.asked, again.keys, again.counts, t.progress, t.outcome, c.lost
        FROM unnest(_ids, _begun, _lost) WITH ORDINALITY AS c (id, begun, lost, place)
        JOIN task t ON t.id = c.id
        CROSS JOIN LATERAL (SELECT array_agg(key) AS keys, array_agg(body) AS bodies
            FROM entry WHERE task = t.number) AS e
        CROSS JOIN LATERAL (SELECT array_agg(scope ORDER BY number) AS scopes,
            array_agg(ordinal ORDER BY number) AS ordinals,
            array_agg(body ORDER BY number) AS blocks
            FROM segment WHERE task = t.number) AS s
        CROSS JOIN LATERAL (SELECT array_agg(key ORDER BY place) AS asked
            FROM question WHERE task = t.number AND state = 0) AS q
        CROSS JOIN LATERAL (SELECT array_agg(k.key) AS keys, array_agg(k.count) AS counts FROM (
            SELECT key, count(*) - 1 AS count FROM question WHERE task = t.number
                GROUP BY key HAVING count(*) > 1) AS k) AS again
        ORDER BY c.place;
END $$;

CREATE FUNCTION renew_tasks(_worker text, _lock bigint, _lease bigint, _shift bigint)
RETURNS TABLE (id text, epoch bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _until bigint := now_ms(_shift) + _lease;
BEGIN
    PERFORM FROM task t WHERE t.owner = _worker ORDER BY t.id FOR UPDATE;
    RETURN QUERY UPDATE task t SET due = _until, owner_lock = _lock
        WHERE t.owner = _worker RETURNING t.id, t.epoch;
END $$;

CREATE FUNCTION release_tasks(_worker text, _shift bigint)
RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM task t WHERE t.owner = _worker ORDER BY t.id FOR UPDATE;
    RETURN QUERY UPDATE task t SET phase = CASE t.phase WHEN 3 THEN 3 ELSE 0 END,
        owner = NULL, owner_lock = NULL, due = now_ms(_shift) WHERE t.owner = _worker RETURNING t.id;
END $$;
