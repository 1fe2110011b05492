-- Counts of ended tasks.

-- Returns the sums of two lists of counts.
CREATE FUNCTION add_counts(_one bigint[], _other bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE AS $$
    SELECT array_agg(coalesce(c.one, 0) + coalesce(c.other, 0) ORDER BY c.place)
        FROM unnest(_one, _other) WITH ORDINALITY AS c (one, other, place)
$$;

CREATE AGGREGATE sum_counts(bigint[]) (sfunc = add_counts, stype = bigint[], initcond = '{}');

-- Adds counts to minutes. `_counts` has the counts of all rows, `_width` of each. Each row has
-- another key. Also merges minutes that are older than `_minutes` into their hours, and deletes
-- hours that are older than `_hours`.
CREATE FUNCTION add_metrics(
    _ats bigint[], _tools text[], _workers text[], _counts bigint[], _width integer,
    _minutes bigint, _hours bigint, _shift bigint)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    -- A minute becomes old once a minute, so minutes are merged at most once a minute.
    _now bigint := now_ms(_shift) / 60000 * 60000;
BEGIN
    INSERT INTO metric AS m (is_hour, at, tool, worker_id, counts)
        SELECT false, w.at, w.tool, w.worker,
            _counts[(w.place - 1) * _width + 1 : w.place * _width]
        FROM unnest(_ats, _tools, _workers) WITH ORDINALITY AS w (at, tool, worker, place)
        ORDER BY w.at, w.tool COLLATE "C", w.worker COLLATE "C"
        ON CONFLICT (is_hour, at, tool, worker_id)
            DO UPDATE SET counts = add_counts(m.counts, excluded.counts);
    WITH old AS (
        SELECT at, tool, worker_id FROM metric WHERE NOT is_hour AND at < _now - _minutes
            ORDER BY at, tool, worker_id FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM metric m USING old o
            WHERE NOT m.is_hour AND m.at = o.at AND m.tool = o.tool AND m.worker_id = o.worker_id
            RETURNING m.at, m.tool, m.counts
    )
    INSERT INTO metric AS m (is_hour, at, tool, worker_id, counts)
        SELECT true, g.at / 3600000 * 3600000 AS hour, g.tool, '', sum_counts(g.counts) FROM gone g
        GROUP BY hour, g.tool ORDER BY hour, g.tool
        ON CONFLICT (is_hour, at, tool, worker_id)
            DO UPDATE SET counts = add_counts(m.counts, excluded.counts);
    DELETE FROM metric WHERE is_hour AND at < _now - _hours;
END $$;
