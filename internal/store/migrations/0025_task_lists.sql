-- compatible: yes
-- How often a worker has extended its lease, for the timeline of a task. Older programs do not
-- count.
ALTER TABLE tasks ADD COLUMN lease_beats INTEGER NOT NULL DEFAULT 0;
-- For the lists of an org's tasks. Only tasks that fail, are canceled or wait for their sender are
-- in these indexes. A task that completes without a question is never in them.
CREATE INDEX tasks_state ON tasks (org_id, state, uid)
  WHERE state IN ('failed', 'rejected', 'canceled', 'input-required', 'auth-required');
CREATE INDEX tasks_failed ON tasks (org_id, agent_id, uid) WHERE state IN ('failed', 'rejected');
