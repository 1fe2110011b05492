-- Parts of large results.

-- Inserts the parts of a result after `commit_task` in the same statement. `_written` is its return
-- value, which is returned unchanged.
CREATE FUNCTION insert_parts(
    _written boolean, _id text, _blocks integer[], _numbers integer[], _bodies bytea[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF _written THEN
        WITH owner AS (
            SELECT number, principal FROM task WHERE id = _id
        ), inserted AS (
            INSERT INTO result_part (task, block, number, body)
                SELECT o.number, p.block, p.number, p.body
                FROM owner o, unnest(_blocks, _numbers, _bodies) AS p (block, number, body)
        )
        INSERT INTO quota_release (principal, tasks, bytes)
            SELECT o.principal, 0, sum(octet_length(p.body))
            FROM owner o, unnest(_bodies) AS p (body) GROUP BY o.principal;
    END IF;
    RETURN _written;
END $$;

-- Deletes all parts of a result. Returns the freed bytes.
CREATE FUNCTION delete_parts(_principal text, _id text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    _freed bigint;
BEGIN
    WITH owner AS (
        SELECT number FROM task WHERE id = _id AND principal = _principal FOR UPDATE
    ), gone AS (
        DELETE FROM result_part p USING owner o WHERE p.task = o.number
            RETURNING octet_length(p.body) AS bytes
    )
    SELECT coalesce(sum(bytes), 0) INTO _freed FROM gone;
    IF _freed > 0 THEN
        INSERT INTO quota_release (principal, tasks, bytes) VALUES (_principal, 0, -_freed);
    END IF;
    RETURN _freed;
END $$;
