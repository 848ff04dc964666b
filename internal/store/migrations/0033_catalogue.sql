-- compatible: yes
-- The words by which the catalogue finds an agent, and updated_at of the agent when they were made. Older
-- programs change agents without their words; a server of this version then makes them again.
ALTER TABLE agents ADD COLUMN words_names TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN words_text TEXT NOT NULL DEFAULT '';
ALTER TABLE agents ADD COLUMN words_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX agents_words_old ON agents (org_id, id) WHERE words_at <> updated_at;

-- How many tasks each other org may send to an agent in one period; 0: no limit. Older programs do not
-- count them.
ALTER TABLE agents ADD COLUMN quota_tasks BIGINT NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN quota_per TEXT NOT NULL DEFAULT '';

-- What an org has used of the quota of an agent of another org, in the window that began at window_at.
CREATE TABLE agent_usage (
  org_id     TEXT NOT NULL, -- of the agent
  agent_id   TEXT NOT NULL,
  caller_org TEXT NOT NULL,
  per        TEXT NOT NULL,
  window_at  BIGINT NOT NULL,
  used       BIGINT NOT NULL,
  PRIMARY KEY (org_id, agent_id, caller_org)
) {{without_rowid}};
CREATE INDEX agent_usage_caller ON agent_usage (caller_org, agent_id);
