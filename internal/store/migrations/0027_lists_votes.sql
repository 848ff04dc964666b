-- compatible: yes
-- Indexes for every filter and sort of a list, so that no page skips or sorts many rows. Those that
-- older programs use keep their names. A vote changes the indexes with a score only.
DROP INDEX proposals_category;
CREATE INDEX proposals_category ON proposals (org_id, status, category, by_person, priority, id);
CREATE INDEX proposals_submitter_category ON proposals (org_id, submitted_by, category, status, priority, id);

DROP INDEX proposals_votes;
CREATE INDEX proposals_votes ON proposals (org_id, status, score, id);
CREATE INDEX proposals_votes_of ON proposals (org_id, status, category, priority, by_person, score, id);
CREATE INDEX proposals_submitter_votes ON proposals (org_id, submitted_by, status, category, priority, score, id);

-- Few proposals have evidence. Their indexes have the columns of the other filters.
DROP INDEX proposals_evidence;
CREATE INDEX proposals_evidence ON proposals (org_id, status, priority, id, category, by_person, submitted_by)
  WHERE fingerprint <> '';
CREATE INDEX proposals_evidence_votes
  ON proposals (org_id, status, score, id, category, priority, by_person, submitted_by)
  WHERE fingerprint <> '';
