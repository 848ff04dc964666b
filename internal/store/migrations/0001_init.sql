-- compatible: no
-- One schema for both engines. A block for one engine starts with "-- @sqlite" or
-- "-- @postgres" and ends with "-- @all". migrate_schema.go replaces {{rowid}} and
-- {{without_rowid}}. Times are microseconds UTC. No column is ever NULL: the zero value
-- means that there is no value.

CREATE TABLE orgs (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE principals (
  org_id     TEXT NOT NULL REFERENCES orgs (id),
  kind       TEXT NOT NULL,
  id         TEXT NOT NULL,
  name       TEXT NOT NULL,
  admin      INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (org_id, kind, id)
);

-- An agent's id is unique across the platform, because /a2a/<agent_id> contains no org.
CREATE TABLE agents (
  id          TEXT PRIMARY KEY,
  org_id      TEXT NOT NULL REFERENCES orgs (id),
  name        TEXT NOT NULL,
  description TEXT NOT NULL,
  skills      TEXT NOT NULL,
  public      INTEGER NOT NULL,
  created_at  BIGINT NOT NULL
);
CREATE INDEX agents_by_org ON agents (org_id, id);

CREATE TABLE keys (
  id           TEXT PRIMARY KEY,
  hash         TEXT NOT NULL UNIQUE,
  org_id       TEXT NOT NULL,
  kind         TEXT NOT NULL,
  principal_id TEXT NOT NULL,
  name         TEXT NOT NULL,
  prefix       TEXT NOT NULL,
  scopes       TEXT NOT NULL,
  created_at   BIGINT NOT NULL,
  created_by   TEXT NOT NULL,
  expires_at   BIGINT NOT NULL,
  revoked_at   BIGINT NOT NULL,
  last_used_at BIGINT NOT NULL,
  FOREIGN KEY (org_id, kind, principal_id) REFERENCES principals (org_id, kind, id)
);
CREATE INDEX keys_by_org ON keys (org_id, id);

-- One row; incremented when rights may have been revoked.
CREATE TABLE identity_epoch (
  id    INTEGER PRIMARY KEY,
  epoch BIGINT NOT NULL
);
INSERT INTO identity_epoch (id, epoch) VALUES (1, 1);

-- Every change increments version, which equals the seq of its history entry. The first
-- entry, the submission, is stored in this row: submitted_as, submitted_by and
-- submitted_at. Score is votes_for - votes_against, stored for its index.
CREATE TABLE proposals (
  {{rowid}}
  org_id          TEXT NOT NULL,
  id              TEXT NOT NULL,
  status          TEXT NOT NULL,
  category        TEXT NOT NULL,
  priority        INTEGER NOT NULL,
  submitted_by    TEXT NOT NULL,
  submitted_at    BIGINT NOT NULL,
  submitted_as    TEXT NOT NULL,
  updated_at      BIGINT NOT NULL,
  votes_for       BIGINT NOT NULL,
  votes_against   BIGINT NOT NULL,
  score           BIGINT NOT NULL,
  version         BIGINT NOT NULL,
  followup_id     TEXT NOT NULL,
  title           TEXT NOT NULL,
  problem         TEXT NOT NULL,
  suggested_fix   TEXT NOT NULL,
  resolution_note TEXT NOT NULL,
  UNIQUE (org_id, id)
);
CREATE INDEX proposals_review    ON proposals (org_id, status, priority, id);
CREATE INDEX proposals_category  ON proposals (org_id, status, category, priority, id);
CREATE INDEX proposals_submitter ON proposals (org_id, submitted_by, status, priority, id, category);
CREATE INDEX proposals_votes     ON proposals (org_id, status, score, id);

CREATE TABLE votes (
  org_id      TEXT NOT NULL,
  proposal_id TEXT NOT NULL,
  voter       TEXT NOT NULL,
  choice      TEXT NOT NULL,
  comment     TEXT NOT NULL,
  voted_at    BIGINT NOT NULL,
  PRIMARY KEY (org_id, proposal_id, voter)
) {{without_rowid}};

CREATE TABLE history (
  org_id      TEXT NOT NULL,
  proposal_id TEXT NOT NULL,
  seq         BIGINT NOT NULL,
  at          BIGINT NOT NULL,
  actor       TEXT NOT NULL,
  kind        TEXT NOT NULL,
  data        TEXT NOT NULL,
  PRIMARY KEY (org_id, proposal_id, seq)
) {{without_rowid}};

CREATE TABLE followups (
  org_id      TEXT NOT NULL,
  id          TEXT NOT NULL,
  status      TEXT NOT NULL,
  assignee    TEXT NOT NULL,
  proposal_id TEXT NOT NULL,
  text_hash   TEXT NOT NULL,
  title       TEXT NOT NULL,
  description TEXT NOT NULL,
  created_by  TEXT NOT NULL,
  created_at  BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  version     BIGINT NOT NULL,
  PRIMARY KEY (org_id, id)
);
CREATE INDEX followups_status   ON followups (org_id, status, id);
CREATE INDEX followups_assignee ON followups (org_id, assignee, status, id);
-- At most one follow-up per proposal, also if the program has an error.
CREATE UNIQUE INDEX followups_proposal ON followups (org_id, proposal_id) WHERE proposal_id <> '';

-- Row counts by the filters of lists, so that a total never scans the org. An empty who
-- counts all rows, else those of one submitter or assignee. Several slots let writers on
-- PostgreSQL add without waiting for each other.
CREATE TABLE counters (
  org_id   TEXT NOT NULL,
  kind     TEXT NOT NULL,
  who      TEXT NOT NULL,
  status   TEXT NOT NULL,
  category TEXT NOT NULL,
  priority INTEGER NOT NULL,
  slot     INTEGER NOT NULL,
  n        BIGINT NOT NULL,
  PRIMARY KEY (org_id, kind, who, status, category, priority, slot)
) {{without_rowid}};

CREATE TABLE idempotency (
  org_id      TEXT NOT NULL,
  principal   TEXT NOT NULL,
  operation   TEXT NOT NULL,
  key         TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  outcome     TEXT NOT NULL,
  expires_at  BIGINT NOT NULL,
  PRIMARY KEY (org_id, principal, operation, key)
);
CREATE INDEX idempotency_expiry ON idempotency (expires_at);

-- The words of a proposal, split by package proposal. The table is separate so that a
-- vote never changes the text index.
-- @sqlite
CREATE VIRTUAL TABLE proposal_search USING fts5 (
  words, content = '', contentless_delete = 1, detail = 'none', columnsize = 1, tokenize = 'ascii'
);
-- Merge rarely: every write pays for merges, and few searches meet many segments.
INSERT INTO proposal_search (proposal_search, rank) VALUES ('automerge', 8);
-- @postgres
CREATE TABLE proposal_search (
  org_id      TEXT NOT NULL,
  proposal_id TEXT NOT NULL,
  words       TSVECTOR NOT NULL,
  PRIMARY KEY (org_id, proposal_id)
);
CREATE INDEX proposal_search_words ON proposal_search USING gin (words);

-- Incremented with every change to an org's proposals. SQLite has one writer and keeps
-- this number in memory.
CREATE TABLE data_versions (
  org_id  TEXT NOT NULL,
  slot    INTEGER NOT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (org_id, slot)
);
-- @all
