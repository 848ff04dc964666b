-- compatible: no
-- Data for triage: the version of the text, separate votes of agents, evidence, duplicates and
-- saved notes. Older programs would change texts and votes without updating these columns.

ALTER TABLE proposals ADD COLUMN text_version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE proposals ADD COLUMN duplicate_of TEXT NOT NULL DEFAULT '';

-- The votes of agents among votes_for and votes_against.
ALTER TABLE proposals ADD COLUMN agents_for BIGINT NOT NULL DEFAULT 0;
ALTER TABLE proposals ADD COLUMN agents_against BIGINT NOT NULL DEFAULT 0;
UPDATE proposals SET agents_for = v.up, agents_against = v.down
  FROM (SELECT org_id, proposal_id, sum(CASE WHEN choice = 'for' THEN 1 ELSE 0 END) AS up,
      sum(CASE WHEN choice = 'for' THEN 0 ELSE 1 END) AS down
    FROM votes WHERE voter LIKE 'agent:%' GROUP BY org_id, proposal_id) v
  WHERE proposals.org_id = v.org_id AND proposals.id = v.proposal_id;

-- The friction that filed the proposal, and how often it was reported.
ALTER TABLE proposals ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
ALTER TABLE proposals ADD COLUMN evidence BIGINT NOT NULL DEFAULT 0;
UPDATE proposals SET fingerprint = f.fingerprint, evidence = f.reports
  FROM friction f WHERE f.proposal_id <> '' AND proposals.org_id = f.org_id AND proposals.id = f.proposal_id;

-- Agents submit most proposals, so the indexes leave theirs out.
ALTER TABLE proposals ADD COLUMN by_person INTEGER NOT NULL DEFAULT 0;
UPDATE proposals SET by_person = 1 WHERE submitted_by LIKE 'user:%';

CREATE INDEX proposals_people   ON proposals (org_id, status, priority, id) WHERE by_person = 1;
CREATE INDEX proposals_evidence ON proposals (org_id, status, priority, id) WHERE fingerprint <> '';

-- Proposals of users are counted under the who "user", which is not a ref, and proposals
-- filed from friction under a separate kind.
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'proposal', 'user', status, category, priority, 0, sum(n)
  FROM counters WHERE kind = 'proposal' AND who LIKE 'user:%' GROUP BY org_id, status, category, priority;
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'evidence', '', status, category, priority, 0, count(*)
  FROM proposals WHERE fingerprint <> '' GROUP BY org_id, status, category, priority;
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'evidence', 'user', status, category, priority, 0, count(*)
  FROM proposals WHERE fingerprint <> '' AND by_person = 1 GROUP BY org_id, status, category, priority;
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'evidence', submitted_by, status, category, priority, 0, count(*)
  FROM proposals WHERE fingerprint <> '' GROUP BY org_id, submitted_by, status, category, priority;

-- Resolution notes that admins reuse.
CREATE TABLE saved_notes (
  org_id     TEXT NOT NULL,
  id         TEXT NOT NULL,
  title      TEXT NOT NULL,
  note       TEXT NOT NULL,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (org_id, id)
);
