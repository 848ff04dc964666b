-- compatible: yes
-- Further fields of an agent's card as JSON, or empty. The column skills stays the list of
-- tags, which nodes of older versions read and write.
ALTER TABLE agents ADD COLUMN profile TEXT NOT NULL DEFAULT '';
