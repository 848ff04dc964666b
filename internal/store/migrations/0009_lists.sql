-- compatible: no
-- Make all filters of a list cheap in a large org.

-- Count the rows of one submitter by category and priority, too, so that no list has to
-- count rows.
DELETE FROM counters WHERE kind = 'proposal' AND who <> '';
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'proposal', submitted_by, status, category, priority, 0, count(*)
  FROM proposals GROUP BY org_id, submitted_by, status, category, priority;

-- @sqlite
-- Lets a list by votes skip rows that do not match its filters without reading them.
DROP INDEX proposals_votes;
CREATE INDEX proposals_votes ON proposals (org_id, status, score, id, category, submitted_by);
-- @all
