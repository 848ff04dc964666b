-- compatible: yes
-- A running older program is not affected by columns with a default and by new tables.
ALTER TABLE proposals ADD COLUMN upgrade_note TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN upgrade_note TEXT NOT NULL DEFAULT '';
CREATE TABLE upgrade_notes (
  org_id TEXT NOT NULL,
  note   TEXT NOT NULL,
  PRIMARY KEY (org_id, note)
) {{without_rowid}};
