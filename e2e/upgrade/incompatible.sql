-- compatible: no
-- Rebuilds the counters. A concurrent write would be missing from them for good.
DELETE FROM counters WHERE kind = 'proposal';
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'proposal', '', status, category, priority, 0, count(*)
  FROM proposals GROUP BY org_id, status, category, priority;
INSERT INTO counters (org_id, kind, who, status, category, priority, slot, n)
  SELECT org_id, 'proposal', submitted_by, status, category, priority, 0, count(*)
  FROM proposals GROUP BY org_id, submitted_by, status, category, priority;
