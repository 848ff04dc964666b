-- compatible: yes
-- The remote agents that do the work of relays (agents with builtin = 'relay'). The credential is
-- encrypted; card is what the server uses of the remote's card, as JSON.
CREATE TABLE relays (
  org_id            TEXT NOT NULL,
  agent_id          TEXT NOT NULL,
  url               TEXT NOT NULL,
  credential_type   TEXT NOT NULL DEFAULT '', -- empty: none
  credential        TEXT NOT NULL DEFAULT '',
  credential_set_at BIGINT NOT NULL DEFAULT 0,
  card              TEXT NOT NULL,
  checked_at        BIGINT NOT NULL, -- when the card was last read
  problem           TEXT NOT NULL DEFAULT '', -- why the remote cannot be used; empty: it can
  updated_at        BIGINT NOT NULL,
  PRIMARY KEY (org_id, agent_id)
) {{without_rowid}};

-- What the remote has got of a relayed task. A row is written after the first response of the remote,
-- and deleted when the remote has nothing left to do. due_at is when the row is looked at next: the
-- remote's task is canceled if ours is over.
CREATE TABLE relay_tasks (
  org_id         TEXT NOT NULL,
  uid            TEXT NOT NULL,
  agent_id       TEXT NOT NULL,
  remote_task    TEXT NOT NULL DEFAULT '', -- empty: not known yet
  remote_context TEXT NOT NULL DEFAULT '',
  forwarded      INTEGER NOT NULL DEFAULT 0, -- messages of the sender that the remote has got
  attempt        INTEGER NOT NULL,
  ended_at       BIGINT NOT NULL DEFAULT 0,
  due_at         BIGINT NOT NULL,
  created_at     BIGINT NOT NULL,
  PRIMARY KEY (org_id, uid)
) {{without_rowid}};
CREATE INDEX relay_tasks_due ON relay_tasks (due_at);
