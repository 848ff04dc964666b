-- compatible: yes
-- How often a worker has extended its lease, for the timeline of a task. Older programs do not
-- count.
ALTER TABLE tasks ADD COLUMN lease_beats INTEGER NOT NULL DEFAULT 0;
-- For the lists of an org's tasks: the state of a task that failed, was canceled or waits for its
-- sender; empty otherwise. An index with the state itself would cost every change of every task.
-- Older programs do not set it, so the tasks that they change meanwhile are missing in these lists.
ALTER TABLE tasks ADD COLUMN listed TEXT NOT NULL DEFAULT '';
UPDATE tasks SET listed = state WHERE state IN ('failed', 'rejected', 'canceled', 'input-required', 'auth-required');
CREATE INDEX tasks_listed ON tasks (org_id, listed, uid) WHERE listed <> '';
CREATE INDEX tasks_failed ON tasks (org_id, agent_id, uid) WHERE listed IN ('failed', 'rejected');
DROP INDEX tasks_asking;
CREATE INDEX tasks_asking ON tasks (sender_org, sender) WHERE listed IN ('input-required', 'auth-required');
