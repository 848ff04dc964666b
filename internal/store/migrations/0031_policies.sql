-- compatible: yes
-- The policy of a task as JSON, or empty: its deadline, and when it is tried again. Older programs do
-- not retry tasks that fail, and leave deadlines to the newer ones.
ALTER TABLE tasks ADD COLUMN policy TEXT NOT NULL DEFAULT '';
-- When the deadline passes or the next attempt is due, whichever is earlier; 0: nothing is to be done.
ALTER TABLE tasks ADD COLUMN wake_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX tasks_wake ON tasks (wake_at) WHERE wake_at > 0;
-- The default for the tasks of an agent.
ALTER TABLE agents ADD COLUMN policy TEXT NOT NULL DEFAULT '';
