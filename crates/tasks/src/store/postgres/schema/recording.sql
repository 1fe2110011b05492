-- What workers write most often, to many tasks at once, the short way: it only says so if a task is
-- lost, and fails if an entry is there already. Who wrote them knows another way then.

-- One row for each entry, and one for a task without any, in the order of the tasks' names. Returns
-- the places of those that were written, or nothing if all were.
--
-- A step that is recorded leaves the task's own row as it is, but once a second, when the time of its
-- last change is: a new version of the row would have to be put into all indexes, because there is no
-- room on the page for as many versions as a task has steps.
CREATE FUNCTION record_tasks(
    _ids text[], _workers text[], _epochs bigint[], _messages text[], _progress text[],
    _outcomes text[], _retentions bigint[], _keys text[], _answers boolean[], _bodies text[],
    _shift bigint)
RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _written bigint[];
    _changes boolean;
    _ended bigint[];
    _asked bigint[];
BEGIN
    WITH held AS (
        SELECT w.place, w.key, w.answer, w.body, t.number, t.principal,
            w.outcome IS NOT NULL AS ends,
            w.outcome IS NOT NULL OR w.message IS NOT NULL OR w.progress IS NOT NULL
                OR t.crashes > 0 OR t.updated <= _now - 1000 AS changes
            FROM unnest(_ids, _workers, _epochs, _messages, _progress, _outcomes, _keys, _answers,
                _bodies) WITH ORDINALITY
                AS w (id, worker, epoch, message, progress, outcome, key, answer, body, place)
            -- Written so that it is found by its name, and not by its owner, who has many.
            JOIN task t ON t.id = w.id AND t.owner IS NOT DISTINCT FROM w.worker
                AND t.epoch = w.epoch AND t.phase = 1
            FOR NO KEY UPDATE OF t
    ), recorded AS (
        INSERT INTO entry (task, key, answer, body)
            SELECT number, key, answer, body FROM held WHERE key IS NOT NULL
    ), counted AS (
        INSERT INTO ended_task (principal) SELECT principal FROM held WHERE ends
    )
    SELECT array_agg(place), bool_or(changes), array_agg(number) FILTER (WHERE ends)
        INTO _written, _changes, _ended FROM held;
    IF _ended IS NOT NULL THEN
        WITH withdrawn AS (
            UPDATE question SET state = 2 WHERE task = ANY (_ended) AND state = 0 RETURNING task
        )
        SELECT array_agg(task) INTO _asked FROM withdrawn;
    END IF;
    IF _changes THEN
        UPDATE task t SET updated = greatest(_now, t.updated + 1),
            message = coalesce(w.message, t.message), progress = coalesce(w.progress, t.progress),
            crashes = CASE WHEN w.key IS NULL THEN t.crashes ELSE 0 END,
            outcome = w.outcome,
            phase = CASE WHEN w.outcome IS NULL THEN 1 ELSE 3 END,
            owner = CASE WHEN w.outcome IS NULL THEN t.owner END,
            owner_lock = CASE WHEN w.outcome IS NULL THEN t.owner_lock END,
            due = CASE WHEN w.outcome IS NULL THEN t.due END,
            lasts = CASE WHEN w.outcome IS NULL OR t.lasts IS NULL THEN t.lasts
                ELSE greatest(_now + w.retention - t.created, CASE WHEN t.number = ANY (_asked)
                    THEN lasting(t, 1, 0, _now) ELSE t.lasts END) END
            FROM unnest(_ids, _workers, _epochs, _messages, _progress, _outcomes, _retentions, _keys)
                AS w (id, worker, epoch, message, progress, outcome, retention, key)
            WHERE t.id = w.id AND t.owner IS NOT DISTINCT FROM w.worker AND t.epoch = w.epoch
                AND t.phase = 1 AND (w.outcome IS NOT NULL OR w.message IS NOT NULL
                OR w.progress IS NOT NULL OR t.crashes > 0 OR t.updated <= _now - 1000);
    END IF;
    IF cardinality(_written) = cardinality(_ids) THEN
        RETURN NULL;
    END IF;
    RETURN coalesce(_written, '{}');
END $$;
