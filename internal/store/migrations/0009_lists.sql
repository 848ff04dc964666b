-- compatible: no
-- What lists cost in a large org, whatever they filter.

-- One submitter's rows are counted by category and priority, too, so that no list
-- counts rows when it is asked for.
DELETE FROM counters WHERE kind = 'proposal' AND who <> '';
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'proposal', submitted_by, status, category, priority, 0, count(*)
  FROM proposals GROUP BY org_id, submitted_by, status, category, priority;

-- @sqlite
-- A list by votes leaves out what its filters do not match without reading the rows.
DROP INDEX proposals_votes;
CREATE INDEX proposals_votes ON proposals (org_id, status, score, id, category, submitted_by);
-- @all
