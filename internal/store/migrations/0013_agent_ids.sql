-- compatible: no
-- Agent ids are unique within an org. An agent that is or was public also holds its id as
-- a public name, which is unique across the platform.

-- @sqlite
-- SQLite cannot change a primary key. No other table refers to this one.
CREATE TABLE agents_new (
  org_id      TEXT NOT NULL REFERENCES orgs (id),
  id          TEXT NOT NULL,
  name        TEXT NOT NULL,
  description TEXT NOT NULL,
  skills      TEXT NOT NULL,
  public      INTEGER NOT NULL,
  public_name INTEGER NOT NULL DEFAULT 0,
  disabled    INTEGER NOT NULL DEFAULT 0,
  pinned      TEXT NOT NULL DEFAULT '',
  builtin     TEXT NOT NULL DEFAULT '',
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (org_id, id)
);
INSERT INTO agents_new (org_id, id, name, description, skills, public, public_name, disabled, pinned, builtin, created_at, updated_at)
  SELECT org_id, id, name, description, skills, public, public, disabled, pinned, builtin, created_at, updated_at FROM agents;
DROP TABLE agents;
ALTER TABLE agents_new RENAME TO agents;
-- The first page of the platform's card.
CREATE INDEX agents_public ON agents (id) WHERE public = 1 AND disabled = 0;
-- @postgres
ALTER TABLE agents DROP CONSTRAINT agents_pkey;
ALTER TABLE agents ADD PRIMARY KEY (org_id, id);
DROP INDEX agents_by_org;
ALTER TABLE agents ADD COLUMN public_name INTEGER NOT NULL DEFAULT 0;
UPDATE agents SET public_name = public;
-- @all

-- Includes disabled agents and those that are private again: no other agent may get the
-- tasks of their callers.
CREATE UNIQUE INDEX agents_public_name ON agents (id) WHERE public_name = 1;

-- A sender's tasks with the agents of one id, the last changed first. It begins with the
-- sender, so that other orgs' tasks with agents of that id are never read.
DROP INDEX tasks_own;
CREATE INDEX tasks_own ON tasks (sender_org, sender, agent_id, updated_at, uid);
