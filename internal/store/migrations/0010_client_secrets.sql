-- compatible: no
-- Clients of an org can be edited, and their secrets rotated. The previous secret works
-- until old_secret_expires_at, if that is set.

ALTER TABLE oauth_clients ADD COLUMN version BIGINT NOT NULL DEFAULT 1;
ALTER TABLE oauth_clients ADD COLUMN old_secret_hash TEXT NOT NULL DEFAULT '';
ALTER TABLE oauth_clients ADD COLUMN old_secret_expires_at BIGINT NOT NULL DEFAULT 0;
