-- compatible: no
-- Secrets in webhooks, push_configs and secrets are encrypted, which older programs would take for
-- the secrets themselves. A server encrypts the existing ones in the background; see SealAll.

-- @postgres
-- The ids of the keys that a node has, separated by spaces; it encrypts with the first.
ALTER TABLE nodes ADD COLUMN keys TEXT NOT NULL DEFAULT '';
