-- compatible: no
-- The number of the event that set a task's status, so that the status can be read
-- without the rest of the log. 0 means that the row is older than this column.
ALTER TABLE tasks ADD COLUMN status_seq BIGINT NOT NULL DEFAULT 0;
