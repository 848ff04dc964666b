-- compatible: yes
-- The node that holds the claim of a delivery, so that others release the claims of a node that is
-- gone before they expire. Older programs do not change it; their claims expire.
ALTER TABLE webhooks ADD COLUMN claimed_by TEXT NOT NULL DEFAULT '';
CREATE INDEX webhooks_claimed ON webhooks (claimed_by) WHERE claimed_by <> '';
ALTER TABLE push_configs ADD COLUMN claimed_by TEXT NOT NULL DEFAULT '';
CREATE INDEX push_claimed ON push_configs (claimed_by) WHERE claimed_by <> '';
-- Configurations whose last attempt failed are claimed apart from others.
DROP INDEX push_due;
CREATE INDEX push_due ON push_configs (sender_org, due_at, receiver, attempts, org_id, uid, id) WHERE due_at > 0;
