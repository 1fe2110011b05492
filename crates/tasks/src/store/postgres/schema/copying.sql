-- Tasks that are copied into their table, and not inserted by a function.

-- They are numbered by the table then.
ALTER TABLE task ALTER COLUMN number SET DEFAULT nextval('task_number');

