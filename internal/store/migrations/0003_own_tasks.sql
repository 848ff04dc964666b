-- compatible: yes
-- A sender's tasks with one agent, the last changed first. An agent's id is unique across
-- the platform, so the index does not need the org.
CREATE INDEX tasks_own ON tasks (agent_id, sender, updated_at, uid);
