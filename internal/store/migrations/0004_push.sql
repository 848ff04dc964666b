-- compatible: no
-- Where the events of tasks are pushed to, and how far each of them is.

-- Set once a task has a push configuration: without it a write looks for none.
ALTER TABLE tasks ADD COLUMN push INTEGER NOT NULL DEFAULT 0;

-- cursor is the last event that the receiver has, head the last one there is.
-- due_at is 0 when there is nothing to do; a claim moves it to the claim's end, so
-- that what a lost node held becomes due by itself. claimed_until is the claim's
-- name, too: what was found out under another one counts no more.
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
-- Both hold only what has something to do, or waits for an admin.
CREATE INDEX push_due ON push_configs (due_at, org_id, uid, id) WHERE due_at > 0;
CREATE INDEX push_dead ON push_configs (org_id, uid, id) WHERE state = 'dead';

-- What the server made for itself and must keep, such as its signing key.
CREATE TABLE secrets (
  name       TEXT PRIMARY KEY,
  value      TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
