-- compatible: yes
-- The decisions of an org by time, for the numbers of a month.
CREATE INDEX history_decisions ON history (org_id, at, proposal_id, seq) WHERE kind = 'status_changed';
