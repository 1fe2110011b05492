-- What workers write most often, to many tasks at once, the short ways: steps that are recorded, and tasks
-- that end. Each task is held by the worker, or it is left out. Both return the places of what was
-- written, or nothing if all was.
--
-- They lock in the order in which tasks stand here, which is that of their names. So one transaction
-- takes one of them, once.

-- What did both before.
DROP FUNCTION IF EXISTS record_tasks;

-- One row for each entry. Fails if an entry is there already: who wrote it knows another way then.
--
-- A step that is recorded leaves the task's own row as it is, but once a second, when the time of its
-- last change is: a new version of the row would have to be put into all indexes, because there is no
-- room on the page for as many versions as a task has steps.
CREATE FUNCTION record_steps(
    _worker text, _ids text[], _epochs bigint[], _keys text[], _answers boolean[], _bodies text[],
    _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _written bigint[];
    _changes boolean;
BEGIN
    WITH held AS (
        SELECT w.place, w.key, w.answer, w.body, t.number,
            t.crashes > 0 OR t.updated <= _now - 1000 AS changes
            FROM unnest(_ids, _epochs, _keys, _answers, _bodies) WITH ORDINALITY
                AS w (id, epoch, key, answer, body, place)
            -- Written so that it is found by its name, and not by its owner, who has many.
            JOIN task t ON t.id = w.id AND t.owner IS NOT DISTINCT FROM _worker
                AND t.epoch = w.epoch AND t.phase = 1
            FOR NO KEY UPDATE OF t
    ), recorded AS (
        INSERT INTO entry (task, key, answer, body) SELECT number, key, answer, body FROM held
    )
    SELECT array_agg(place), bool_or(changes) INTO _written, _changes FROM held;
    IF _changes THEN
        UPDATE task t SET updated = greatest(_now, t.updated + 1), crashes = 0
            FROM unnest(_ids, _epochs) AS w (id, epoch)
            WHERE t.id = w.id AND t.owner IS NOT DISTINCT FROM _worker AND t.epoch = w.epoch
                AND t.phase = 1 AND (t.crashes > 0 OR t.updated <= _now - 1000);
    END IF;
    IF cardinality(_written) = cardinality(_ids) THEN
        RETURN NULL;
    END IF;
    RETURN coalesce(_written, '{}');
END $$;

-- One row for each task, which has done its work and has nothing else to say.
CREATE FUNCTION end_tasks(
    _worker text, _ids text[], _epochs bigint[], _outcomes text[], _retentions bigint[],
    _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _written bigint[];
    _numbers bigint[];
    _asked bigint[];
BEGIN
    WITH ended AS (
        UPDATE task t SET updated = greatest(_now, t.updated + 1), outcome = w.outcome, phase = 3,
            owner = NULL, owner_lock = NULL, due = NULL,
            lasts = CASE WHEN t.lasts IS NOT NULL
                THEN greatest(_now + w.retention - t.created, t.lasts) END
            FROM unnest(_ids, _epochs, _outcomes, _retentions) WITH ORDINALITY
                AS w (id, epoch, outcome, retention, place)
            WHERE t.id = w.id AND t.owner IS NOT DISTINCT FROM _worker AND t.epoch = w.epoch
                AND t.phase = 1
            RETURNING w.place, t.number, t.principal
    ), counted AS (
        INSERT INTO ended_task (principal) SELECT principal FROM ended
    )
    SELECT array_agg(place), array_agg(number) INTO _written, _numbers FROM ended;
    -- Hardly any asks something when it ends.
    WITH withdrawn AS (
        UPDATE question SET state = 2 WHERE task = ANY (_numbers) AND state = 0 RETURNING task
    )
    SELECT array_agg(task) INTO _asked FROM withdrawn;
    IF _asked IS NOT NULL THEN
        UPDATE task t SET lasts =
                greatest(_now + w.retention - t.created, lasting(t, 1, 0, _now))
            FROM unnest(_ids, _retentions) AS w (id, retention)
            WHERE t.id = w.id AND t.number = ANY (_asked) AND t.lasts IS NOT NULL;
    END IF;
    IF cardinality(_written) = cardinality(_ids) THEN
        RETURN NULL;
    END IF;
    RETURN coalesce(_written, '{}');
END $$;
