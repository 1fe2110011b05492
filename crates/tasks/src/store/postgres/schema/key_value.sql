-- Key-value entries.

-- Stores a key-value entry. An existing entry stays unless `_replace` is set. Returns 0 if the
-- entry was stored, 1 if one exists, 2 if the principal would exceed its byte limit.
CREATE FUNCTION kv_put(
    _key text, _body text, _ttl bigint, _replace boolean, _principal text, _max_bytes bigint,
    _shift bigint)
RETURNS TABLE (what integer, there text) LANGUAGE plpgsql AS $$
DECLARE
    _now bigint := now_ms(_shift);
    _old key_value;
    _freed bigint;
BEGIN
    LOOP
        SELECT * INTO _old FROM key_value WHERE key = _key FOR UPDATE;
        IF FOUND AND NOT _replace AND _old.expires_at > _now THEN
            RETURN QUERY SELECT 1, _old.body;
            RETURN;
        END IF;
        _freed := coalesce(key_value_bytes(_old.key, _old.body), 0);
        IF stored_bytes(_principal) + key_value_bytes(_key, _body)
            - (CASE WHEN _old.principal = _principal THEN _freed ELSE 0 END) > _max_bytes
        THEN
            RETURN QUERY SELECT 2, NULL::text;
            RETURN;
        END IF;
        IF _old.key IS NOT NULL THEN
            UPDATE key_value SET body = _body, expires_at = _now + _ttl, principal = _principal
                WHERE key = _key;
        ELSE
            INSERT INTO key_value (key, body, expires_at, principal)
                VALUES (_key, _body, _now + _ttl, _principal) ON CONFLICT DO NOTHING;
            -- Another transaction inserted the key first, so the loop reads its entry.
            CONTINUE WHEN NOT FOUND;
        END IF;
        INSERT INTO quota_release (principal, tasks, bytes)
            SELECT n.principal, 0, n.bytes FROM (VALUES
                (_principal, key_value_bytes(_key, _body)), (_old.principal, -_freed))
                AS n (principal, bytes)
            WHERE n.principal IS NOT NULL AND n.bytes <> 0;
        RETURN QUERY SELECT 0, NULL::text;
        RETURN;
    END LOOP;
END $$;

-- Deletes a key-value entry.
CREATE FUNCTION kv_delete(_key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    WITH gone AS (
        DELETE FROM key_value WHERE key = _key RETURNING principal, key_value_bytes(key, body) AS bytes
    )
    INSERT INTO quota_release (principal, tasks, bytes)
        SELECT principal, 0, -bytes FROM gone WHERE principal IS NOT NULL;
END $$;
