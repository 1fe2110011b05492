-- Who gets what is due. A worker names the principals of whom it runs something, and how many more of
-- theirs it takes; of all others it takes `_room`. Principals with no room left cost a look at their rows
-- that are due, of which quotas allow no more than so many.
--
-- The function of the first version knew nothing of that. It stays for replicas that still use it.

CREATE FUNCTION claim_tasks(
    _worker text, _lock bigint, _lease bigint, _limit bigint, _wanted text[], _full text[],
    _principals text[], _rooms bigint[], _room bigint, _shift bigint)
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
    WITH wanted AS MATERIALIZED (
        SELECT t.id, t.phase, t.begun, t.due, t.number, false AS lost FROM task t
            WHERE t.id = ANY (_wanted) AND t.owner IS NULL AND t.phase IN (0, 2)
            FOR UPDATE SKIP LOCKED
    ), due AS MATERIALIZED (
        SELECT t.id, t.phase, t.begun, t.due, t.number, t.owner IS NOT NULL AS lost, t.principal
            FROM task t
            WHERE t.due <= _now AND t.principal <> ALL (_full) AND t.id <> ALL (_wanted)
            ORDER BY t.due LIMIT _limit FOR UPDATE SKIP LOCKED
    ), placed AS (
        SELECT due.*, row_number() OVER (PARTITION BY due.principal ORDER BY due.due, due.number) AS place
            FROM due
    ), chosen AS (
        SELECT w.id, w.phase, w.begun, w.due, w.number, w.lost FROM wanted w
        UNION ALL
        SELECT p.id, p.phase, p.begun, p.due, p.number, p.lost FROM placed p
            LEFT JOIN unnest(_principals, _rooms) AS r (principal, room) ON r.principal = p.principal
            WHERE p.place <= coalesce(r.room, _room)
    ), taken AS (
        -- Whoever had it has not renewed its lease: that worker is lost. What has ended stays so,
        -- also while it is cleaned up after.
        UPDATE task t SET phase = CASE c.phase WHEN 3 THEN 3 ELSE 1 END, owner = _worker,
            owner_lock = _lock, epoch = t.epoch + 1, due = _now + _lease, begun = true,
            crashes = t.crashes + c.lost::integer
            FROM chosen c WHERE t.id = c.id RETURNING t.id, c.begun, c.due, c.number, c.lost
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

-- As before, but of none of these principals.
CREATE FUNCTION next_due(_except text[], _shift bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _due bigint;
    _gone bigint;
BEGIN
    SELECT due - now_ms(_shift) INTO _due FROM task
        WHERE due IS NOT NULL AND principal <> ALL (_except) ORDER BY due LIMIT 1;
    IF _due > 0 THEN
        SELECT min(CASE WHEN gone IS NULL THEN 0
                ELSE greatest(gone + 250, spared_until(since)) - now_ms(0) END) INTO _gone
            FROM replica WHERE pg_try_advisory_xact_lock_shared(lock);
    END IF;
    RETURN least(_due, _gone);
END $$;
