-- compatible: yes
-- A sender's tasks with one agent, the one that changed last first. An agent's id
-- is unique across the platform, so the org need not be part of it.
CREATE INDEX tasks_own ON tasks (agent_id, sender, updated_at, uid);
