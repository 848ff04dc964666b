-- compatible: no
-- The log of tasks in partitions, one for each period in which tasks were created, so that old logs
-- are deleted by dropping tables (see tasks_partitions.go). An older program would delete rows of
-- other orgs, because it takes the physical address of a row for unique.

-- @postgres
ALTER TABLE task_events RENAME TO task_events_before;
ALTER INDEX task_events_pkey RENAME TO task_events_before_pkey;
CREATE TABLE task_events (
  org_id TEXT NOT NULL,
  uid    TEXT NOT NULL,
  seq    BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  data   TEXT NOT NULL,
  PRIMARY KEY (org_id, uid, seq)
) PARTITION BY RANGE (uid);
-- As in 0014: servers that are built without lz4 keep the default.
DO $$ BEGIN EXECUTE 'ALTER TABLE task_events ALTER COLUMN data SET COMPRESSION lz4'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
-- Holds what no other partition does.
CREATE TABLE task_events_rest PARTITION OF task_events DEFAULT;
-- The rows so far are a partition that ends an hour from now. Ids of tasks begin with the time of
-- their creation: milliseconds as ten digits of 5 bits.
DO $$
DECLARE
  digits CONSTANT TEXT := '0123456789abcdefghjkmnpqrstvwxyz';
  ms BIGINT := extract(epoch FROM clock_timestamp() + interval '1 hour') * 1000;
  last TEXT;
  bound TEXT := '';
BEGIN
  SELECT max(uid) INTO last FROM task_events_before;
  IF last IS NULL THEN
    DROP TABLE task_events_before;
    RETURN;
  END IF;
  FOR i IN REVERSE 9..0 LOOP
    bound := bound || substr(digits, ((ms >> (5 * i)) & 31)::int + 1, 1);
  END LOOP;
  IF last >= bound THEN
    bound := last || 'z';
  END IF;
  EXECUTE format('ALTER TABLE task_events ATTACH PARTITION task_events_before FOR VALUES FROM (MINVALUE) TO (%L)', bound);
END $$;
-- @all
