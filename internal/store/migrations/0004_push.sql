-- compatible: no
-- Push configurations of tasks and the progress of their delivery.

-- Set once a task has a push configuration, so that other writes need not look for one.
ALTER TABLE tasks ADD COLUMN push INTEGER NOT NULL DEFAULT 0;

-- cursor is the last delivered event, head the last event of the task. due_at is 0 if
-- there is nothing to do; a claim sets it to the claim's end, so that the claims of a lost
-- node become due by themselves. claimed_until also identifies the claim: results of
-- another claim are ignored.
CREATE TABLE push_configs (
  org_id          TEXT NOT NULL,
  uid             TEXT NOT NULL,
  id              TEXT NOT NULL,
  url             TEXT NOT NULL,
  receiver        TEXT NOT NULL,
  token           TEXT NOT NULL,
  scheme          TEXT NOT NULL,
  credentials     TEXT NOT NULL,
  form            TEXT NOT NULL,
  cursor          BIGINT NOT NULL,
  head            BIGINT NOT NULL,
  state           TEXT NOT NULL,
  due_at          BIGINT NOT NULL,
  claimed_until   BIGINT NOT NULL DEFAULT 0,
  attempts        INTEGER NOT NULL DEFAULT 0,
  last_error      TEXT NOT NULL DEFAULT '',
  last_attempt_at BIGINT NOT NULL DEFAULT 0,
  created_at      BIGINT NOT NULL,
  PRIMARY KEY (org_id, uid, id)
) {{without_rowid}};
-- Both contain only rows with pending work, or that wait for an admin.
CREATE INDEX push_due ON push_configs (due_at, org_id, uid, id) WHERE due_at > 0;
CREATE INDEX push_dead ON push_configs (org_id, uid, id) WHERE state = 'dead';

-- Secrets that the server generated, such as its signing key.
CREATE TABLE secrets (
  name       TEXT PRIMARY KEY,
  value      TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
