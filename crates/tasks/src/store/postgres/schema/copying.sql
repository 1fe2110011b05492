-- Tasks that are copied into their table, and not inserted by a function.

-- They are numbered by the table then.
ALTER TABLE task ALTER COLUMN number SET DEFAULT nextval('task_number');

-- Counts tasks that are about to be made: when that is, and whether some principal has too many then.
-- From here on nobody else makes a task for these principals, which stand here once each, in order.
CREATE FUNCTION count_tasks(_principals text[], _counts bigint[], _quotas bigint[], _shift bigint)
RETURNS TABLE (at bigint, is_over boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    _most bigint;
BEGIN
    WITH counted AS (
        INSERT INTO open_tasks AS o (principal, count) SELECT * FROM unnest(_principals, _counts)
            ON CONFLICT (principal) DO UPDATE SET count = o.count + excluded.count
            RETURNING count
    )
    SELECT max(count) INTO _most FROM counted;
    -- The time is taken when nobody is waited for any more.
    RETURN QUERY SELECT now_ms(_shift),
        _most > (SELECT min(quota) FROM unnest(_quotas) AS quota);
END $$;
