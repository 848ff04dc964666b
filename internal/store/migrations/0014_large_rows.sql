-- compatible: yes
-- SQLite keeps the rows of a WITHOUT ROWID table in one index, and reads a row whole to
-- compare its key. So a search for one task's events could read megabytes of another's.

-- @postgres
-- The default compression of megabytes takes tens of milliseconds. Servers older than 14,
-- or built without lz4, keep the default.
DO $$ BEGIN EXECUTE 'ALTER TABLE task_events ALTER COLUMN data SET COMPRESSION lz4'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
DO $$ BEGIN EXECUTE 'ALTER TABLE messages ALTER COLUMN data SET COMPRESSION lz4'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
-- @sqlite
CREATE TABLE task_events_new (
  org_id TEXT NOT NULL,
  uid    TEXT NOT NULL,
  seq    BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  data   TEXT NOT NULL,
  PRIMARY KEY (org_id, uid, seq)
);
INSERT INTO task_events_new (org_id, uid, seq, at, data) SELECT org_id, uid, seq, at, data FROM task_events;
DROP TABLE task_events;
ALTER TABLE task_events_new RENAME TO task_events;
-- @all
-- @sqlite
CREATE TABLE tasks_new (
  org_id        TEXT NOT NULL,
  uid           TEXT NOT NULL,
  agent_id      TEXT NOT NULL,
  sender_org    TEXT NOT NULL,
  sender        TEXT NOT NULL,
  id            TEXT NOT NULL,
  context_id    TEXT NOT NULL,
  followup_id   TEXT NOT NULL DEFAULT '',
  state         TEXT NOT NULL,
  queued        INTEGER NOT NULL,
  seq           BIGINT NOT NULL,
  size          BIGINT NOT NULL,
  lease         TEXT NOT NULL,
  lease_worker  TEXT NOT NULL,
  lease_expires BIGINT NOT NULL,
  attempts      INTEGER NOT NULL DEFAULT 0,
  delivered     BIGINT NOT NULL,
  last_turn     TEXT NOT NULL,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL,
  metadata      TEXT NOT NULL DEFAULT '',
  push          INTEGER NOT NULL DEFAULT 0,
  status_seq    BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (org_id, uid)
);
INSERT INTO tasks_new (org_id, uid, agent_id, sender_org, sender, id, context_id, followup_id, state, queued, seq, size, lease, lease_worker,
    lease_expires, attempts, delivered, last_turn, created_at, updated_at, metadata, push, status_seq)
  SELECT org_id, uid, agent_id, sender_org, sender, id, context_id, followup_id, state, queued, seq, size, lease, lease_worker,
    lease_expires, attempts, delivered, last_turn, created_at, updated_at, metadata, push, status_seq FROM tasks;
DROP TABLE tasks;
ALTER TABLE tasks_new RENAME TO tasks;
CREATE UNIQUE INDEX tasks_key ON tasks (org_id, agent_id, sender_org, sender, id);
CREATE INDEX tasks_queue ON tasks (org_id, agent_id, uid) WHERE queued = 1;
CREATE INDEX tasks_leases ON tasks (lease_expires, org_id, uid) WHERE lease_expires > 0;
CREATE INDEX tasks_asking ON tasks (sender_org, sender) WHERE state = 'input-required';
CREATE INDEX tasks_own ON tasks (sender_org, sender, agent_id, updated_at, uid);
-- @all
