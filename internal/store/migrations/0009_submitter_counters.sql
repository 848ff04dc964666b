-- One submitter's rows are counted by category and priority, too, so that no list
-- counts rows when it is asked for.
DELETE FROM counters WHERE kind = 'proposal' AND who <> '';
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'proposal', submitted_by, status, category, priority, 0, count(*)
  FROM proposals GROUP BY org_id, submitted_by, status, category, priority;
