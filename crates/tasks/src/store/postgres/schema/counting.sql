-- How many tasks are in each phase, so that nobody looks through all of them to count them.
--
-- Every statement that moves tasks adds one row to `phase_change`, which waits for nobody. A sweep adds
-- these rows to the one row of `phase_count`. The numbers are the sum of both.

CREATE TABLE phase_count (
    queued bigint NOT NULL,
    running bigint NOT NULL,
    parked bigint NOT NULL,
    ended bigint NOT NULL,
    kept bigint NOT NULL,
    bytes bigint NOT NULL      -- what all principals have stored
);
CREATE TABLE phase_change (
    queued bigint NOT NULL DEFAULT 0,
    running bigint NOT NULL DEFAULT 0,
    parked bigint NOT NULL DEFAULT 0,
    ended bigint NOT NULL DEFAULT 0,
    kept bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0
);
INSERT INTO phase_count SELECT count(*) FILTER (WHERE phase = 0), count(*) FILTER (WHERE phase = 1),
    count(*) FILTER (WHERE phase = 2), count(*) FILTER (WHERE phase = 3),
    count(*) FILTER (WHERE phase = 4), 0 FROM task;

-- What a task counts beside its journal. 2,048 is for its row, its indexes and its audit events.
CREATE FUNCTION row_bytes(_request text, _outcome text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT 2048::bigint + octet_length(_request) + coalesce(octet_length(_outcome), 0)
$$;

CREATE FUNCTION count_phases() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO phase_change SELECT count(*) FILTER (WHERE phase = 0),
            count(*) FILTER (WHERE phase = 1), count(*) FILTER (WHERE phase = 2),
            count(*) FILTER (WHERE phase = 3), count(*) FILTER (WHERE phase = 4),
            sum(row_bytes(request, outcome)) FROM added HAVING count(*) > 0;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO phase_change SELECT -count(*) FILTER (WHERE phase = 0),
            -count(*) FILTER (WHERE phase = 1), -count(*) FILTER (WHERE phase = 2),
            -count(*) FILTER (WHERE phase = 3), -count(*) FILTER (WHERE phase = 4)
            FROM removed HAVING count(*) > 0;
    ELSE
        -- Most statements leave all tasks in their phases.
        INSERT INTO phase_change SELECT m.queued, m.running, m.parked, m.ended, m.kept FROM (
            SELECT coalesce(sum(n) FILTER (WHERE phase = 0), 0) AS queued,
                coalesce(sum(n) FILTER (WHERE phase = 1), 0) AS running,
                coalesce(sum(n) FILTER (WHERE phase = 2), 0) AS parked,
                coalesce(sum(n) FILTER (WHERE phase = 3), 0) AS ended,
                coalesce(sum(n) FILTER (WHERE phase = 4), 0) AS kept
            FROM (SELECT phase, 1 AS n FROM added UNION ALL SELECT phase, -1 FROM removed) AS p
        ) AS m WHERE (m.queued, m.running, m.parked, m.ended, m.kept) <> (0, 0, 0, 0, 0);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_new AFTER INSERT ON task REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION count_phases();
CREATE TRIGGER count_moved AFTER UPDATE ON task
    REFERENCING NEW TABLE AS added OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_phases();
CREATE TRIGGER count_gone AFTER DELETE ON task REFERENCING OLD TABLE AS removed
    FOR EACH STATEMENT EXECUTE FUNCTION count_phases();

-- Adds what has changed to the count. Two that do so at once take different rows.
CREATE FUNCTION fold_phases() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM phase_change WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM phase_change LIMIT 10000 FOR UPDATE SKIP LOCKED))
            RETURNING *
    ), moved AS (
        SELECT sum(queued) AS queued, sum(running) AS running, sum(parked) AS parked,
            sum(ended) AS ended, sum(kept) AS kept, sum(bytes) AS bytes
            FROM gone HAVING count(*) > 0
    )
    UPDATE phase_count c SET queued = c.queued + m.queued, running = c.running + m.running,
        parked = c.parked + m.parked, ended = c.ended + m.ended, kept = c.kept + m.kept,
        bytes = c.bytes + m.bytes FROM moved m;
END $$;
