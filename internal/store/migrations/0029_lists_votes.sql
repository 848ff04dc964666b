-- compatible: no
-- Indexes for the filters and sorts of lists, so that a page neither skips nor sorts many rows. A
-- submission writes as many as before, a vote those with a score only. Older programs force the use
-- of an index that is dropped.
DROP INDEX proposals_people;
DROP INDEX proposals_category;
CREATE INDEX proposals_category ON proposals (org_id, status, category, by_person, priority, id);
DROP INDEX proposals_submitter;
CREATE INDEX proposals_submitter ON proposals (org_id, submitted_by, category, status, priority, id);
DROP INDEX proposals_votes;
CREATE INDEX proposals_votes ON proposals (org_id, status, category, by_person, score, id, priority);
CREATE INDEX proposals_submitter_votes ON proposals (org_id, submitted_by, status, category, score, id, priority);

-- Few proposals have evidence. Their indexes have the columns of the other filters.
DROP INDEX proposals_evidence;
CREATE INDEX proposals_evidence ON proposals (org_id, status, priority, id, category, by_person, submitted_by)
  WHERE fingerprint <> '';
CREATE INDEX proposals_evidence_votes
  ON proposals (org_id, status, score, id, category, priority, by_person, submitted_by)
  WHERE fingerprint <> '';
