-- compatible: no
-- A row of search_waiting has the n proposals of a batch of writes, separated by spaces. Older
-- programs take it for one.
ALTER TABLE search_waiting RENAME COLUMN proposal_id TO proposals;
ALTER TABLE search_waiting ADD COLUMN n INTEGER NOT NULL DEFAULT 1;
