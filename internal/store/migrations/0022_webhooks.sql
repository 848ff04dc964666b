-- compatible: yes
-- Webhooks, and the progress of their delivery. cursor is the last event that was passed. due_at is
-- the time of the next attempt or the end of a claim, as in push_configs; if it is 0, an active
-- webhook is due when cursor is behind the end of the org's log, so that an event costs no write
-- here. The secrets sign requests, so they cannot be hashed.
CREATE TABLE webhooks (
  org_id           TEXT NOT NULL,
  id               TEXT NOT NULL,
  url              TEXT NOT NULL,
  receiver         TEXT NOT NULL, -- scheme and host of the URL
  types            TEXT NOT NULL, -- this and the next two are separated by spaces; empty: all
  categories       TEXT NOT NULL,
  priorities       TEXT NOT NULL,
  description      TEXT NOT NULL,
  state            TEXT NOT NULL,
  format           TEXT NOT NULL,
  secret           TEXT NOT NULL,
  old_secret       TEXT NOT NULL DEFAULT '',
  old_secret_until BIGINT NOT NULL DEFAULT 0,
  private_key      TEXT NOT NULL,
  public_key       TEXT NOT NULL,
  created_at       BIGINT NOT NULL,
  updated_at       BIGINT NOT NULL,
  created_by       TEXT NOT NULL,
  version          BIGINT NOT NULL,
  cursor           BIGINT NOT NULL,
  due_at           BIGINT NOT NULL DEFAULT 0,
  claimed_until    BIGINT NOT NULL DEFAULT 0,
  attempts         INTEGER NOT NULL DEFAULT 0,
  last_error       TEXT NOT NULL DEFAULT '',
  last_attempt_at  BIGINT NOT NULL DEFAULT 0,
  failing_since    BIGINT NOT NULL DEFAULT 0,
  tried            BIGINT NOT NULL DEFAULT 0, -- number of the last row in webhook_deliveries
  PRIMARY KEY (org_id, id)
) {{without_rowid}};
CREATE INDEX webhooks_due ON webhooks (org_id, due_at, receiver, id) WHERE due_at > 0;
CREATE INDEX webhooks_idle ON webhooks (org_id, cursor) WHERE state = 'active' AND due_at = 0;
CREATE INDEX webhooks_failed ON webhooks (org_id) WHERE state = 'failed';

-- The last attempts of each webhook.
CREATE TABLE webhook_deliveries (
  org_id     TEXT NOT NULL,
  webhook_id TEXT NOT NULL,
  n          BIGINT NOT NULL, -- counts the attempts of the webhook
  event_id   TEXT NOT NULL,
  type       TEXT NOT NULL,
  seq        BIGINT NOT NULL,
  at         BIGINT NOT NULL,
  attempt    INTEGER NOT NULL,
  status     INTEGER NOT NULL,
  latency    BIGINT NOT NULL, -- microseconds
  response   TEXT NOT NULL,
  error      TEXT NOT NULL,
  outcome    TEXT NOT NULL,
  redelivery INTEGER NOT NULL,
  PRIMARY KEY (org_id, webhook_id, n)
) {{without_rowid}};
