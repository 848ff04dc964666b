-- compatible: no
-- Agents, their workers, A2A tasks and the log of each.

ALTER TABLE agents ADD COLUMN disabled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN pinned TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN updated_at BIGINT NOT NULL DEFAULT 0;
-- Set if the agent is built in and runs inside the server.
ALTER TABLE agents ADD COLUMN builtin TEXT NOT NULL DEFAULT '';

-- The row of a task has the columns for queues, leases and lists. Messages and artifacts
-- are in the log.
CREATE TABLE tasks (
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
  PRIMARY KEY (org_id, uid)
) {{without_rowid}};
-- A task belongs to its sender: others may use the same id.
CREATE UNIQUE INDEX tasks_key ON tasks (org_id, agent_id, sender_org, sender, id);
-- Both contain only waiting or leased rows, so a finished task costs nothing.
CREATE INDEX tasks_queue ON tasks (org_id, agent_id, uid) WHERE queued = 1;
CREATE INDEX tasks_leases ON tasks (lease_expires, org_id, uid) WHERE lease_expires > 0;

-- The log. One row holds the events of one write as a JSON array. seq is the number of
-- the last event, at is the time of all.
CREATE TABLE task_events (
  org_id TEXT NOT NULL,
  uid    TEXT NOT NULL,
  seq    BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  data   TEXT NOT NULL,
  PRIMARY KEY (org_id, uid, seq)
) {{without_rowid}};

CREATE TABLE workers (
  org_id   TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  name     TEXT NOT NULL,
  capacity BIGINT NOT NULL,
  seen_at  BIGINT NOT NULL,
  PRIMARY KEY (org_id, agent_id, name)
);

CREATE TABLE messages (
  org_id     TEXT NOT NULL,
  agent_id   TEXT NOT NULL,
  id         TEXT NOT NULL,
  sender_org TEXT NOT NULL,
  sender     TEXT NOT NULL,
  at         BIGINT NOT NULL,
  data       TEXT NOT NULL,
  PRIMARY KEY (org_id, agent_id, id)
);
CREATE INDEX messages_age ON messages (at);

ALTER TABLE followups ADD COLUMN task_uid TEXT NOT NULL DEFAULT '';
ALTER TABLE followups ADD COLUMN task_state TEXT NOT NULL DEFAULT '';
