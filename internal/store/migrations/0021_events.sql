-- compatible: no
-- The log of each org. A row is a pack: the events of one commit, one line each (see events.go).
-- An older program would change records without writing events.
CREATE TABLE events (
  org_id   TEXT NOT NULL,
  last_seq BIGINT NOT NULL, -- number of the last event in the pack
  n        BIGINT NOT NULL, -- number of events
  at       BIGINT NOT NULL, -- time of the last event
  types    BIGINT NOT NULL, -- the types in the pack, as bits
  data     TEXT NOT NULL,
  PRIMARY KEY (org_id, last_seq)
);
CREATE TABLE event_heads (
  org_id  TEXT NOT NULL PRIMARY KEY,
  seq     BIGINT NOT NULL DEFAULT 0, -- the last number
  kept    BIGINT NOT NULL DEFAULT 1, -- the first number that is kept
  indexed BIGINT NOT NULL DEFAULT 0  -- event_subjects has all packs up to this number
) {{without_rowid}};
INSERT INTO event_heads (org_id) SELECT id FROM orgs;
-- Finds the packs with events about one subject. It is written behind the log.
CREATE TABLE event_subjects (
  org_id   TEXT NOT NULL,
  subject  TEXT NOT NULL,
  last_seq BIGINT NOT NULL,
  PRIMARY KEY (org_id, subject, last_seq)
) {{without_rowid}};
-- Whether an agent has a worker, according to the last event agent.presence.
ALTER TABLE agents ADD COLUMN online BIGINT NOT NULL DEFAULT 0;
CREATE INDEX agents_online ON agents (org_id, id) WHERE online = 1;
-- @postgres
-- Committed packs that have no number yet. SQLite, which has one writer, numbers them at once.
CREATE TABLE events_new (
  id     BIGINT GENERATED ALWAYS AS IDENTITY,
  xid    xid8 NOT NULL DEFAULT pg_current_xact_id(),
  org_id TEXT NOT NULL,
  n      BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  types  BIGINT NOT NULL,
  data   TEXT NOT NULL,
  PRIMARY KEY (org_id, xid, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
-- As in 0014: servers that are built without lz4 keep the default.
DO $$ BEGIN EXECUTE 'ALTER TABLE events ALTER COLUMN data SET COMPRESSION lz4'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
DO $$ BEGIN EXECUTE 'ALTER TABLE events_new ALTER COLUMN data SET COMPRESSION lz4'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
-- The packs that this snapshot sees have numbers; see numberSome.
ALTER TABLE event_heads ADD COLUMN seen pg_snapshot NOT NULL DEFAULT '1:1:';
-- @all
