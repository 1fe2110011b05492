-- A principal that has a name lists its tasks of every dialect, each dialect by itself. Only the callers
-- without a name have no list.

UPDATE task SET listed = true WHERE NOT listed AND principal <> 'anonymous';
DROP INDEX task_list;
CREATE INDEX task_list ON task (principal, origin, created) WHERE listed;
