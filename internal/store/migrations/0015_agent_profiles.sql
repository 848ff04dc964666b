-- compatible: yes
-- What the card of an agent says beyond its entry, as JSON; empty: nothing. The column
-- skills stays the list of tags, which nodes of earlier versions read and write.
ALTER TABLE agents ADD COLUMN profile TEXT NOT NULL DEFAULT '';
